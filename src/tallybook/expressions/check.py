"""Checks the types of an expression: takes a tree, returns a typed tree and problems. Mistakes of users never raise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce

from tallybook.errors import Problem
from tallybook.expressions import decimals
from tallybook.expressions.elsewhere import arguments_hint, hint_for
from tallybook.expressions.registry import Argument, Function, Param, find_function, function_names
from tallybook.expressions.scope import PARAMETERS, Resolved, Scope
from tallybook.expressions.selectors import inside_selector
from tallybook.expressions.tree import Call, ColumnName, Literal, Named, Node, Over, Star, walk
from tallybook.model.columns import BOOLEAN, INTEGER, NULL, STRING, TIMESTAMP, UNKNOWN, ColumnType, decimal

INTEGER_RANGE = range(-(2**63), 2**63)


@dataclass(frozen=True)
class Typed:
    """A checked expression: its type, and the node it was made from."""

    node: Node
    type: ColumnType


@dataclass(frozen=True)
class TypedLiteral(Typed):
    value: object


@dataclass(frozen=True)
class TypedColumn(Typed):
    column: Resolved


@dataclass(frozen=True)
class TypedParameter(Typed):
    """A parameter of the project: a constant of the run."""

    name: str


@dataclass(frozen=True)
class TypedCast(Typed):
    """A value converted to a wider type, or a bare NULL that gets a type."""

    arg: Typed


@dataclass(frozen=True)
class TypedCall(Typed):
    function: Function
    args: tuple[Typed, ...]


@dataclass(frozen=True)
class TypedOver(Typed):
    """An aggregate over the rows that an operation selects and that have the same keys."""

    call: TypedCall
    keys: tuple[Resolved, ...]


@dataclass
class Checker:
    """Checks one expression against a scope. `grouped` is the set of grouped columns inside an aggregation."""

    scope: Scope
    grouped: frozenset[str] | None = None
    over: bool = False
    """True where `OVER` can be used."""
    problems: list[Problem] = field(default_factory=list)
    _inside_aggregate: bool = False
    _aggregates_seen: int = 0

    def check(self, node: Node) -> Typed | None:
        """The typed expression, or None when a problem was reported."""
        typed = self._check(node)
        if self.grouped is not None and not self._aggregates_seen and not self.problems:
            choices = ", ".join(function_names(aggregate=True))
            self._report(
                "InvalidAggregation", "the expression has no aggregate function", node, f"use one of: {choices}"
            )
        return typed if not self.problems else None

    def _report(self, type: str, message: str, node: Node, hint: str | None = None) -> None:
        self.problems.append(Problem(type, message, hint, node.span.place))

    def _check(self, node: Node) -> Typed | None:
        if isinstance(node, Literal):
            return TypedLiteral(node, literal_type(node.value), node.value)
        if isinstance(node, ColumnName):
            return self._column(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Over):
            return self._over(node)
        if isinstance(node, Named):
            return self._named(node)
        self._report("ExpressionParseError", "only COUNT(*) takes a '*'", node)
        return None

    def _column(self, node: ColumnName) -> Typed | None:
        column = self.scope.resolve(node)
        if isinstance(column, Problem):
            self.problems.append(column)
            return None
        if column.type == UNKNOWN:
            return None
        if column.table == PARAMETERS and self.scope.has_parameters:
            return TypedParameter(node, column.type, column.column)
        if self.grouped is not None and not self._inside_aggregate and column.physical not in self.grouped:
            self._report(
                "InvalidAggregation",
                f"column '{column.column}' is neither grouped nor inside an aggregate function",
                node,
                f"aggregate it, as in MAX_AGG({column.column}), or add it to `group_by`",
            )
            return None
        return TypedColumn(node, column.type, column)

    def _named(self, node: Named) -> Typed | None:
        if node.body is None:
            self._report(
                "ExpressionParseError",
                f"'{{{{{node.name}}}}}' cannot be used here",
                node,
                "named selectors work only in `selector` and `source_selector`; write the condition itself",
            )
            return None
        before = len(self.problems)
        typed = self._check(node.body)
        if typed is not None and typed.type not in (BOOLEAN, NULL):
            message = f"selector '{node.name}' has type {typed.type}, but must be a condition"
            self._report("InvalidSelector", message, node.body, condition_hint(typed))
            typed = None
        self.problems[before:] = [inside_selector(problem, node) for problem in self.problems[before:]]
        return typed

    def _call(self, node: Call) -> Typed | None:
        name = node.name
        if name == "COUNT" and len(node.args) == 1 and isinstance(node.args[0], Star):
            node, name = replace(node, args=()), "COUNT_ALL"
        function = find_function(name)
        if function is None or (function.operator and not node.operator):
            self._unknown(node)
            return None
        if function.aggregate:
            return self._aggregate(node, function)
        if self._means_many_rows(node):
            self._report(
                "InvalidAggregation",
                f"{node.name} compares values within one row",
                node,
                f"to compare rows, write {node.name}_AGG({node.args[0].span.text})",
            )
            return None
        return self._apply(node, function)

    def _means_many_rows(self, node: Call) -> bool:
        """True for MIN or MAX of one value in an aggregation, where the user needs MIN_AGG or MAX_AGG."""
        lonely = node.name in ("MIN", "MAX") and len(node.args) == 1
        return lonely and self.grouped is not None and not self._inside_aggregate

    def _unknown(self, node: Call) -> None:
        """Reports an unknown function: as an aggregate where one is needed and no argument aggregates."""
        aggregating = self.grouped is not None and not self._inside_aggregate and not _summarises(node)
        hint = hint_for(node.name, aggregate=aggregating)
        if aggregating:
            problem = Problem("InvalidAggregation", f"there is no aggregate function {node.name}", hint)
        else:
            problem = Problem("UnknownFunction", f"there is no function {node.name}", hint)
        name = replace(node.span, end=node.span.start + len(node.name))
        self.problems.append(problem.within(place=name.place))

    def _aggregate(self, node: Call, function: Function) -> Typed | None:
        row_wise = node.name.removesuffix("_AGG")
        if self.grouped is None:
            self._report(
                "AggregateMisplaced",
                f"{node.name} is an aggregate function and cannot be used here",
                node,
                self._where_aggregates_belong(node)
                + (f"; within a row use {row_wise}(a, b)" if row_wise != node.name else ""),
            )
            return None
        if self._inside_aggregate:
            self._report(
                "InvalidAggregation",
                f"{node.name} is nested inside another aggregate function",
                node,
                "compute the inner value in an earlier operation, then aggregate its result",
            )
            return None
        self._aggregates_seen += 1
        self._inside_aggregate = True
        try:
            return self._apply(node, function)
        finally:
            self._inside_aggregate = False

    def _where_aggregates_belong(self, node: Call) -> str:
        if not self.over:
            return "use aggregate functions in `aggregate`, or in the `aggregation` of a source"
        call = _text(node) or f"{node.name}(…)"
        return f"for a total of the rows that are selected, write {call} OVER (), or OVER (column) for each group"

    def _over(self, node: Over) -> Typed | None:
        """Checks an aggregate over a group. What it aggregates is checked as in an aggregation without keys."""
        if not self.over or self.grouped is not None:
            self._report_over(node)
            return None
        function = find_function(node.call.name)
        if function is not None and not function.aggregate:
            message = f"{node.call.name} is not an aggregate function, so it cannot have OVER"
            choices = ", ".join(function_names(aggregate=True))
            self._report("InvalidAggregation", message, node, f"use one of: {choices}")
            return None
        inner = Checker(self.scope, frozenset())
        call = inner.check(node.call)
        self.problems += inner.problems
        keys = [self._column(key) for key in node.keys]
        for key in keys:
            if isinstance(key, TypedParameter):
                message = f"'{key.node.span.text}' is a parameter, not a column to group by"
                self._report("ColumnNotFound", message, key.node, "leave it out: it is the same for all rows")
        columns = tuple(key.column for key in keys if isinstance(key, TypedColumn))
        if call is None or len(columns) < len(keys):
            return None
        if len({key.physical for key in columns}) < len(columns):
            self._report("DuplicateColumn", "OVER has the same column twice", node, "keep one")
            return None
        return TypedOver(node, call.type, call, columns) if isinstance(call, TypedCall) else call

    def _report_over(self, node: Over) -> None:
        hint = "compute it with an update into a column first, then use that column"
        if self._inside_aggregate:
            self._report("InvalidAggregation", "OVER is nested inside another aggregate function", node, hint)
        else:
            message = "OVER can be used only in the assignments of an update"
            self._report("AggregateMisplaced", message, node, hint)

    def _apply(self, node: Call, function: Function) -> Typed | None:
        args = [self._check(arg) for arg in node.args]
        shape = function.shapes(len(args))
        if shape is None:
            count = f"{len(args)} argument{'' if len(args) == 1 else 's'}"
            hint = arguments_hint(node.name, len(args)) or f"write {function.signature}"
            self._report("TypeMismatch", f"{node.name} cannot take {count}", node, hint)
            return None
        fits = [self._fits(node, function, param, arg) for param, arg in zip(shape, args, strict=True)]
        typed = [arg for arg in args if arg is not None]
        if not all(fits) or len(typed) < len(args):
            return None
        together = self._unify(node, shape, typed)
        if together is None:
            return None
        if any(param.literal and arg.type == NULL for param, arg in zip(shape, typed, strict=True)):
            return TypedLiteral(node, NULL, None)
        arguments = [argument(arg) for arg in together]
        refusal = function.refuse(arguments)
        if refusal:
            self._report("TypeMismatch", refusal.message, node, refusal.hint)
            return None
        return TypedCall(node, function.result(arguments), function, tuple(together))

    def _fits(self, node: Call, function: Function, param: Param, arg: Typed | None) -> bool:
        if arg is None:
            return False
        if arg.type not in param.accepts:
            self._report(
                "TypeMismatch",
                f"{_title(node)} needs {param.accepts.name} here, but {_subject(arg)} is {arg.type}",
                arg.node,
                (None if param.literal else _conversion_hint(arg, param.accepts.kinds))
                or f"write {function.signature}",
            )
            return False
        if param.literal and not isinstance(arg, TypedLiteral):
            self._report(
                "TypeMismatch",
                f"{node.name} needs a literal for {param.name}, not {_subject(arg)}",
                arg.node,
                param.instead or f"write {function.signature}",
            )
            return False
        return True

    def _unify(self, node: Call, shape: Sequence[Param], args: Sequence[Typed]) -> list[Typed] | None:
        """The arguments with NULLs typed and each group brought to its common type."""
        targets: dict[str | None, ColumnType] = {}
        for group in dict.fromkeys(param.group for param in shape if param.group):
            members = [arg for param, arg in zip(shape, args, strict=True) if param.group == group]
            target = common_type([argument(member) for member in members])
            if target is None:
                self._report_mixture(node, members)
                return None
            targets[group] = target
        return [cast_to(arg, targets.get(param.group, NULL), param) for param, arg in zip(shape, args, strict=True)]

    def _report_mixture(self, node: Call, members: Sequence[Typed]) -> None:
        first = next(member for member in members if member.type != NULL)
        odd = next(arg for arg in members if common_type([argument(first), argument(arg)]) is None)
        self._report(
            "TypeMismatch",
            f"{_title(node)} needs values of one type, but {_subject(first)} is {first.type} and "
            f"{_subject(odd)} is {odd.type}",
            odd.node,
            _conversion_hint(odd, frozenset({first.type.kind})),
        )


def literal_type(value: object) -> ColumnType:
    """The type of a literal; decimals have exactly their written digits."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INTEGER if value in INTEGER_RANGE else decimal(len(str(abs(value))), 0)
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        scale = -int(exponent)
        return decimal(max(len(str(int("".join(map(str, digits))))), scale, 1), scale)
    return STRING


def argument(typed: Typed) -> Argument:
    """Returns the type of an argument, and its value if it is a literal."""
    inner = typed
    while isinstance(inner, TypedCast):
        inner = inner.arg
    return Argument(typed.type, inner.value if isinstance(inner, TypedLiteral) else None)


def columns_read(typed: Typed) -> Iterator[Resolved]:
    """Yields every column that the expression reads, once for each time it is read."""
    if isinstance(typed, TypedColumn):
        yield typed.column
    elif isinstance(typed, TypedCast):
        yield from columns_read(typed.arg)
    elif isinstance(typed, TypedCall):
        for arg in typed.args:
            yield from columns_read(arg)
    elif isinstance(typed, TypedOver):
        yield from columns_read(typed.call)
        yield from typed.keys


def overs_of(typed: Typed) -> Iterator[TypedOver]:
    """Yields every aggregate over a group that the expression has."""
    if isinstance(typed, TypedOver):
        yield typed
    elif isinstance(typed, TypedCast):
        yield from overs_of(typed.arg)
    elif isinstance(typed, TypedCall):
        for arg in typed.args:
            yield from overs_of(arg)


def tables_read(typed: Typed) -> set[str]:
    """Returns the lookups and join aliases that the expression reads."""
    return {column.table for column in columns_read(typed) if column.table is not None}


def common_type(args: Sequence[Argument]) -> ColumnType | None:
    """Returns the type that all arguments widen to: integer → decimal, date → timestamp, NULL → any; None if none."""
    present = [arg for arg in args if arg.type != NULL]
    kinds = {arg.type.kind for arg in present}
    if not present:
        return NULL
    if kinds <= {"integer", "decimal"} and "decimal" in kinds:
        return reduce(decimals.common, (arg.widened for arg in present))
    if kinds == {"date", "timestamp"}:
        return TIMESTAMP
    return present[0].type if len(kinds) == 1 else None


def cast_to(arg: Typed, target: ColumnType, param: Param | None = None) -> Typed:
    """The argument as `target`; a bare NULL takes the parameter's default type."""
    if target == NULL:
        target = param.accepts.default if arg.type == NULL and param is not None else arg.type
    return arg if arg.type == target else TypedCast(arg.node, target, arg)


def _title(node: Call) -> str:
    """The function or operator as the user wrote it."""
    return f"'{'-' if node.name == 'NEGATE' else node.name}'" if node.operator else node.name


def _subject(typed: Typed, otherwise: str = "this value") -> str:
    """The text of an argument if it is short, else another word for it."""
    return _text(typed.node) or otherwise


def _text(node: Node) -> str | None:
    """The text of a node if it is short."""
    text = node.span.text
    return text if 0 < len(text) <= 40 and "\n" not in text else None


def _summarises(node: Node) -> bool:
    calls = (find_function(inner.name) for inner in walk(node) if isinstance(inner, Call))
    return any(function is not None and function.aggregate for function in calls)


def condition_hint(typed: Typed) -> str:
    """Returns a hint for a value that is used where a condition is needed."""
    comparison = "> 0" if typed.type.is_number else "IS NOT NULL"
    return f"write a condition, such as {_subject(typed, '…')} {comparison}"


def _conversion_hint(typed: Typed, wanted: frozenset[str]) -> str | None:
    actual = typed.type
    if wanted == {"boolean"}:
        return condition_hint(typed)
    if actual.kind == "boolean" and "integer" in wanted:
        return f"turn it into a number with IF({_subject(typed, '…')}, 1, 0)"
    if actual.kind == "string" and {"date", "decimal"} <= wanted:
        return "join text with CONCAT(a, b); convert it with TO_DECIMAL(…) or TO_DATE(…)"
    if actual.kind == "string" and "date" in wanted:
        return 'write dates as DATE("2026-01-31"), or convert with TO_DATE(…)'
    if actual.kind == "string" and "decimal" in wanted:
        return "convert text with TO_DECIMAL(…) or TO_INTEGER(…)"
    if actual.kind == "string" and "integer" in wanted:
        return "convert text with TO_INTEGER(…)"
    if actual.kind == "decimal" and "integer" in wanted:
        return "round it to an integer with ROUND(…)"
    if actual.kind == "timestamp" and "date" in wanted:
        return "take the day with TO_DATE(…)"
    if "string" in wanted:
        return "convert with TO_STRING(…)"
    return None
