"""How large an expression may be, and the problems that say it is larger."""

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
_SMALLER = "put what it lists into a dataset and join that, or split it over several operations"


def error(message: str, span: Span, hint: str | None = None) -> ProblemError:
    """A text that is not an expression, or not one that can be evaluated."""
    return ProblemError([Problem("ExpressionParseError", message, hint, span.place)])


def too_deep(span: Span) -> ProblemError:
    """An expression with more levels than MAX_DEPTH."""
    return error(
        f"the expression is nested more than {MAX_DEPTH} levels deep",
        span,
        "split it over several assignments, or use IN (…) or SWITCH for long alternatives",
    )


@dataclass
class Size:
    """How large an expression has grown while it is read; raises the problem where it is too large."""

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
