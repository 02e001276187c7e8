"""What a run reads is what was there when its plan was made; otherwise it publishes nothing.

The snapshot has name, size and time of every plain file. They are compared again directly before each output is
published, so rows of a file that came, went or changed in between never become visible. Delta tables are read at the
version of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tallybook.errors import ProblemError, RunError, TallybookError, fail
from tallybook.model.run import Snapshot
from tallybook.runs.snapshot import changed_inputs
from tallybook.storage.failure import SPARK_ERRORS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LISTED = 5
_OF_READING = frozenset({"DataLoadError", "DataNotFound", "SchemaMismatch", "InternalError"})


@dataclass(frozen=True)
class PlannedInputs:
    """The files a run reads, as its snapshot knows them."""

    spark: SparkSession
    snapshot: Snapshot

    def check(self) -> None:
        """Raises DataLoadError if a file is not what it was."""
        if error := self._changed():
            raise error

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Reports a failure of reading as the change of a file, if a file has changed: that explains it."""
        try:
            yield
        except Exception as error:
            of_reading = isinstance(error, ProblemError) and error.problem.type in _OF_READING
            if isinstance(error, TallybookError) and not of_reading:
                raise
            with suppress(OSError, *SPARK_ERRORS):
                if changed := self._changed():
                    raise _in_place_of(error, changed) from error
            raise

    def _changed(self) -> RunError | None:
        changed = changed_inputs(self.spark, self.snapshot)
        if not changed:
            return None
        more = f" and {len(changed) - _LISTED} more" if len(changed) > _LISTED else ""
        return fail(
            "DataLoadError",
            f"files that the run reads changed after it was planned: {'; '.join(changed[:_LISTED])}{more}",
            hint="the output was not published; run again when nothing else writes to these files",
        )


def _in_place_of(error: Exception, changed: RunError) -> RunError:
    """The change of a file as the problem of the operation that failed."""
    if not isinstance(error, ProblemError):
        return changed
    return RunError([changed.problem.within(seq=error.problem.seq, operation=error.problem.operation)])
