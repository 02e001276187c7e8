"""Parses the text of an expression into a tree. No other module reads expression text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lark import Lark, Token, Transformer, UnexpectedInput
from lark.tree import Meta

from tallybook.errors import ProblemError
from tallybook.expressions.limits import MAX_DEPTH, MAX_DIGITS, Size, error, too_deep
from tallybook.expressions.syntax_errors import syntax_problem
from tallybook.expressions.tree import Call, ColumnName, Literal, Named, Node, Over, Span, Star
from tallybook.source import SourceText

LONG_LIST = 20
"""An IN with more literal choices than this is read by the grammar as one token."""


def parse(source: SourceText | str) -> Node:
    """Returns the tree of an expression; raises a ProblemError with an ExpressionParseError if the text is not one."""
    text = source if isinstance(source, SourceText) else SourceText(source)
    if not text.text.strip():
        raise error("the expression is empty", Span(text, 0, len(text.text)), "write a value, such as amount * 2")
    try:
        node: Node = _TreeBuilder(text).transform(_grammar().parse(text.text)).value
    except UnexpectedInput as mistake:
        raise ProblemError([syntax_problem(mistake, text)]) from None
    except RecursionError:
        raise too_deep(Span(text, 0, len(text.text))) from None
    return node


@cache
def _grammar() -> Lark:
    return Lark(
        (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8"),
        parser="lalr",
        keep_all_tokens=True,
        maybe_placeholders=False,
    )


_ESCAPE = re.compile(r"\\([\\\"'])")


def _unquote(text: str) -> str:
    quote = text[0]
    pieces = re.split(r"(\\[\\\"'])", text[1:-1])
    return "".join(piece[1] if _ESCAPE.fullmatch(piece) else piece.replace(quote * 2, quote) for piece in pieces)


def _column_part(written: str) -> str:
    """A name without its backquotes; a doubled one inside them is a backquote of the name."""
    return written[1:-1].replace("``", "`") if written.startswith("`") else str(written)


class _Built(NamedTuple):
    """The result of a grammar rule, and its position in the text, parentheses included."""

    value: Any
    start_pos: int
    end_pos: int


_MEANING = {
    *("NAME", "QUOTED", "INTEGER", "DECIMAL", "STRING", "SELECTOR", "COMPARISON", "LITERALS"),
    *("PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "AND_FUNCTION", "OR_FUNCTION"),
}
"""The tokens whose text matters; the others are implied by their rule."""


_LITERAL = re.compile(
    r"""-?[0-9]+(?:\.[0-9]+)?|"(?:[^"\\]|\\.|"")*+(?:"|\Z)|'(?:[^'\\]|\\.|'')*+(?:'|\Z)|NULL|TRUE|FALSE""",
    re.DOTALL | re.IGNORECASE,
)
_WORDS = {"NULL": None, "TRUE": True, "FALSE": False}
_NO_PARTS = ("arguments", "group")
"""The rules that make no node of their own."""


class _TreeBuilder(Transformer[Token, _Built]):
    """Converts Lark's tree to ours, bottom up.

    Positions come from the first and last token of a rule. Lark could record them, but does so for every rule an
    expression passes through, which takes as long as parsing itself.
    """

    def __init__(self, source: SourceText) -> None:
        super().__init__(visit_tokens=False)
        self._source = source
        self._size = Size()

    def __default__(self, data: str, children: list[Token | _Built], _meta: Meta) -> _Built:
        """Calls the method of a rule. Finding it here avoids a wrapper that Lark puts around each call."""
        start, end = children[0].start_pos, children[-1].end_pos
        assert start is not None and end is not None
        kept = [child.value for child in children if isinstance(child, _Built) or child.type in _MEANING]
        place = _Built(None, start, end)
        if data not in _NO_PARTS:
            self._size.add(self._span(place))
        return _Built(getattr(self, f"on_{data}")(place, kept), start, end)

    def _span(self, place: _Built) -> Span:
        return Span(self._source, place.start_pos, place.end_pos)

    def _call(self, place: _Built, name: str, args: list[Node], operator: bool = True) -> Call:
        span = self._span(place)
        depth = 1 + max((arg.depth for arg in args), default=0)
        if depth > MAX_DEPTH:
            raise too_deep(span)
        return Call(name, tuple(args), operator, span=span, depth=depth)

    def on_disjunction(self, place: _Built, items: list[Node]) -> Node:
        return self._call(place, "OR", items)

    def on_conjunction(self, place: _Built, items: list[Node]) -> Node:
        return self._call(place, "AND", items)

    def on_negation(self, place: _Built, items: list[Node]) -> Node:
        return self._call(place, "NOT", items)

    def on_infix(self, place: _Built, items: list[Node | Token]) -> Node:
        left, operator, right = items
        name = {"==": "=", "!=": "<>"}.get(str(operator), str(operator))
        return self._call(place, name, [left, right])  # type: ignore[list-item]  # operands are nodes

    def on_minus(self, place: _Built, items: list[Node]) -> Node:
        """A minus before a number belongs to it: the smallest integer has no positive counterpart."""
        operand = items[-1]
        value = operand.value if isinstance(operand, Literal) else None
        if isinstance(value, Decimal):
            return Literal(value.copy_negate() if value else value, span=self._span(place))
        if isinstance(value, int) and not isinstance(value, bool):
            return Literal(-value, span=self._span(place))
        return self._call(place, "NEGATE", [operand])

    def on_is_in(self, place: _Built, items: list[Node | list[Node]]) -> Node:
        subject, choices = items
        return self._call(place, "IN", [subject, *choices])  # type: ignore[list-item, misc]  # nodes

    def on_is_in_literals(self, place: _Built, items: list[Any]) -> Node:
        subject, text = items
        begin = place.end_pos - len(text)
        literals = [self._literal(match[0], begin + match.start()) for match in _LITERAL.finditer(text)]
        self._size.add_choices(len(literals), self._span(place))
        return self._call(place, "IN", [subject, *literals])

    def on_is_not_in_literals(self, place: _Built, items: list[Any]) -> Node:
        return self._call(place, "NOT", [self.on_is_in_literals(place, items)])

    def _literal(self, text: str, start: int) -> Node:
        place = _Built(None, start, start + len(text))
        if text[0] in "\"'":
            return self.on_string(place, [text])
        if text[0] == "-":
            return self.on_minus(place, [self._literal(text[1:], start + 1)])
        if text[0].isdigit():
            return self.on_decimal(place, [text]) if "." in text else self.on_integer(place, [text])
        return Literal(_WORDS[text.upper()], span=self._span(place))

    def on_between(self, place: _Built, items: list[Node]) -> Node:
        return self._call(place, "BETWEEN", items)

    def on_like(self, place: _Built, items: list[Node]) -> Node:
        return self._call(place, "LIKE", items)

    def on_is_null(self, place: _Built, items: list[Node]) -> Node:
        return self._call(place, "IS NULL", items)

    def on_is_not_in(self, place: _Built, items: list[Node | list[Node]]) -> Node:
        return self._call(place, "NOT", [self.on_is_in(place, items)])

    def on_not_between(self, place: _Built, items: list[Node]) -> Node:
        return self._call(place, "NOT", [self.on_between(place, items)])

    def on_not_like(self, place: _Built, items: list[Node]) -> Node:
        return self._call(place, "NOT", [self.on_like(place, items)])

    def on_is_not_null(self, place: _Built, items: list[Node]) -> Node:
        return self._call(place, "NOT", [self.on_is_null(place, items)])

    def on_arguments(self, _place: _Built, items: list[Node]) -> list[Node]:
        return items

    def on_call(self, place: _Built, items: list[Token | list[Node]]) -> Node:
        args = items[1] if len(items) > 1 else []
        return self._call(place, str(items[0]).upper(), args, operator=False)  # type: ignore[arg-type]  # nodes

    def on_call_star(self, place: _Built, items: list[Token]) -> Node:
        return self._call(place, str(items[0]).upper(), [Star(span=self._span(place))], operator=False)

    def on_over(self, place: _Built, items: list[Any]) -> Node:
        call, *keys = items
        return Over(call, tuple(keys), span=self._span(place), depth=call.depth)

    def on_call_and(self, place: _Built, items: list[Token | list[Node]]) -> Node:
        return self._call(place, "AND", items[1], operator=False)  # type: ignore[arg-type]  # nodes

    def on_call_or(self, place: _Built, items: list[Token | list[Node]]) -> Node:
        return self._call(place, "OR", items[1], operator=False)  # type: ignore[arg-type]  # nodes

    def on_group(self, place: _Built, items: list[Node]) -> Node:
        node = items[0]
        if node.depth >= MAX_DEPTH:
            raise too_deep(self._span(place))
        return replace(node, depth=node.depth + 1)

    def on_column(self, place: _Built, items: list[Token]) -> Node:
        return ColumnName(tuple(map(_column_part, items)), span=self._span(place))

    def on_selector(self, place: _Built, items: list[Token]) -> Node:
        name = str(items[0])[2:-2].strip()
        if not name:
            raise error("'{{}}' contains no name", self._span(place), "write the name between the braces: {{NAME}}")
        return Named(name, span=self._span(place))

    def on_integer(self, place: _Built, items: Sequence[str]) -> Node:
        digits = str(items[0]).lstrip("0") or "0"
        return Literal(int(self._number(place, digits)), span=self._span(place))

    def on_decimal(self, place: _Built, items: Sequence[str]) -> Node:
        whole, fraction = str(items[0]).split(".")
        digits = f"{whole.lstrip('0')}{fraction}"
        self._number(place, digits)
        return Literal(Decimal(f"{whole}.{fraction}"), span=self._span(place))

    def _number(self, place: _Built, digits: str) -> str:
        if len(digits) > MAX_DIGITS:
            raise error(f"the number has {len(digits)} digits; the maximum is {MAX_DIGITS}", self._span(place))
        return digits

    def on_string(self, place: _Built, items: Sequence[str]) -> Node:
        return Literal(_unquote(str(items[0])), span=self._span(place))

    def on_true(self, place: _Built, _items: list[Token]) -> Node:
        return Literal(True, span=self._span(place))

    def on_false(self, place: _Built, _items: list[Token]) -> Node:
        return Literal(False, span=self._span(place))

    def on_null(self, place: _Built, _items: list[Token]) -> Node:
        return Literal(None, span=self._span(place))
