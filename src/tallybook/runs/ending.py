"""No run stays active behind its own process: whatever leaves the block, the store hears how the run ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from tallybook.errors import Problem, ProblemError, RunError, StoreError, TallybookError
from tallybook.model.run import Run
from tallybook.storage.failure import SPARK_ERRORS, reason
from tallybook.store.store import Store

Placed = Callable[[Sequence[Problem]], Sequence[Problem]]
"""Says of problems where in the run they happened."""


@contextmanager
def ending(
    store: Store, run: Run, placed: Placed = lambda problems: problems, log: Callable[[], str | None] = lambda: None
) -> Iterator[None]:
    """Makes an interrupted run cancelled and any other unfinished one failed, with the problem that says why."""
    try:
        yield
    except KeyboardInterrupt:
        store.cancel_run(run)
        raise
    except ProblemError as error:
        raise _failed(store, run, placed(error.problems), log()) from error
    except TallybookError as error:
        # The store may be what is broken, or the run another process's by now; then there is nothing to tell it.
        with suppress(StoreError):
            store.fail_run(run, Problem("InternalError", error.message, error.hint, project=run.project_id))
        raise
    except Exception as error:
        said = reason(error) if isinstance(error, SPARK_ERRORS) else error
        problems = placed([Problem("InternalError", f"{type(error).__name__}: {said}")])
        raise _failed(store, run, problems, log()) from error


def _failed(store: Store, run: Run, problems: Sequence[Problem], log: str | None) -> RunError:
    known = [problem.within(project=run.project_id) for problem in problems]
    store.fail_run(run, known[0])
    return RunError(known, run_id=run.id, log=log)
