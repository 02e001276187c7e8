"""An expression's meaning: its type, and its value on a row. Both are worked out from the tree in one walk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from tallybook.errors import ProblemError
from tallybook.expressions.parse import parse
from tallybook.expressions.selectors import parse_selector
from tallybook.expressions.tree import Call, ColumnName, Literal, Named, Node, Over, Star
from tallybook.model.columns import ALIASES, BOOLEAN, INTEGER, NULL, STRING, ColumnType, decimal
from tallybook.source import SourceText

from . import values
from .readings import at_start, needed
from .values import FailedError, RefusedError

Row = Mapping[str, object]


@dataclass(frozen=True)
class Group:
    """What an aggregation is evaluated on: the key columns, and the rows that share them."""

    keys: Row
    rows: Sequence[Row]


@dataclass(frozen=True)
class Meaning:
    """The type of an expression and its value on a row, or on a Group; `literal` where the value is written out."""

    type: ColumnType
    of: Callable[[Any], object]
    literal: object = None
    constant: bool = False
    """Reads no column."""
    sums_integers: bool = False
    """SUM of integers is a decimal, yet may be written into an integer column."""

    @property
    def digits(self) -> ColumnType:
        """The decimal a number counts as among decimals: an integer literal has its own digits, others 19."""
        if self.type != INTEGER:
            return self.type if self.type.kind == "decimal" else decimal(1, 0)
        return decimal(len(str(abs(self.literal))) if isinstance(self.literal, int) else 19, 0)


@dataclass(frozen=True)
class View:
    """A table in sight. Joined tables are read as `alias.column`; their system columns only by that full name."""

    name: str
    columns: Mapping[str, ColumnType]
    hidden: Mapping[str, ColumnType] = field(default_factory=dict)
    joined: bool = False


@dataclass
class Selected:
    """The rows that an update selects, once they are known; or why they are not."""

    rows: Sequence[Row] | FailedError = ()


@dataclass(frozen=True)
class Context:
    """Where an expression stands: the tables in sight, the run's constants, and whether it is an aggregation."""

    views: tuple[View, ...]
    now: datetime
    period: str
    selectors: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, tuple[ColumnType, object]] = field(default_factory=dict)
    """The type and value of each parameter."""
    grouped: frozenset[str] | None = None
    """Of an aggregation: the key columns. None elsewhere."""
    inside: bool = False
    """Inside the argument of an aggregate."""
    branch: bool = False
    """Where a value is computed for some rows only: a branch of IF, an assignment under a selector."""
    reads: set[str] = field(default_factory=set)
    """Filled with the names of the joined tables that are read."""
    selected: Selected | None = None
    """Where OVER can be used: the rows it reads."""
    overs: list[Callable[[Row], object]] = field(default_factory=list)
    """Filled with the aggregates over groups, whether or not a branch chooses them."""
    aggregates: list[Callable[[Group], object]] = field(default_factory=list)
    """Filled with the aggregates of an aggregation, whether or not a branch chooses them."""


def meaning_of(text: str, context: Context) -> Meaning:
    """The meaning of an expression that may not use named selectors."""
    tree = _read(lambda: parse(text))
    if context.grouped is None:
        return mean(tree, context)
    context = replace(context, aggregates=[])
    meaning = mean(tree, context)
    if not context.aggregates:
        raise RefusedError("InvalidAggregation")

    def of(group: Group) -> object:
        for aggregate in context.aggregates:
            at_start(aggregate, group)
        return meaning.of(group)

    return replace(meaning, of=of)


def condition(text: str | None, context: Context) -> Callable[[Row], bool]:
    """Which rows a selector selects: those for which it is true. Without one, all."""
    if text is None:
        return lambda _row: True
    if not text.strip():
        raise RefusedError("InvalidSelector")
    sources = {name: SourceText(body) for name, body in context.selectors.items()}
    meaning = mean(_read(lambda: parse_selector(SourceText(text), sources)), context)
    if meaning.type not in (BOOLEAN, NULL):
        raise RefusedError("InvalidSelector")
    return lambda row: meaning.of(row) is True


def _read(parsing: Callable[[], Node]) -> Node:
    try:
        return parsing()
    except ProblemError as error:
        raise RefusedError(error.problem.type) from None


def mean(node: Node, context: Context) -> Meaning:
    if isinstance(node, Literal):
        return literal(node.value)
    if isinstance(node, ColumnName):
        return _column(node, context)
    if isinstance(node, Named) and node.body is not None:
        return mean(node.body, context)
    if isinstance(node, Call):
        return _call(node, context)
    if isinstance(node, Over):
        return _over(node, context)
    raise RefusedError("UnknownSelector" if isinstance(node, Named) else "ExpressionParseError")


def literal(value: object) -> Meaning:
    """An integer of more than 64 bits is a decimal of its digits."""
    if type(value) is int and not -(2**63) <= value < 2**63:
        value = Decimal(value)
    kinds = {bool: BOOLEAN, int: INTEGER, str: STRING, type(None): NULL}
    known = values.literal_digits(value) if isinstance(value, Decimal) else kinds[type(value)]
    return Meaning(known, lambda _row: value, value, constant=True)


def _column(node: ColumnName, context: Context) -> Meaning:
    if context.parameters and node.parts[0] == "params" and len(node.parts) == 2:
        if node.parts[1] not in context.parameters:
            raise RefusedError("ColumnNotFound")
        type, value = context.parameters[node.parts[1]]
        return Meaning(type, lambda _row: value, constant=True)
    view, name = find(node, context.views)
    if view.joined:
        context.reads.add(view.name)
    place = f"{view.name}.{name}" if view.joined else name
    known = {**view.columns, **view.hidden}[name]
    if context.grouped is None or context.inside:
        return Meaning(known, lambda row: needed(row[place]))
    if place not in context.grouped:
        raise RefusedError("InvalidAggregation")
    return Meaning(known, lambda group: group.keys[place])


def find(node: ColumnName, views: Sequence[View]) -> tuple[View, str]:
    """The table and column meant by `column` or `table.column`."""
    name = ALIASES.get(node.parts[-1], node.parts[-1])
    if len(node.parts) == 1:
        holders = [view for view in views if name in view.columns]
    else:
        named = [view for view in views if (view.name,) == node.parts[:-1]]
        holders = [view for view in named if name in view.columns or name in view.hidden]
    if len(holders) != 1:
        raise RefusedError("ColumnNotFound")
    return holders[0], name


def _call(node: Call, context: Context) -> Meaning:
    from .functions import defined

    functions, aggregates = defined()
    name = "COUNT_ALL" if node.name == "COUNT" and node.args and isinstance(node.args[0], Star) else node.name
    args = () if name == "COUNT_ALL" else node.args
    if name in aggregates:
        if context.grouped is None:
            raise RefusedError("AggregateMisplaced")
        if context.inside:
            raise RefusedError("InvalidAggregation")
        within = replace(context, inside=True)
        meaning = aggregates[name]([mean(arg, within) for arg in args])
        context.aggregates.append(meaning.of)
        return meaning
    if name in ("MIN", "MAX") and len(args) == 1 and context.grouped is not None and not context.inside:
        raise RefusedError("InvalidAggregation")  # MIN_AGG or MAX_AGG was meant
    if name not in functions:
        raise RefusedError("UnknownFunction" if context.grouped is None else "InvalidAggregation")
    return _function(functions[name], name, args, context)


def _over(node: Over, context: Context) -> Meaning:
    selected = context.selected
    if selected is None or context.grouped is not None:
        raise RefusedError("InvalidAggregation" if context.inside else "AggregateMisplaced")
    within = replace(context, grouped=frozenset(), selected=None, aggregates=[])
    meaning = mean(node.call, within)
    if not within.aggregates:
        raise RefusedError("InvalidAggregation")
    keys = [_column(key, context) for key in node.keys]
    if any(key.constant for key in keys):
        raise RefusedError("ColumnNotFound")

    def of(row: Row) -> object:
        mine = [key.of(row) for key in keys]
        rows = [other for other in needed(selected.rows) if [key.of(other) for key in keys] == mine]
        return meaning.of(Group({}, rows))

    context.overs.append(of)
    return Meaning(meaning.type, of)


def _function(define: Callable[..., Meaning], name: str, args: Sequence[Node], context: Context) -> Meaning:
    """What reads no column can be computed before there is a row."""
    choosing = replace(context, branch=context.branch or name in ("IF", "IFS", "SWITCH", "COALESCE"))
    given = [mean(arg, choosing if index else context) for index, arg in enumerate(args)]
    meaning = replace(define(given, context), constant=all(arg.constant for arg in given))
    if meaning.constant and not context.branch:
        at_start(meaning.of, {})
    return meaning


def common_type(meanings: Sequence[Meaning]) -> ColumnType:
    """The one type of values that may come from any of the meanings; NULL fits all."""
    present = [each for each in meanings if each.type != NULL]
    kinds = {each.type.kind for each in present}
    if not present:
        return NULL
    if "decimal" in kinds and kinds <= {"integer", "decimal"}:
        return values.holding(each.digits for each in present)
    if kinds == {"date", "timestamp"}:
        return ColumnType("timestamp")
    if len(kinds) > 1:
        raise RefusedError("TypeMismatch")
    return present[0].type


def require(meaning: Meaning, *kinds: str) -> Meaning:
    """The meaning, refused when its type is none of the kinds. A bare NULL fits everywhere."""
    if meaning.type.kind not in (*kinds, "null"):
        raise RefusedError("TypeMismatch")
    return meaning
