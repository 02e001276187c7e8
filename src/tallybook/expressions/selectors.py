"""Replaces each `{{NAME}}` in a selector with the expression of that name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tallybook.errors import Problem, ProblemError, did_you_mean
from tallybook.expressions.limits import MAX_DEPTH, Size, too_deep
from tallybook.expressions.parse import LONG_LIST, parse
from tallybook.expressions.tree import Call, Literal, Named, Node, Span
from tallybook.source import SourceText


def parse_selector(source: SourceText, selectors: Mapping[str, SourceText]) -> Node:
    """Parses a selector and replaces every `{{NAME}}` with the named expression, which keeps its own position."""
    try:
        return _Expansion(selectors).expand(parse(source), ())
    except RecursionError:
        raise too_deep(Span(source, 0, len(source.text))) from None


def inside_selector(problem: Problem, use: Named) -> Problem:
    """Adds the path of a named selector, and the place that uses it, to a problem of its text."""
    return problem.within(via=use.span.place, path=f"selectors.{use.name}")


def _is_long_list(node: Call) -> bool:
    """True for an IN whose choices are all literals; they are not expanded and not counted one by one."""
    return node.name == "IN" and len(node.args) > LONG_LIST and all(isinstance(arg, Literal) for arg in node.args[1:])


class _Expansion:
    """Replaces names with their expressions; limits the total size, since selectors can multiply each other."""

    def __init__(self, selectors: Mapping[str, SourceText]) -> None:
        self._selectors = selectors
        self._size = Size("the selector, with the selectors it uses,")

    def expand(self, node: Node, stack: tuple[str, ...]) -> Node:
        self._size.add(node.span)
        if isinstance(node, Named):
            return self._named(node, stack)
        if not isinstance(node, Call):
            return node
        if _is_long_list(node):
            self._size.add_choices(len(node.args) - 1, node.span)
            return replace(node, args=(self.expand(node.args[0], stack), *node.args[1:]))
        args = tuple(self.expand(arg, stack) for arg in node.args)
        depth = max(node.depth, 1 + max((arg.depth for arg in args), default=0))
        if depth > MAX_DEPTH:
            raise too_deep(node.span)
        return replace(node, args=args, depth=depth)

    def _named(self, node: Named, stack: tuple[str, ...]) -> Node:
        if node.name in stack:
            circle = " → ".join([*stack[stack.index(node.name) :], node.name])
            hint = "write out the condition in one of them"
            raise _problem("SelectorCycle", f"selectors refer to each other in a circle: {circle}", node.span, hint)
        if node.name not in self._selectors:
            hint = did_you_mean(node.name, self._selectors) or "define it under the project's `selectors`"
            raise _problem("UnknownSelector", f"there is no selector '{node.name}'", node.span, hint)
        if len(stack) >= MAX_DEPTH:
            raise too_deep(node.span)
        try:
            body = self.expand(parse(self._selectors[node.name]), (*stack, node.name))
        except ProblemError as error:
            raise ProblemError([inside_selector(problem, node) for problem in error.problems]) from None
        if body.depth >= MAX_DEPTH:
            raise too_deep(node.span)
        return replace(node, body=body, depth=body.depth + 1)


def _problem(type: str, message: str, span: Span, hint: str) -> ProblemError:
    return ProblemError([Problem(type, message, hint, span.place)])
