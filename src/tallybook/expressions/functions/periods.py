"""The period of the run and its neighbours on the calendar. They are the same for every row."""

from __future__ import annotations

from collections.abc import Sequence

from tallybook.expressions.functions.dates import day
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    WHOLE,
    Argument,
    Computing,
    Function,
    Param,
    Refusal,
    always,
    params,
    register,
)
from tallybook.model.columns import DATE, STRING
from tallybook.model.period import Period
from tallybook.model.relative_period import MAX_OFFSET

_OFFSET = params(optional=[Param("the number of periods", WHOLE, literal=True)])


def _offset(args: Sequence[Argument]) -> int:
    return int(str(args[0].literal)) if args else 0


def _refuse_offset(args: Sequence[Argument]) -> Refusal | None:
    too_far = abs(_offset(args)) > MAX_OFFSET
    return Refusal(f"an offset has at most {MAX_OFFSET} periods") if too_far else None


def _period(computing: Computing) -> Period:
    """Raises PeriodNotFound if the calendar has no such period."""
    return computing.period.shifted(_offset(computing.args))


register(
    Function(
        "PERIOD",
        "dates",
        _OFFSET,
        "PERIOD(offset)",
        always(STRING),
        "The identifier of the run's period. An offset counts periods from there, forwards or, if negative, backwards.",
        ("PERIOD(-1)", "2025-12"),
        lambda c, *_: F.lit(_period(c).identifier),
        compute=lambda c, *_: _period(c).identifier,
        refuse=_refuse_offset,
    )
)
register(
    Function(
        "PERIOD_START",
        "dates",
        _OFFSET,
        "PERIOD_START(offset)",
        always(DATE),
        "The first day of the run's period, or of the period at an offset from it, as in PERIOD.",
        ("PERIOD_START()", "2026-01-01"),
        lambda c, *_: day(_period(c).start_date),
        compute=lambda c, *_: _period(c).start_date,
        refuse=_refuse_offset,
    )
)
register(
    Function(
        "PERIOD_END",
        "dates",
        _OFFSET,
        "PERIOD_END(offset)",
        always(DATE),
        "The last day of the run's period, or of the period at an offset from it, as in PERIOD.",
        ("PERIOD_END()", "2026-01-31"),
        lambda c, *_: day(_period(c).end_date),
        compute=lambda c, *_: _period(c).end_date,
        refuse=_refuse_offset,
    )
)
