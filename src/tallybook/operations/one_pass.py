"""Computes several aggregates in one pass over the rows that they group, and decides which ones.

Several aggregates with the same results over the same rows read, join and filter these rows once instead of once each.
Their groups are kept, and each aggregate takes its own. That is faster where there are far fewer groups than rows, and
slower where almost every row is a group of its own. The decision needs no data and no Spark: `tallybook plan --explain`
shows it. Like `flow`, this asks only the contract of `base.Step`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tallybook.expressions.check import Typed
from tallybook.expressions.evaluate import Evaluator
from tallybook.model.columns import ROW_ID, ColumnType
from tallybook.operations.base import BuildContext, Step
from tallybook.operations.flow import live_columns
from tallybook.operations.grouping import grouped_together, is_mergeable
from tallybook.operations.lookups import filtered
from tallybook.operations.schema import SourceTable
from tallybook.rows.segments import Segment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tallybook.rows.working import KeepRows, Rows

_MOST_KEYS = 60
"""Spark numbers the combinations of keys with 64 bits."""


@dataclass
class _Candidate:
    """Aggregates that can be computed in one pass."""

    selector: Typed | None
    rows: tuple[tuple[int, int], ...]
    """The segments that they read, by their index, each with the number of operations that have changed it."""
    results: Sequence[tuple[Typed, ColumnType]]
    steps: list[Step] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    """The index of the segment that each of them adds."""


def find_passes(
    first: Segment, input: SourceTable, steps: Sequence[Step], evaluator: Evaluator, wanted: Collection[str]
) -> tuple[tuple[int, ...], ...]:
    """Returns the aggregates of each pass, by seq. `wanted` are the columns that are used after the last step."""
    if sum(step.summarises is not None for step in steps) < 2:
        return ()
    needed = live_columns(steps, wanted, active_only=True)[1:]
    segments, changes = [first], [0]
    candidates: list[_Candidate] = []
    open_ones: list[_Candidate] = []
    used = set[int]()  # segments of which other rows are made, or that are published or tested
    for step, live, by_active in zip(steps, live_columns(steps, wanted)[1:], needed, strict=True):
        selected = [index for index, one in enumerate(segments) if step.selects(one, evaluator) is not False]
        if step.takes_rows or step.forks or step.overs:
            used.update(selected)
        if step.takes_rows:  # it uses the summaries before it, and its failures must not be those of later aggregates
            open_ones = []
        candidate = _candidate(step, tuple((index, changes[index]) for index in selected), live, by_active, input)
        if candidate is not None:
            same = next((other for other in open_ones if _fit(candidate, other)), candidate)
            if same is candidate:
                open_ones.append(candidate)
                candidates.append(candidate)
            same.steps.append(step)
            same.made.append(len(segments))
        for index in selected if step.writes else ():
            changes[index] += 1
        segments = [step.segment_after(segment, evaluator) for segment in segments]
        if step.adds_rows:
            segments.append(step.added_segment(input, evaluator))
            changes.append(0)
    return tuple(_passes(candidates, set(range(len(segments))) if wanted else used))


def _candidate(
    step: Step,
    rows: tuple[tuple[int, int], ...],
    live: Collection[str],
    needed: Collection[str],
    input: SourceTable,
) -> _Candidate | None:
    """Returns the step as a candidate, if it is one. `live` are the columns that are needed after it, `needed` those
    that rows need which are never deleted. Where these differ a result may be overwritten unread: nothing computes it
    then, but a pass would, and might fail."""
    grouping = step.summarises
    if grouping is None or step.joined or not rows or not is_mergeable(grouping):
        return None
    keys = {key.column for key in grouping.keys}
    natural = set(input.dataset.natural_key_columns)
    if ROW_ID in keys or (natural and natural <= keys):
        return None
    results = {name: (typed, step.after.columns[name]) for name, typed in grouping.results.items() if name in live}
    return _Candidate(step.selector, rows, [*results.values()]) if results and results.keys() <= set(needed) else None


def _fit(one: _Candidate, other: _Candidate) -> bool:
    """True if two candidates read the same rows and compute the same results, in any order."""
    if (one.selector, one.rows) != (other.selector, other.rows):
        return False
    in_other = all(result in other.results for result in one.results)
    return in_other and all(result in one.results for result in other.results)


def _passes(candidates: Sequence[_Candidate], used: Collection[int]) -> Iterator[tuple[int, ...]]:
    """Yields the candidates with several aggregates whose summaries are used."""
    for candidate in candidates:
        steps = [step for step, made in zip(candidate.steps, candidate.made, strict=True) if made in used]
        keys = {key.column for step in steps if step.summarises for key in step.summarises.keys}
        if len(steps) > 1 and len(keys) <= _MOST_KEYS:
            yield tuple(step.seq for step in steps)


def summaries(steps: Sequence[Step], rows: Rows, build: BuildContext, keep: KeepRows) -> dict[int, DataFrame]:
    """Returns the groups of each step of a pass, by seq. `rows` are those that the steps may select; `keep` lets Spark
    compute the groups once."""
    first, live, types = steps[0], build.live, {step.seq: step.after.columns for step in steps}
    groupings = {step.seq: step.summarises.only(live[step.seq]) for step in steps if step.summarises is not None}
    selected = filtered(rows, first, build)
    return grouped_together(selected.frame, groupings, types, selected.compiler(build.compiler), keep)
