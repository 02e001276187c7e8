"""Decides which rows are kept, so that they are computed once. `keeper` keeps them.

Keeping costs more than reading and projecting again. So rows are kept only where two later steps use them and computing
them again would shuffle or join a large table, or where the chain of projections is so long that Spark would be slower
with the whole of it. The decision needs no data and no Spark: `tallybook plan --explain` shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tallybook.expressions.evaluate import Evaluator
from tallybook.model.columns import DELETED
from tallybook.operations.base import Step
from tallybook.operations.schema import SourceTable
from tallybook.rows.segments import Segment

CUT_EVERY = 20
"""The number of dependent projections after which the Spark plan is cut: its cost grows faster than its length.

Kept rows are cut, too, if their plan has as many steps: otherwise the plan of aggregates over aggregates doubles with
each of them."""

IsSmall = Callable[[SourceTable], bool]


@dataclass(frozen=True)
class Keep:
    """Rows of a segment that are kept before a step."""

    step: int
    """The index of the step."""
    segment: int
    """The index of the segment in the working dataset."""
    made_by: int
    """The operation that made the rows; 0 for input rows."""
    reason: str
    is_cut: bool = False
    """True if the plan is too long, so that later steps must not depend on it."""


@dataclass(frozen=True)
class KeptTable:
    """A small joined table that is read once for all uses of the rows that it is joined to. It is fetched before the
    first step, or kept where it is joined."""

    seq: int
    """The operation that joins it."""
    alias: str
    reason: str


@dataclass(frozen=True)
class _Version:
    """The rows of a segment between two steps that change them."""

    segment: Segment
    dear: str | None = None
    """Why computing the rows again is dear; None if it is not."""
    depth: int = 0
    """The number of projections that depend on each other."""
    size: int = 0
    """The number of projections and groupings in the plan of the rows. Rows that are kept still have theirs, cut ones
    have none."""
    waiting: frozenset[str] = frozenset()
    """The columns that are assigned, but not yet part of the plan."""


def decide(
    first: Segment,
    input: SourceTable,
    steps: Sequence[Step],
    evaluator: Evaluator,
    is_small: IsSmall,
    in_passes: Collection[int] = (),
    *,
    needs_working: bool,
) -> tuple[Keep, ...]:
    """Returns what is kept, in the order of the steps. The groups of the operations `in_passes` are kept already.
    `needs_working` says that the final rows are used, too."""
    deciding = _Deciding(input, steps, evaluator, is_small, in_passes, needs_working=needs_working)
    return tuple(sorted(deciding.keeps(first), key=lambda keep: (keep.step, keep.segment)))


def kept_tables(
    first: Segment, input: SourceTable, steps: Sequence[Step], evaluator: Evaluator, is_small: IsSmall
) -> tuple[KeptTable, ...]:
    """Returns the small tables that are joined to rows which several steps use: otherwise each use would read the
    table, and plan that, again."""
    deciding = _Deciding(input, steps, evaluator, is_small)
    kept = []
    current = [first]
    for index, step in enumerate(steps):
        small = [table.alias for table in step.unique_tables if is_small(table.source)]
        uses = deciding.uses_of_joined(index, current) if small else 0
        if uses > 1:
            reason = f"{uses} operations use the rows that it is joined to"
            kept += [KeptTable(step.seq, alias, reason) for alias in small]
        current = [step.segment_after(segment, evaluator) for segment in current]
        current += [step.added_segment(input, evaluator)] if step.adds_rows else []
    return tuple(kept)


@dataclass(frozen=True)
class _Deciding:
    input: SourceTable
    steps: Sequence[Step]
    evaluator: Evaluator
    is_small: IsSmall
    in_passes: Collection[int] = ()
    needs_working: bool = False

    def uses_of_joined(self, index: int, segments: Sequence[Segment]) -> int:
        """Counts the steps that make other rows of those to which a step joins tables, the step itself included."""
        joined = [_Version(one) for one in segments if self.steps[index].selects(one, self.evaluator) is not False]
        uses = 0
        for step in self.steps[index:]:
            uses += any(self._reads(step, version) for version in joined)
            joined = [replace(one, segment=step.segment_after(one.segment, self.evaluator)) for one in joined]
        return uses

    def keeps(self, first: Segment) -> Iterator[Keep]:
        """Walks over the steps with the current version of every segment. What comes from kept rows is not dear any
        more."""
        current = [_Version(first)]
        for index, step in enumerate(self.steps):
            for number, version in enumerate(current):
                if not self._uses(step, version):
                    continue
                keep = self._kept(version, number, index)
                if keep is not None:
                    yield keep
                    size = 0 if keep.is_cut else version.size
                    current[number] = replace(version, dear=None, depth=0, size=size, waiting=frozenset())
            read = [version for version in current if self._reads(step, version)]
            current = [self._changed(step, version, read) for version in current]
            if step.adds_rows:
                current.append(self._added(step, read))

    def _kept(self, version: _Version, number: int, index: int) -> Keep | None:
        """Returns the keep of a version before the first step that uses it, if there is one."""
        made_by = version.segment.made_by
        if version.dear is not None and self._is_used_again(version, index):
            return Keep(index, number, made_by, version.dear, is_cut=version.size >= CUT_EVERY)
        if version.depth >= CUT_EVERY:
            return Keep(index, number, made_by, f"{version.depth} projections depend on each other", is_cut=True)
        if self.steps[index].overs and version.size >= CUT_EVERY:
            return Keep(index, number, made_by, f"{version.size} steps would be planned twice", is_cut=True)
        return None

    def _is_used_again(self, version: _Version, index: int) -> bool:
        """True if the step reads the rows, and it or a later one uses the same rows."""
        if self._changes(self.steps[index], version):
            return bool(self.steps[index].overs)
        for step in self.steps[index + 1 :]:
            if self._uses(step, version):
                return True
            version = self._changed(step, version, ())
        return self.needs_working

    def _uses(self, step: Step, version: _Version) -> bool:
        return self._reads(step, version) or self._changes(step, version)

    def _reads(self, step: Step, version: _Version) -> bool:
        """True if a step makes other rows of these: summary rows, totals, an output, or the rows of a check."""
        reads = step.takes_rows or step.forks or bool(step.overs)
        return reads and step.selects(version.segment, self.evaluator) is not False

    def _changes(self, step: Step, version: _Version) -> bool:
        return bool(step.writes) and step.selects(version.segment, self.evaluator) is not False

    def _changed(self, step: Step, version: _Version, read: Sequence[_Version]) -> _Version:
        """The version after a step. `read` are the versions that the step reads to make other rows of them."""
        after = replace(version, segment=step.segment_after(version.segment, self.evaluator))
        if not self._changes(step, version):
            return after
        reads = step.reads | (frozenset() if version.segment.all_active else {DELETED})
        joins = bool(step.joined) or bool(step.overs)
        settles = joins or bool(reads & version.waiting)
        waiting = frozenset() if settles else version.waiting
        return replace(
            after,
            dear=version.dear or self._dear_to_join(step),
            depth=version.depth + settles,
            size=version.size + settles + (sum(one.size for one in read) if step.overs else 0),
            waiting=frozenset() if joins else waiting | (step.writes.keys() & after.segment.varying.keys()),
        )

    def _added(self, step: Step, read: Sequence[_Version]) -> _Version:
        segment, size = step.added_segment(self.input, self.evaluator), 1 + sum(version.size for version in read)
        is_kept = step.seq in self.in_passes and size < CUT_EVERY
        return _Version(segment, None if is_kept else self._dear_to_add(step, read), size=size)

    def _dear_to_join(self, step: Step) -> str | None:
        large = next((table for table in step.joined if not self.is_small(table.source)), None)
        return f"operation {step.seq} joins {large.source.dataset.id}" if large is not None else None

    def _dear_to_add(self, step: Step, read: Sequence[_Version]) -> str | None:
        if step.shuffles:
            return f"operation {step.seq} shuffles rows"
        return next((version.dear for version in read if version.dear is not None), None)
