"""Explains an expression to a user: its type, its normal form, and the functions and columns it uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tallybook.errors import ValidationError
from tallybook.expressions.check import Checker
from tallybook.expressions.parse import parse
from tallybook.expressions.registry import Function, find_function
from tallybook.expressions.scope import Resolved, Scope
from tallybook.expressions.show import show
from tallybook.expressions.tree import Call, ColumnName, Node, Over, Star, walk
from tallybook.model.columns import UNKNOWN, ColumnType


@dataclass(frozen=True)
class Explanation:
    """The explanation of an expression. `type` is None if it depends on columns of unknown type."""

    text: str
    type: ColumnType | None
    aggregate: bool
    functions: tuple[Function, ...]
    columns: dict[str, ColumnType | None]
    hint: str | None = None
    """What to write instead, where the expression mixes a total with the values of single rows."""


def explain(text: str, scope: Scope | None = None) -> Explanation:
    """Parses and checks an expression; raises ValidationError with its problems. Without a scope all columns exist."""
    tree = parse(text)
    nodes = list(walk(tree))
    calls = [find_function(_name(node)) for node in nodes if isinstance(node, Call)]
    called = [function for function in calls if function is not None]
    names = [node for node in nodes if isinstance(node, ColumnName)]
    over = any(isinstance(node, Over) for node in nodes)
    aggregate = not over and any(function.aggregate for function in called)
    seen = scope or Scope.of_anything()
    resolved = {show(name): column for name in names if isinstance(column := seen.resolve(name), Resolved)}
    grouped = frozenset(column.physical for column in resolved.values()) if aggregate else None
    checker = Checker(seen, grouped, over)
    typed = checker.check(tree)
    if checker.problems:
        raise ValidationError(checker.problems)
    types = {name: None if column.type == UNKNOWN else column.type for name, column in resolved.items()}
    type, functions = typed.type if typed else None, tuple(dict.fromkeys(called))
    return Explanation(show(tree), type, aggregate, functions, types, _share_hint(tree) if aggregate else None)


def _share_hint(tree: Node) -> str | None:
    """The hint for an expression such as `amount / SUM(amount)`, which usually is a share of a total."""
    outside = list(_outside_aggregates(tree))
    columns = [show(node) for node in outside if isinstance(node, ColumnName)]
    if not columns:
        return None
    total = next(show(node) for node in outside if isinstance(node, Call) and _is_aggregate(node))
    return f"{columns[0]} must be grouped by; to compare each row with a total, write {total} OVER () in `update`"


def _outside_aggregates(node: Node) -> Iterator[Node]:
    """The nodes that are not arguments of an aggregate."""
    yield node
    if isinstance(node, Call) and not _is_aggregate(node):
        for arg in node.args:
            yield from _outside_aggregates(arg)


def _is_aggregate(node: Call) -> bool:
    function = find_function(_name(node))
    return function is not None and function.aggregate


def _name(node: Call) -> str:
    return "COUNT_ALL" if node.name == "COUNT" and any(isinstance(arg, Star) for arg in node.args) else node.name
