"""Joins the lookups an operation reads: declared once on the dataset, joined only where used."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from tallybook.expressions.check import Checker, Typed
from tallybook.expressions.parse import parse
from tallybook.expressions.reads import columns_read, tables_read
from tallybook.operations.base import Applying, Step
from tallybook.operations.schema import LookupTable, WorkingSchema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def lookup_condition(lookup: LookupTable, schema: WorkingSchema) -> Typed:
    """The pairs of a lookup as the condition a runtime join would have; checked when the dataset was."""
    text = " AND ".join(f"`{schema.table}`.`{own}` = `{lookup.alias}`.`{theirs}`" for own, theirs in lookup.pairs)
    typed = Checker(schema.scope()).check(parse(text))
    assert typed is not None, f"lookup {lookup.alias} was not checked"
    return typed


def with_lookups(frame: DataFrame, step: Step, applying: Applying) -> DataFrame:
    """The frame with the columns of every lookup the step reads."""
    from tallybook.rows.joins import Join, attach

    if not step.lookups:
        return frame
    counts = counted(step, applying, ())
    for lookup in step.lookups:
        read = (c for typed in step.expressions.values() for c in columns_read(typed) if c.table == lookup.alias)
        columns = list(dict.fromkeys(column.column for column in read))
        join = Join.on(lookup_condition(lookup, step.before), lookup.alias, columns)
        other = applying.load(lookup.source)
        frame = attach(frame, other, join, counts, applying.compiler, step.seq)
    return frame


def counted(step: Step, applying: Applying, beside: Collection[str]) -> Column | None:
    """The rows for which a second match is an error, None for all: the selected ones; every active one when the
    selector reads more than the tables that stand beside the rows already, for it would depend on the match."""
    readable = step.selector is not None and tables_read(step.selector) <= set(beside)
    return applying.chosen(step.selector if readable else None)


def with_values(beside: DataFrame, values: Mapping[str, Column], step: Step) -> DataFrame:
    """The working dataset after a step that sets columns, without what it has joined beside them.

    Where nothing was joined only what changes is named: Spark analyses every column of a select, and there may be
    hundreds.
    """
    from pyspark.sql import functions as F

    from tallybook.rows import sql

    if not step.sources:
        return beside.withColumns(dict(values)) if values else beside
    kept = (values[name].alias(name) if name in values else F.col(sql.name(name)) for name in step.after.columns)
    return beside.select(*kept)
