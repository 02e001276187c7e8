"""Which columns a job needs between the steps it is made of.

Spark computes no others: what a later step overwrites unread, or what no output writes, cannot fail a job.
"""

from __future__ import annotations

from collections.abc import Sequence

from tallybook.expressions.reads import columns_read
from tallybook.operations.aggregate import AggregateStep
from tallybook.operations.append import AppendStep
from tallybook.operations.base import Step
from tallybook.operations.output import OutputStep
from tallybook.operations.schema import WorkingSchema
from tallybook.operations.update import UpdateStep


def needed_columns(steps: Sequence[Step], first: WorkingSchema) -> list[frozenset[str]]:
    """Before the first step, between all, and after the last: what it writes if it is an output, else every column."""
    last = steps[-1] if steps else None
    written = last.columns if isinstance(last, OutputStep) else (last.after if last else first).columns
    needed = [frozenset(written)]
    for step in reversed(steps):
        if not isinstance(step, OutputStep) or step is last:
            needed.append(_before(step, needed[-1]))
        else:
            needed.append(needed[-1])
    return needed[::-1]


def _before(step: Step, after: frozenset[str]) -> frozenset[str]:
    """What a step needs to make these columns."""
    if isinstance(step, AppendStep):
        return after
    used = [typed for path, typed in step.expressions.items() if step.column_at(path) in (None, *after)]
    read = {column.physical for typed in used for column in columns_read(typed) if column.table is None}
    read |= {mine for lookup in step.lookups for mine, _ in lookup.pairs}
    if isinstance(step, AggregateStep):
        read |= {key.physical for key in step.grouping.keys}
    if isinstance(step, UpdateStep) and step.selector is None:
        after = after.difference(each.column for each in step.assignments)
    return (after | read) & step.before.columns.keys()
