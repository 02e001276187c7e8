"""Limits the size of expressions, and reports those that are too large."""

from __future__ import annotations

from dataclasses import dataclass

from tallybook.errors import Problem, ProblemError
from tallybook.expressions.tree import Span

MAX_DEPTH = 100
MAX_DIGITS = 38
MAX_PARTS = 10_000
"""Values, columns and functions of one expression, without the literal choices of a long IN. Spark takes tens of
seconds for so many, and for a few times as many it takes more memory than a small driver has."""
MAX_CHOICES = 200_000
"""Literal choices of the IN lists of one expression."""
_SMALLER = "move the listed values to a dataset and join it, or split the expression into several operations"


def error(message: str, span: Span, hint: str | None = None) -> ProblemError:
    """Returns an ExpressionParseError at a span of the text."""
    return ProblemError([Problem("ExpressionParseError", message, hint, span.place)])


def too_deep(span: Span) -> ProblemError:
    """Returns the error for an expression that is nested deeper than MAX_DEPTH."""
    return error(
        f"the expression is nested more than {MAX_DEPTH} levels deep",
        span,
        "split it into several assignments, or use IN (…) or SWITCH for long alternatives",
    )


@dataclass
class Size:
    """Counts the parts of an expression while it is read; raises an error when there are too many."""

    what: str = "the expression"
    parts: int = 0
    choices: int = 0

    def add(self, span: Span) -> None:
        self.parts += 1
        if self.parts > MAX_PARTS:
            raise error(f"{self.what} has more than {MAX_PARTS:,} parts", span, _SMALLER)

    def add_choices(self, count: int, span: Span) -> None:
        self.choices += count
        if self.choices > MAX_CHOICES:
            raise error(f"{self.what} has more than {MAX_CHOICES:,} choices in IN", span, _SMALLER)
