"""No run stays active behind its own process: whatever leaves the block, the store hears how the run ended."""

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
    """Makes an interrupted run cancelled and any other unfinished one failed, with the problem that says why.

    The problem is the one that ended the run, also where the store cannot take it; the store then hears of it at the
    next opening.
    """
    try:
        yield
    except ProblemError as error:
        raise _failed(store, run, error.problems, log()) from error
    except TallybookError as error:
        _record(store, run, Problem("InternalError", error.message, error.hint, project=run.project_id))
        raise
    except Exception as error:
        said = reason(error) if isinstance(error, SPARK_ERRORS) else error
        problems = [Problem("InternalError", f"{type(error).__name__}: {said}")]
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
    """Records that the run failed, or without a problem that it was cancelled. Returns why it could not be recorded;
    None also where the run is no longer this process's, for then its end is known."""
    try:
        if problem is None:
            store.cancel_run(run)
        else:
            store.fail_run(run, problem)
    except StoreError as error:
        return error if store.abandon_run(run, problem) else None
    return None
