"""Records how a run ended, so that no run stays active after its process has left it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tallybook.errors import Problem, ProblemError, RunError, StoreError, TallybookError
from tallybook.model.run import Run
from tallybook.storage.failure import SPARK_ERRORS, reason
from tallybook.store.store import Store


@contextmanager
def recording_outcome(store: Store, run: Run, log: Callable[[], str | None] = lambda: None) -> Iterator[None]:
    """Records a run as cancelled if the block is interrupted, and as failed if an error leaves the block.

    If the store cannot record it, the error still describes what ended the run, and the next command that opens the
    store records it.
    """
    try:
        yield
    except ProblemError as error:
        raise _failed(store, run, error.problems, log()) from error
    except TallybookError as error:
        _record(store, run, Problem("InternalError", error.message, error.hint, project=run.project_id))
        raise
    except Exception as error:
        description = reason(error) if isinstance(error, SPARK_ERRORS) else error
        problems = [Problem("InternalError", f"{type(error).__name__}: {description}")]
        raise _failed(store, run, problems, log()) from error
    except BaseException:
        _record(store, run, None)
        raise


def _failed(store: Store, run: Run, problems: Sequence[Problem], log: str | None) -> RunError:
    first, *others = [problem.within(project=run.project_id) for problem in problems]
    unrecorded = _record(store, run, first)
    if unrecorded is not None:
        also = f"the failure could not be recorded: {unrecorded.message}; the next command that opens the store does it"
        first = replace(first, hint=f"{first.hint}; {also}" if first.hint else also)
    return RunError([first, *others], run_id=run.id, log=log)


def _record(store: Store, run: Run, problem: Problem | None) -> StoreError | None:
    """Records that the run failed or, without a problem, that it was cancelled. Returns the error if that was not
    possible; None if the run has ended already or belongs to another process."""
    try:
        if problem is None:
            store.cancel_run(run)
        else:
            store.fail_run(run, problem)
    except StoreError as error:
        return error if store.abandon_run(run, problem) else None
    return None
