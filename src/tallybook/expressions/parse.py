"""Text to tree. The only reader of expression text; also expands `{{NAME}}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput
from lark.tree import Meta

from tallybook.errors import Problem, ProblemError, did_you_mean
from tallybook.expressions.mistakes import explain
from tallybook.expressions.tree import Call, ColumnName, Literal, Named, Node, Span, Star
from tallybook.source import SourceText

MAX_DEPTH = 100
MAX_DIGITS = 38
MAX_PARTS = 20_000


def parse(source: SourceText | str) -> Node:
    """The tree of an expression; a ProblemError with an ExpressionParseError when it is not one."""
    text = source if isinstance(source, SourceText) else SourceText(source)
    if not text.text.strip():
        raise _error("the expression is empty", Span(text, 0, len(text.text)), "write a value, such as amount * 2")
    try:
        node: Node = _TreeBuilder(text).transform(_grammar().parse(text.text))
    except UnexpectedInput as error:
        raise ProblemError([explain(error, text)]) from None
    except RecursionError:
        raise _too_deep(Span(text, 0, len(text.text))) from None
    return node


def parse_selector(source: SourceText, selectors: Mapping[str, SourceText]) -> Node:
    """The tree of a selector with every `{{NAME}}` replaced by the named expression, each with its own place."""
    try:
        return _Expansion(selectors).expand(parse(source), ())
    except RecursionError:
        raise _too_deep(Span(source, 0, len(source.text))) from None


def inside_selector(problem: Problem, use: Named) -> Problem:
    """A problem of a named selector's text, with the selector as its path and the place that used it."""
    return problem.within(via=use.span.place, path=f"selectors.{use.name}")


class _Expansion:
    """Puts named expressions in place of their names; selectors that double each other end in a problem."""

    def __init__(self, selectors: Mapping[str, SourceText]) -> None:
        self._selectors = selectors
        self._parts = 0

    def expand(self, node: Node, stack: tuple[str, ...]) -> Node:
        self._parts += 1
        if isinstance(node, Named):
            return self._named(node, stack)
        if not isinstance(node, Call):
            return node
        args = tuple(self.expand(arg, stack) for arg in node.args)
        depth = max(node.depth, 1 + max((arg.depth for arg in args), default=0))
        if depth > MAX_DEPTH:
            raise _too_deep(node.span)
        return replace(node, args=args, depth=depth)

    def _named(self, node: Named, stack: tuple[str, ...]) -> Node:
        if node.name in stack:
            circle = " → ".join([*stack[stack.index(node.name) :], node.name])
            hint = "write out the condition in one of them"
            raise _problem("SelectorCycle", f"selectors use each other in a circle: {circle}", node.span, hint)
        if node.name not in self._selectors:
            hint = did_you_mean(node.name, self._selectors) or "define it under the project's `selectors`"
            raise _problem("UnknownSelector", f"no selector is named '{node.name}'", node.span, hint)
        if len(stack) >= MAX_DEPTH:
            raise _too_deep(node.span)
        if self._parts > MAX_PARTS:
            raise _error(f"the selector grows beyond {MAX_PARTS:,} parts", node.span, "its selectors repeat each other")
        try:
            body = self.expand(parse(self._selectors[node.name]), (*stack, node.name))
        except ProblemError as error:
            raise ProblemError([inside_selector(problem, node) for problem in error.problems]) from None
        if body.depth >= MAX_DEPTH:
            raise _too_deep(node.span)
        return replace(node, body=body, depth=body.depth + 1)


@cache
def _grammar() -> Lark:
    return Lark(
        (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8"),
        parser="lalr",
        propagate_positions=True,
        maybe_placeholders=False,
    )


def _problem(type: str, message: str, span: Span, hint: str | None = None) -> ProblemError:
    return ProblemError([Problem(type, message, hint, span.place)])


def _error(message: str, span: Span, hint: str | None = None) -> ProblemError:
    return _problem("ExpressionParseError", message, span, hint)


def _too_deep(span: Span) -> ProblemError:
    return _error(
        f"the expression is nested more than {MAX_DEPTH} levels deep",
        span,
        "split it over several assignments, or use IN (…) or SWITCH for long alternatives",
    )


_ESCAPE = re.compile(r"\\([\\\"'])")


def _unquote(text: str) -> str:
    quote = text[0]
    pieces = re.split(r"(\\[\\\"'])", text[1:-1])
    return "".join(piece[1] if _ESCAPE.fullmatch(piece) else piece.replace(quote * 2, quote) for piece in pieces)


class _TreeBuilder(Transformer[Token, Node]):
    """Lark's tree to ours, bottom up."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(visit_tokens=False)
        self._source = source

    def __default__(self, data: str, children: list[Any], meta: Meta) -> Any:
        """Every rule has a method; finding it here spares Lark a wrapper around each call."""
        return getattr(self, f"on_{data}")(meta, children)

    def _span(self, meta: Meta) -> Span:
        return Span(self._source, meta.start_pos, meta.end_pos)

    def _call(self, meta: Meta, name: str, args: list[Node], operator: bool = True) -> Call:
        span = self._span(meta)
        depth = 1 + max((arg.depth for arg in args), default=0)
        if depth > MAX_DEPTH:
            raise _too_deep(span)
        return Call(name, tuple(args), operator, span=span, depth=depth)

    def on_disjunction(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "OR", items)

    def on_conjunction(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "AND", items)

    def on_negation(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "NOT", items)

    def on_infix(self, meta: Meta, items: list[Node | Token]) -> Node:
        left, operator, right = items
        name = {"==": "=", "!=": "<>"}.get(str(operator), str(operator))
        return self._call(meta, name, [left, right])  # type: ignore[list-item]  # operands are nodes

    def on_minus(self, meta: Meta, items: list[Node]) -> Node:
        """A minus before a number belongs to it: the smallest integer has no positive counterpart."""
        value = items[0].value if isinstance(items[0], Literal) else None
        if isinstance(value, Decimal):
            return Literal(value.copy_negate() if value else value, span=self._span(meta))
        if isinstance(value, int) and not isinstance(value, bool):
            return Literal(-value, span=self._span(meta))
        return self._call(meta, "NEGATE", items)

    def on_is_in(self, meta: Meta, items: list[Node | list[Node]]) -> Node:
        subject, choices = items
        return self._call(meta, "IN", [subject, *choices])  # type: ignore[list-item, misc]

    def on_between(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "BETWEEN", items)

    def on_like(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "LIKE", items)

    def on_is_null(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "IS NULL", items)

    def on_is_not_in(self, meta: Meta, items: list[Node | list[Node]]) -> Node:
        return self._call(meta, "NOT", [self.on_is_in(meta, items)])

    def on_not_between(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "NOT", [self.on_between(meta, items)])

    def on_not_like(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "NOT", [self.on_like(meta, items)])

    def on_is_not_null(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "NOT", [self.on_is_null(meta, items)])

    def on_arguments(self, _meta: Meta, items: list[Node]) -> list[Node]:
        return items

    def on_call(self, meta: Meta, items: list[Token | list[Node]]) -> Node:
        args = items[1] if len(items) > 1 else []
        return self._call(meta, str(items[0]).upper(), args, operator=False)  # type: ignore[arg-type]

    def on_call_star(self, meta: Meta, items: list[Token]) -> Node:
        return self._call(meta, str(items[0]).upper(), [Star(span=self._span(meta))], operator=False)

    def on_call_and(self, meta: Meta, items: list[Token | list[Node]]) -> Node:
        return self._call(meta, "AND", items[1], operator=False)  # type: ignore[arg-type]

    def on_call_or(self, meta: Meta, items: list[Token | list[Node]]) -> Node:
        return self._call(meta, "OR", items[1], operator=False)  # type: ignore[arg-type]

    def on_group(self, meta: Meta, items: list[Node]) -> Node:
        node = items[0]
        if node.depth >= MAX_DEPTH:
            raise _too_deep(self._span(meta))
        return replace(node, depth=node.depth + 1)

    def on_column(self, meta: Meta, items: list[Token]) -> Node:
        return ColumnName(tuple(str(item).strip("`") for item in items), span=self._span(meta))

    def on_selector(self, meta: Meta, items: list[Token]) -> Node:
        name = str(items[0])[2:-2].strip()
        if not name:
            raise _error("'{{}}' names no selector", self._span(meta), "write the name between: {{NAME}}")
        return Named(name, span=self._span(meta))

    def on_integer(self, meta: Meta, items: list[Token]) -> Node:
        digits = str(items[0]).lstrip("0") or "0"
        return Literal(int(self._number(meta, digits)), span=self._span(meta))

    def on_decimal(self, meta: Meta, items: list[Token]) -> Node:
        whole, fraction = str(items[0]).split(".")
        digits = f"{whole.lstrip('0')}{fraction}"
        self._number(meta, digits)
        return Literal(Decimal(f"{whole}.{fraction}"), span=self._span(meta))

    def _number(self, meta: Meta, digits: str) -> str:
        if len(digits) > MAX_DIGITS:
            raise _error(
                f"the number has {len(digits)} digits; at most {MAX_DIGITS} are kept exactly", self._span(meta)
            )
        return digits

    def on_string(self, meta: Meta, items: list[Token]) -> Node:
        return Literal(_unquote(str(items[0])), span=self._span(meta))

    def on_true(self, meta: Meta, _items: list[Token]) -> Node:
        return Literal(True, span=self._span(meta))

    def on_false(self, meta: Meta, _items: list[Token]) -> Node:
        return Literal(False, span=self._span(meta))

    def on_null(self, meta: Meta, _items: list[Token]) -> Node:
        return Literal(None, span=self._span(meta))
