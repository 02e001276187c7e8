"""Decides which rows are kept, so that they are computed once. `keeper` keeps them.

Keeping costs more than reading and projecting again. So rows are kept only where several later steps use them and
computing them again would shuffle or join a large table, or where the chain of projections is so long that Spark would
be slower with the whole of it. The groups of `OVER` are kept where they are used more than once. The decision needs the
plan, the sizes of tables and what is known of their keys, but no Spark: `tallybook plan --explain` shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tallybook.expressions.check import overs_of
from tallybook.expressions.evaluate import Evaluator
from tallybook.model.columns import DELETED
from tallybook.operations.base import SharedTable, Step
from tallybook.operations.flow import live_columns, narrowed_changes, stale_tables
from tallybook.operations.schema import SourceTable
from tallybook.rows.segments import Segment

CUT_EVERY = 20
"""The number of dependent projections after which the Spark plan is cut: its cost grows faster than its length.

Kept rows are cut, too, if their plan has as many steps: otherwise the plan of aggregates over aggregates doubles with
each of them."""

IsSmall = Callable[[SourceTable], bool]
LargeJoin = tuple[str, SourceTable]
"""A join to a large table: the alias and the table."""
Droppable = Callable[[Step], Collection[str]]
"""Returns the tables of a step that need not be joined if nothing reads them."""


@dataclass(frozen=True)
class Keep:
    """Rows of a segment that are kept before a step."""

    step: int
    """The index of the step."""
    segment: int | None
    """The index of the segment in the working dataset; None for the groups of the step's own aggregates (`OVER`)."""
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
class _Dear:
    """Why computing rows again is dear."""

    reason: str
    joins: frozenset[LargeJoin] = frozenset()
    """The joins to large tables, if these are the reason."""


@dataclass(frozen=True)
class _Version:
    """The rows of a segment between two steps that change them."""

    segment: Segment
    dear: _Dear | None = None
    """Why computing the rows again is dear, whatever is needed of them."""
    changes: tuple[Step, ...] = ()
    """The steps that changed the rows since they were read, added or kept."""
    large: frozenset[LargeJoin] = frozenset()
    """Their joins to large tables."""
    all_active: bool = field(default=True, kw_only=True)
    """True if no row was deleted before these."""
    depth: int = 0
    """The number of projections that depend on each other."""
    size: int = 0
    """The number of projections and groupings in the plan of the rows. Rows that are kept still have theirs, cut ones
    have none."""
    waiting: frozenset[str] = frozenset()
    """The columns that are assigned, but not yet part of the plan."""
    joined: frozenset[str] = frozenset()
    """The shared tables that are joined already, by alias."""

    def kept(self, size: int) -> _Version:
        """The same rows, kept."""
        return _Version(self.segment, size=size, all_active=self.segment.all_active)


def none_droppable(_step: Step) -> Collection[str]:
    """Returns nothing: every table must be joined."""
    return ()


def large_joins(steps: Iterable[Step], is_small: IsSmall) -> frozenset[LargeJoin]:
    """Returns the joins of steps to large tables."""
    return frozenset(
        (table.alias, table.source) for step in steps for table in step.joined if not is_small(table.source)
    )


@dataclass(frozen=True)
class Deciding:
    """Decides what is kept."""

    input: SourceTable
    steps: Sequence[Step]
    evaluator: Evaluator
    is_small: IsSmall
    in_passes: Collection[int] = ()
    """The aggregates whose groups are kept already."""
    droppable: Droppable = none_droppable
    shared: Mapping[str, SharedTable] = field(default_factory=dict, kw_only=True)
    """The tables that are joined once for several steps, by alias."""
    needs_working: bool = field(default=False, kw_only=True)
    """True if the final rows are used, too."""
    _droppable: dict[int, Collection[str]] = field(default_factory=dict, init=False)
    """What `droppable` has returned, by seq: it may read the keys of a table."""

    def keeps(self, first: Segment) -> tuple[Keep, ...]:
        """Returns the rows that are kept, in the order of the steps. `first` are the input rows."""
        return tuple(self._keeps(first))

    def kept_tables(self, first: Segment) -> tuple[KeptTable, ...]:
        """Returns the small tables that are joined to rows which several steps use: otherwise each use would read the
        table, and plan that, again."""
        kept = []
        current = [first]
        for index, step in enumerate(self.steps):
            small = [table.alias for table in step.unique_tables if self.is_small(table.source)]
            uses = self._uses_of_joined(index, current) if small else 0
            if uses > 1:
                reason = f"{uses} operations use the rows that it is joined to"
                kept += [KeptTable(step.seq, alias, reason) for alias in small]
            current = [step.segment_after(segment, self.evaluator) for segment in current]
            current += [step.added_segment(self.input, self.evaluator)] if step.adds_rows else []
        return tuple(kept)

    def _uses_of_joined(self, index: int, segments: Sequence[Segment]) -> int:
        """Counts the steps that make other rows of those to which a step joins tables, the step itself included."""
        joined = [_Version(one) for one in segments if self.steps[index].selects(one, self.evaluator) is not False]
        uses = 0
        for step in self.steps[index:]:
            uses += any(self._reads(step, version) for version in joined)
            joined = [replace(one, segment=step.segment_after(one.segment, self.evaluator)) for one in joined]
        return uses

    def _keeps(self, first: Segment) -> Iterator[Keep]:
        """Walks over the steps with the current version of every segment. What comes from kept rows is not dear any
        more."""
        current = [_Version(first, all_active=first.all_active)]
        for index, step in enumerate(self.steps):
            for number, version in enumerate(current):
                if not self._uses(step, version):
                    continue
                keep = self._kept(version, number, index)
                if keep is not None:
                    yield keep
                    current[number] = version.kept(size=0 if keep.is_cut else version.size)
            read = [version for version in current if self._reads(step, version)]
            totals = self._kept_totals(index, current, read) if step.overs else None
            if totals is not None:
                yield totals
                read = [replace(version, size=0) for version in read] if totals.is_cut else read
            current = [self._changed(step, version, read) for version in current]
            if step.adds_rows:
                current.append(self._added(step, read))

    def _kept_totals(self, index: int, current: Sequence[_Version], read: Sequence[_Version]) -> Keep | None:
        """Returns the keep of the groups of a step's aggregates, if rows that they are joined to are used more than
        once. A group is computed for all its aggregates, so nothing is kept if one may be overwritten unread."""
        step = self.steps[index]
        columns = {column for path, column in step.column_by_path.items() if overs_of(step.expressions[path])}
        if not columns <= self._needed[index + 1]:
            return None
        changed = [self._changed(step, version, read) for version in current if self._changes(step, version)]
        uses = sum(self._later_reads(version, index + 1) for version in changed)
        if uses < 2:
            return None
        is_cut = max(version.size for version in changed) >= CUT_EVERY
        return Keep(index, None, step.seq, f"they are used {uses} times", is_cut=is_cut)

    def _later_reads(self, version: _Version, index: int) -> int:
        """Counts the steps from an index on that make other rows of a version."""
        reads = 0
        for step in self.steps[index:]:
            reads += self._reads(step, version)
            version = self._changed(step, version, ())
        return reads + self.needs_working

    @cached_property
    def _needed(self) -> Sequence[frozenset[str]]:
        """The columns that rows which are never deleted need before each step, and after the last."""
        wanted = self.steps[-1].after.columns if self.needs_working and self.steps else ()
        return live_columns(self.steps, wanted, active_only=True)

    def _kept(self, version: _Version, number: int, index: int) -> Keep | None:
        """Returns the keep of a version before the first step that uses it, if there is one."""
        made_by = version.segment.made_by
        dear = self._dear_for(self.steps[index].columns_read, version)
        if dear is not None and self._pays(dear, version, index):
            return Keep(index, number, made_by, dear.reason, is_cut=version.size >= CUT_EVERY)
        if version.depth >= CUT_EVERY:
            return Keep(index, number, made_by, f"{version.depth} projections depend on each other", is_cut=True)
        if self.steps[index].overs and version.size >= CUT_EVERY:
            return Keep(index, number, made_by, f"{version.size} steps would be planned twice", is_cut=True)
        return None

    def _pays(self, dear: _Dear, version: _Version, index: int) -> bool:
        """True if keeping the rows takes less time than computing them again for each use from a step on.

        Joined rows are as many as the rows before the join, so keeping them costs more than keeping groups. If the use
        has a selector, Spark can often filter before it joins, so that computing the rows again costs less.
        """
        uses = self._uses_from(version, index, dear)
        return len(uses) >= 2 if not dear.joins else uses.count(True) >= 2 or len(uses) >= 3

    def _uses_from(self, version: _Version, index: int, dear: _Dear) -> list[bool]:
        """Returns an item for each step from this one on that needs what is dear about the rows: True if its
        selector selects all rows. There are none if this step only changes the rows."""
        if not self._reads(self.steps[index], version):
            return []
        uses = []
        for step in self.steps[index:]:
            if self._reads(step, version) and self._dear_for(step.columns_read, version) == dear:
                selects = version.segment.selects(step.selector, self.evaluator, include_deleted=True)
                uses.append(bool(selects))
            version = self._changed(step, version, ())
        if self.needs_working and self._dear_for(self.steps[-1].after.columns, version) == dear:
            uses.append(True)
        return uses

    def _dear_for(self, columns: Collection[str], version: _Version) -> _Dear | None:
        """Returns why computing some columns again is dear; None if it is not."""
        if version.dear is not None:
            return version.dear
        if not version.large:
            return None
        changes = narrowed_changes(version.changes, columns, self._droppable_of, all_active=version.all_active)
        joins = large_joins(changes, self.is_small)
        return _Dear(self._reason(changes), joins) if joins else None

    def _droppable_of(self, step: Step) -> Collection[str]:
        if step.seq not in self._droppable:
            self._droppable[step.seq] = self.droppable(step)
        return self._droppable[step.seq]

    def _reason(self, changes: Sequence[Step]) -> str:
        seq, large = next(
            (step.seq, table) for step in changes for table in step.joined if not self.is_small(table.source)
        )
        return f"operation {seq} joins {large.source.dataset.id}"

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
        tables = step.joined_aliases - step.unmatched(version.segment, self.evaluator)
        joins = bool(tables - version.joined) or bool(step.overs)
        settles = joins or bool(reads & version.waiting)
        waiting = frozenset() if settles else version.waiting
        return replace(
            after,
            dear=self._dear_for(version.segment.varying, version) if step.overs else version.dear,
            changes=() if step.overs else (*version.changes, step),
            large=frozenset() if step.overs else version.large | large_joins([step], self.is_small),
            all_active=after.segment.all_active if step.overs else version.all_active,
            depth=version.depth + settles,
            size=version.size + settles + (sum(one.size for one in read) if step.overs else 0),
            waiting=frozenset() if joins else waiting | (step.writes.keys() & after.segment.varying.keys()),
            joined=(version.joined | (tables & self.shared.keys())) - stale_tables(step, self.shared),
        )

    def _added(self, step: Step, read: Sequence[_Version]) -> _Version:
        segment, size = step.added_segment(self.input, self.evaluator), 1 + sum(version.size for version in read)
        is_kept = step.seq in self.in_passes and size < CUT_EVERY
        dear = None if is_kept else self._dear_to_add(step, read)
        return _Version(segment, dear, size=size, all_active=segment.all_active)

    def _dear_to_add(self, step: Step, read: Sequence[_Version]) -> _Dear | None:
        if step.shuffles:
            return _Dear(f"operation {step.seq} shuffles rows")
        dear = (self._dear_for(version.segment.varying, version) for version in read)
        return next((one for one in dear if one is not None), None)
