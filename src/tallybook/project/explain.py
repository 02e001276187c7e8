"""Explains an expression to a user: its type, its normal form, and the functions and columns it uses."""

from __future__ import annotations

from dataclasses import dataclass

from tallybook.errors import ValidationError
from tallybook.expressions.check import Checker
from tallybook.expressions.parse import parse
from tallybook.expressions.registry import Function, find_function
from tallybook.expressions.scope import Resolved, Scope
from tallybook.expressions.show import show
from tallybook.expressions.tree import Call, ColumnName, Star, walk
from tallybook.model.columns import UNKNOWN, ColumnType


@dataclass(frozen=True)
class Explanation:
    """The explanation of an expression. `type` is None if it depends on columns of unknown type."""

    text: str
    type: ColumnType | None
    aggregate: bool
    functions: tuple[Function, ...]
    columns: dict[str, ColumnType | None]


def explain(text: str, scope: Scope | None = None) -> Explanation:
    """Parses and checks an expression; raises ValidationError with its problems. Without a scope all columns exist."""
    tree = parse(text)
    nodes = list(walk(tree))
    calls = [find_function(_name(node)) for node in nodes if isinstance(node, Call)]
    called = [function for function in calls if function is not None]
    names = [node for node in nodes if isinstance(node, ColumnName)]
    aggregate = any(function.aggregate for function in called)
    seen = scope or Scope.of_anything()
    resolved = {show(name): column for name in names if isinstance(column := seen.resolve(name), Resolved)}
    grouped = frozenset(column.physical for column in resolved.values()) if aggregate else None
    checker = Checker(seen, grouped)
    typed = checker.check(tree)
    if checker.problems:
        raise ValidationError(checker.problems)
    types = {name: None if column.type == UNKNOWN else column.type for name, column in resolved.items()}
    return Explanation(show(tree), typed.type if typed else None, aggregate, tuple(dict.fromkeys(called)), types)


def _name(node: Call) -> str:
    return "COUNT_ALL" if node.name == "COUNT" and any(isinstance(arg, Star) for arg in node.args) else node.name
