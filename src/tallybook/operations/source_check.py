"""A step that evaluates a source on its own, to find out whether one of its expressions fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tallybook.expressions.evaluate import Evaluator
from tallybook.operations.base import BuildContext, Step
from tallybook.operations.schema import SourceTable
from tallybook.rows.segments import Segment, new_segment

if TYPE_CHECKING:
    from tallybook.rows.working import Rows


@dataclass(frozen=True)
class SourceCheck(Step):
    """Adds the rows of a source with NULL in all business columns: only what the source computes can fail."""

    type: ClassVar[str] = "source check"

    @property
    def adds(self) -> Mapping[str, str | None]:
        return {}

    def added_segment(self, _input: SourceTable, evaluator: Evaluator) -> Segment:
        assert self.appends is not None
        table = self.appends.table
        new = new_segment(self.seq, table.dataset.id, table.table.name, evaluator.timestamp)
        return new.narrowed(()).with_nulls(self.after.columns)

    def add(self, _rows: Rows | None, build: BuildContext) -> Rows:
        from pyspark.sql import functions as F

        from tallybook.expressions.compile import column_named
        from tallybook.rows.working import Rows

        assert self.appends is not None
        frame = self.appends.frame(build)
        if self.appends.grouping is not None:  # Spark would not compute a result that nothing reads
            results = [column_named(name) for name in self.appends.grouping.results]
            frame = frame.filter(F.xxhash64(*results) != 0)
        return Rows(self.added_segment(build.input, build.evaluator), frame)
