"""Which columns of a dataset version the operations of a project use: what a change of the dataset can break."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tallybook.expressions.reads import columns_read
from tallybook.operations.aggregate import AggregateStep
from tallybook.operations.append import AppendStep
from tallybook.operations.base import Step
from tallybook.operations.output import OutputStep
from tallybook.operations.schema import SourceTable
from tallybook.operations.update import UpdateStep
from tallybook.project.bind import BoundProject


def columns_used(bound: BoundProject, dataset_id: str, version: int) -> dict[int, set[str]]:
    """By seq: bare names of the dataset's main table, and `alias.column` of its own lookups where it is the input."""
    assert bound.input is not None

    def meant(source: SourceTable) -> bool:
        return (source.dataset.id, source.dataset.version) == (dataset_id, version)

    is_input = meant(bound.input)
    return {step.seq: set(_of_input(step) if is_input else _of_other(step, meant)) for step in bound.steps}


def _of_input(step: Step) -> Iterator[str]:
    """Working columns that may have come from the input, and columns of its lookups."""
    if isinstance(step, AppendStep):
        yield from step.incoming
        return
    for typed in step.expressions.values():
        for column in columns_read(typed):
            if column.table is None:
                yield column.column
            elif column.table in step.before.lookups:
                yield f"{column.table}.{column.column}"
    for lookup in step.lookups:
        yield from (own for own, _theirs in lookup.pairs)
    if isinstance(step, UpdateStep):
        yield from (assignment.column for assignment in step.assignments)
    if isinstance(step, AggregateStep):
        yield from (key.column for key in step.grouping.keys)
        yield from step.grouping.results
    if isinstance(step, OutputStep) and step.named_columns:
        yield from step.columns


def _of_other(step: Step, meant: Callable[[SourceTable], bool]) -> Iterator[str]:
    """Columns of a dataset a step joins, looks up or appends."""
    read = [column for typed in step.expressions.values() for column in columns_read(typed)]
    aliases = {lookup.alias for lookup in step.lookups if meant(lookup.source)}
    for lookup in step.lookups:
        if meant(lookup.source):
            yield from (theirs for _own, theirs in lookup.pairs)
    if isinstance(step, UpdateStep):
        aliases |= {join.alias for join in step.joins if meant(join.source)}
    yield from (column.column for column in read if column.table in aliases)
    if isinstance(step, AppendStep) and meant(step.source):
        yield from (column.column for column in read)
        yield from (key.column for key in step.grouping.keys) if step.grouping else step.incoming
