"""Checks which period or date a source is read for: its keys `period` and `as_of`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from tallybook.errors import Problem, ProblemError, did_you_mean
from tallybook.expressions.check import Checker, Typed
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Scope
from tallybook.expressions.tree import Call, ColumnName, Node
from tallybook.model.columns import DATE, UNKNOWN, VALID_FROM, VALID_TO
from tallybook.operations.binding import Binding
from tallybook.operations.schema import SourceTable

if TYPE_CHECKING:
    from tallybook.operations.sources import Source

PERIOD_END: Literal["period_end"] = "period_end"


def bind_time(source: Source, table: SourceTable, binding: Binding, *path: str | int, joined: bool) -> SourceTable:
    """Returns the table with the period and date that a source asks for; reports those it cannot be read for."""
    mode, name = table.table.temporal_mode, table.table.name
    if source.period is not None and mode == "none":
        message = f"table '{name}' has no time (`temporal_mode: none`): its rows are the same in every period"
        hint = "leave `period` out, or give the table `temporal_mode: period` or `bitemporal`"
        binding.report("InvalidArguments", message, *path, "period", hint=hint)
    elif source.period is not None and source.period.is_several and mode == "bitemporal":
        message = (
            f"table '{name}' is bitemporal, so it is read at one date, and `{source.period}` means several periods"
        )
        binding.report("InvalidArguments", message, *path, "period", hint="name one period, such as `prior`")
    if source.as_of is None:
        return replace(table, period=source.period)
    if reason := _why_not_as_of(source, table, joined=joined):
        binding.report("InvalidArguments", reason[0], *path, "as_of", hint=reason[1])
    return replace(table, period=source.period, as_of=PERIOD_END if source.as_of == PERIOD_END else "row")


def _why_not_as_of(source: Source, table: SourceTable, *, joined: bool) -> tuple[str, str] | None:
    """The reason and hint if `as_of` cannot be used; None if it can."""
    mode, name = table.table.temporal_mode, table.table.name
    if mode != "bitemporal":
        hint = "leave `as_of` out" if mode == "none" else "leave `as_of` out; `period` chooses the period"
        return f"table '{name}' is not bitemporal (`temporal_mode: {mode}`), so its rows have no dates to compare", hint
    if source.as_of == PERIOD_END:
        return None
    if not joined:
        return "`as_of` names a column of the working rows, and these rows are not joined to any", "use `period_end`"
    if source.aggregation is not None:
        message = "`as_of` names a column of the working rows, but an `aggregation` is computed before they are joined"
        return message, "use `period_end`, or leave the `aggregation` out"
    if source.period is not None:
        return "`as_of` names a column and `period` a period, and a source is read for one of them", "keep one of them"
    return None


def bind_validity(
    source: Source, alias: str, table: SourceTable, scope: Scope, binding: Binding, *path: str | int
) -> Typed | None:
    """Returns the condition that a row of the source is valid on the date of the working row; None without one.

    `scope` contains the working rows first, and the source by its alias.
    """
    if table.as_of != "row" or table.table.temporal_mode != "bitemporal" or source.as_of is None:
        return None
    day = _date_column(source.as_of, scope, binding, *path, "as_of")
    if day is None:
        return None
    start, end = ColumnName((alias, VALID_FROM)), ColumnName((alias, VALID_TO))
    not_ended = _call("OR", _call("IS NULL", end), _call(">", end, day))
    node = replace(_call("AND", _call("<=", start, day), not_ended), span=day.span)
    return Checker(scope).check(node)


def _call(name: str, *args: Node) -> Call:
    return Call(name, args, operator=True)


def _date_column(text: str, scope: Scope, binding: Binding, *path: str | int) -> ColumnName | None:
    """The column of the working rows that `as_of` names, with its table."""
    working = replace(scope, tables=scope.tables[:1])
    try:
        node = parse(binding.source_text(text, path))
    except ProblemError:
        node = None
    if not isinstance(node, ColumnName):
        message = f"'{text}' is neither `{PERIOD_END}` nor a column of the working rows"
        hint = "compute the date in an update first; for one date in the whole run use `--as-of`"
        binding.report("InvalidArguments", message, *path, hint=hint)
        return None
    column = working.resolve(node)
    if isinstance(column, Problem):
        near = did_you_mean(node.parts[-1], [PERIOD_END, *working.tables[0].columns])
        binding.note(replace(column, hint=near or column.hint), *path)
        return None
    if column.type not in (DATE, UNKNOWN):
        message = f"`as_of` needs a date, but column '{column.column}' is {column.type}"
        binding.report("TypeMismatch", message, *path, hint="make a date of it with TO_DATE(…) in an update first")
        return None
    return replace(node, parts=(working.tables[0].name, column.column))
