"""Text to tree. The only reader of expression text; also expands `{{NAME}}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError
from lark.tree import Meta

from tallybook.errors import Problem, ProblemError, did_you_mean
from tallybook.expressions.tree import Call, ColumnName, Literal, Named, Node, Span, Star
from tallybook.source import SourceText

MAX_DEPTH = 100
MAX_DIGITS = 38


def parse(source: SourceText | str) -> Node:
    """The tree of an expression; a ProblemError with an ExpressionParseError when it is not one."""
    text = source if isinstance(source, SourceText) else SourceText(source)
    if not text.text.strip():
        raise _error("the expression is empty", Span(text, 0, len(text.text)))
    try:
        node: Node = _TreeBuilder(text).transform(_grammar().parse(text.text))
    except UnexpectedInput as error:
        raise _explain(error, text) from None
    except VisitError as error:
        raise error.orig_exc from None
    except RecursionError:
        raise _too_deep(Span(text, 0, len(text.text))) from None
    return node


def parse_selector(source: SourceText, selectors: Mapping[str, SourceText]) -> Node:
    """The tree of a selector with every `{{NAME}}` replaced by the named expression, each with its own place."""
    return _expand(parse(source), selectors, ())


def _expand(node: Node, selectors: Mapping[str, SourceText], stack: tuple[str, ...]) -> Node:
    if isinstance(node, Call):
        return replace(node, args=tuple(_expand(arg, selectors, stack) for arg in node.args))
    if not isinstance(node, Named):
        return node
    if node.name in stack:
        circle = " → ".join([*stack[stack.index(node.name) :], node.name])
        raise ProblemError(
            [Problem("SelectorCycle", f"selectors use each other in a circle: {circle}", place=node.span.place)]
        )
    if node.name not in selectors:
        hint = did_you_mean(node.name, selectors) or "define it under the project's `selectors`"
        raise ProblemError([Problem("UnknownSelector", f"no selector is named '{node.name}'", hint, node.span.place)])
    try:
        body = _expand(parse(selectors[node.name]), selectors, (*stack, node.name))
    except ProblemError as error:
        raise ProblemError([problem.within(via=node.span.place) for problem in error.problems]) from None
    if body.depth + len(stack) > MAX_DEPTH:
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


def _error(message: str, span: Span, hint: str | None = None) -> ProblemError:
    return ProblemError([Problem("ExpressionParseError", message, hint, span.place)])


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


@v_args(meta=True)
class _TreeBuilder(Transformer[Token, Node]):
    """Lark's tree to ours, bottom up."""

    def __init__(self, source: SourceText) -> None:
        super().__init__()
        self._source = source

    def _span(self, meta: Meta) -> Span:
        return Span(self._source, meta.start_pos, meta.end_pos)

    def _call(self, meta: Meta, name: str, args: list[Node], operator: bool = True) -> Call:
        span = self._span(meta)
        depth = 1 + max((arg.depth for arg in args), default=0)
        if depth > MAX_DEPTH:
            raise _too_deep(span)
        return Call(name, tuple(args), operator, span=span, depth=depth)

    def disjunction(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "OR", items)

    def conjunction(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "AND", items)

    def negation(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "NOT", items)

    def infix(self, meta: Meta, items: list[Node | Token]) -> Node:
        left, operator, right = items
        name = {"==": "=", "!=": "<>"}.get(str(operator), str(operator))
        return self._call(meta, name, [left, right])  # type: ignore[list-item]  # operands are nodes

    def minus(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "NEGATE", items)

    def is_in(self, meta: Meta, items: list[Node | list[Node]]) -> Node:
        subject, choices = items
        return self._call(meta, "IN", [subject, *choices])  # type: ignore[list-item, misc]

    def between(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "BETWEEN", items)

    def like(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "LIKE", items)

    def is_null(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "IS NULL", items)

    def is_not_in(self, meta: Meta, items: list[Node | list[Node]]) -> Node:
        return self._call(meta, "NOT", [self.is_in(meta, items)])

    def not_between(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "NOT", [self.between(meta, items)])

    def not_like(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "NOT", [self.like(meta, items)])

    def is_not_null(self, meta: Meta, items: list[Node]) -> Node:
        return self._call(meta, "NOT", [self.is_null(meta, items)])

    def arguments(self, _meta: Meta, items: list[Node]) -> list[Node]:
        return items

    def call(self, meta: Meta, items: list[Token | list[Node]]) -> Node:
        args = items[1] if len(items) > 1 else []
        return self._call(meta, str(items[0]).upper(), args, operator=False)  # type: ignore[arg-type]

    def call_star(self, meta: Meta, items: list[Token]) -> Node:
        return self._call(meta, str(items[0]).upper(), [Star(span=self._span(meta))], operator=False)

    def call_and(self, meta: Meta, items: list[Token | list[Node]]) -> Node:
        return self._call(meta, "AND", items[1], operator=False)  # type: ignore[arg-type]

    def call_or(self, meta: Meta, items: list[Token | list[Node]]) -> Node:
        return self._call(meta, "OR", items[1], operator=False)  # type: ignore[arg-type]

    def group(self, meta: Meta, items: list[Node]) -> Node:
        node = items[0]
        if node.depth >= MAX_DEPTH:
            raise _too_deep(self._span(meta))
        return replace(node, depth=node.depth + 1)

    def column(self, meta: Meta, items: list[Token]) -> Node:
        return ColumnName(tuple(str(item).strip("`") for item in items), span=self._span(meta))

    def selector(self, meta: Meta, items: list[Token]) -> Node:
        return Named(str(items[0])[2:-2].strip(), span=self._span(meta))

    def integer(self, meta: Meta, items: list[Token]) -> Node:
        digits = str(items[0]).lstrip("0") or "0"
        return Literal(int(self._number(meta, digits)), span=self._span(meta))

    def decimal(self, meta: Meta, items: list[Token]) -> Node:
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

    def string(self, meta: Meta, items: list[Token]) -> Node:
        return Literal(_unquote(str(items[0])), span=self._span(meta))

    def true(self, meta: Meta, _items: list[Token]) -> Node:
        return Literal(True, span=self._span(meta))

    def false(self, meta: Meta, _items: list[Token]) -> Node:
        return Literal(False, span=self._span(meta))

    def null(self, meta: Meta, _items: list[Token]) -> Node:
        return Literal(None, span=self._span(meta))


_HINTS = {
    "&": "join text with CONCAT(a, b); combine conditions with AND",
    "|": "combine conditions with OR",
    "^": "there is no power operator",
    "!": "write NOT condition, or <> for 'not equal'",
    ";": "separate arguments with a comma",
    "[": "write columns as table.column, odd names in backquotes",
    "{": "a named selector is written {{NAME}}",
    "}": "a named selector is written {{NAME}}",
    "“": "use straight quotes: \"text\" or 'text'",
    "”": "use straight quotes: \"text\" or 'text'",
    "‘": "use straight quotes: \"text\" or 'text'",
    "’": "use straight quotes: \"text\" or 'text'",
}
_KEYWORDS = {"or", "and", "not", "in", "between", "like", "is", "null", "true", "false"}


def _explain(error: UnexpectedInput, source: SourceText) -> ProblemError:
    text = source.text
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        end = len(text.rstrip())
        missing = text.count("(") - text.count(")")
        hint = f"{missing} closing parenthes{'is is' if missing == 1 else 'es are'} missing" if missing > 0 else None
        return _error("the expression ends too early", Span(source, max(0, end - 1), end), hint)
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream or 0
        char = text[at]
        span = Span(source, at, at + 1)
        if char in "\"'":
            return _error("a quote is opened and never closed", span, 'text ends with the quote it began with: "text"')
        if text.startswith("{{", at):
            return _error("'{{' has no matching '}}'", span, _HINTS["{"])
        if char == "`":
            return _error("a backquote is opened and never closed", span)
        return _error(f"'{char}' is not expected here", span, _HINTS.get(char))
    if isinstance(error, UnexpectedToken):
        token = error.token
        start = token.start_pos or 0
        span = Span(source, start, start + max(1, len(token)))
        if token.lower() in _KEYWORDS:
            return _error(
                f"the word {token.upper()} is not expected here", span, "a column of that name goes in backquotes"
            )
        return _error(f"'{token}' is not expected here", span, _token_hint(token, text, start))
    return _error("the expression cannot be read", Span(source, 0, len(text)))


def _token_hint(token: Token, text: str, start: int) -> str | None:
    before = text[:start].rstrip()
    if token == ")" and text.count(")") > text.count("("):
        return "there is one ')' too many"
    if token.type in ("NAME", "QUOTED", "INTEGER", "DECIMAL", "STRING", "SELECTOR") and before:
        return "an operator or a comma is missing before it"
    if token.type == "COMPARISON" and re.search(r"[<>=]", before):
        return "combine comparisons with AND: a < b AND b < c, or use BETWEEN"
    if token.type == "STAR":
        return "only COUNT(*) takes a star"
    return None
