"""Writes a tree as text, with only the parentheses that are needed: `parse(show(tree)) == tree`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from enum import IntEnum

from tallybook.expressions.tree import Call, ColumnName, Literal, Named, Node, Over, quote


class _Level(IntEnum):
    """How tightly a piece of text holds together, loosest first."""

    OR = 0
    AND = 1
    NOT = 2
    COMPARISON = 3
    SUM = 4
    PRODUCT = 5
    UNARY = 6
    ATOM = 7


_ARITHMETIC = {
    "+": _Level.SUM,
    "-": _Level.SUM,
    "*": _Level.PRODUCT,
    "/": _Level.PRODUCT,
    "%": _Level.PRODUCT,
}
_PREDICATES = ("IN", "BETWEEN", "LIKE", "IS NULL")
_BARE_NAME = re.compile(r"(?!(?:OR|AND|NOT|IN|BETWEEN|LIKE|IS|NULL|TRUE|FALSE)$)[A-Za-z_][A-Za-z0-9_]*", re.IGNORECASE)


def show(node: Node) -> str:
    """The expression as a user would write it."""
    return _show(node)[0]


def _show(node: Node) -> tuple[str, _Level]:
    if isinstance(node, Call):
        return _operator(node) if node.operator else (f"{node.name}({_list(node.args)})", _Level.ATOM)
    if isinstance(node, Literal):
        return _literal(node.value)
    if isinstance(node, ColumnName):
        return ".".join(part if _BARE_NAME.fullmatch(part) else quote(part) for part in node.parts), _Level.ATOM
    if isinstance(node, Over):
        return f"{show(node.call)} OVER ({_list(node.keys)})", _Level.ATOM
    if isinstance(node, Named):
        return f"{{{{{node.name}}}}}", _Level.ATOM
    return "*", _Level.ATOM


def _at(node: Node, level: _Level) -> str:
    """Writes a node, in parentheses if it binds less tightly than `level`."""
    text, own = _show(node)
    return text if own >= level else f"({text})"


def _list(nodes: Sequence[Node]) -> str:
    return ", ".join(show(node) for node in nodes)


def _operator(node: Call) -> tuple[str, _Level]:
    name, args = node.name, node.args
    if name == "OR":
        return " OR ".join(_at(arg, _Level.AND) for arg in args), _Level.OR
    if name == "AND":
        return " AND ".join(_at(arg, _Level.NOT) for arg in args), _Level.AND
    if name == "NOT":
        return _negation(args[0])
    if name == "NEGATE":
        return f"-{_at(args[0], _Level.UNARY)}", _Level.UNARY
    if name in _PREDICATES:
        return _predicate(node), _Level.COMPARISON
    if name in _ARITHMETIC:
        level = _ARITHMETIC[name]
        return f"{_at(args[0], level)} {name} {_at(args[1], _Level(level + 1))}", level
    return f"{_at(args[0], _Level.SUM)} {name} {_at(args[1], _Level.SUM)}", _Level.COMPARISON


def _negation(arg: Node) -> tuple[str, _Level]:
    if isinstance(arg, Call) and arg.operator and arg.name in _PREDICATES:
        return _predicate(arg, "NOT "), _Level.COMPARISON
    return f"NOT {_at(arg, _Level.NOT)}", _Level.NOT


def _predicate(node: Call, negated: str = "") -> str:
    subject, *rest = (_at(arg, _Level.SUM) for arg in node.args)
    if node.name == "IS NULL":
        return f"{subject} IS {negated}NULL"
    if node.name == "IN":
        return f"{subject} {negated}IN ({_list(node.args[1:])})"
    return f"{subject} {negated}{node.name} {' AND '.join(rest)}"


def _literal(value: int | Decimal | str | bool | None) -> tuple[str, _Level]:
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper(), _Level.ATOM
    if isinstance(value, str):
        escaped = re.sub(r"\\(?=[\\\"']|\Z)", r"\\\\", value)
        return '"' + escaped.replace('"', '""') + '"', _Level.ATOM
    return format(value, "f") if isinstance(value, Decimal) else str(value), _Level.ATOM if value >= 0 else _Level.UNARY
