"""Dates and the run's own time. Every timestamp is UTC; TODAY and NOW are the run's timestamp, also in a replay."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    DAY,
    DAY_OR_TIME,
    TEXT,
    WHOLE,
    Argument,
    Building,
    Computing,
    Function,
    Param,
    Refusal,
    Shape,
    always,
    params,
    register,
)
from tallybook.expressions.values import day_of, days_later, last_day_of_month, months_later
from tallybook.model.columns import DATE, INTEGER, TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import Column


def read_date(text: str) -> date | None:
    """A date written `2026-01-31`; None for anything else."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_timestamp(text: str) -> datetime | None:
    """An ISO timestamp of at most microseconds, which is all Python would keep; without a zone it is UTC. None for
    anything else."""
    if not re.match(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}", text) or re.search(r"[.,]\d{6}0*[1-9]", text):
        return None
    try:
        written = datetime.fromisoformat(text)
        return written.replace(tzinfo=UTC) if written.tzinfo is None else written.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def day(value: date) -> Column:
    """Returns a date literal made from text: Spark's conversion of a Python date uses Java's old calendar."""
    return F.lit(value.isoformat()).cast("date")


def timestamp_literal(value: datetime) -> Column:
    """Returns a timestamp literal with its zone, so that the session's time zone does not matter."""
    return F.lit(value.astimezone(UTC).isoformat()).cast("timestamp_ltz")


def on_day(number: Column) -> Column:
    """The date of a day number. One too far away fails, where Spark's date_add would wrap around."""
    return F.date_from_unix_date(number.cast("int"))


def _date_shape(count: int) -> Shape | None:
    if count == 1:
        return (Param("the text", TEXT, literal=True, instead="convert text with TO_DATE(…)"),)
    if count == 3:
        return tuple(Param(f"the {part}", WHOLE) for part in ("year", "month", "day"))
    return None


def _refuse_date(args: Sequence[Argument]) -> Refusal | None:
    if len(args) == 3 or read_date(str(args[0].literal)):
        return None
    return Refusal(f"'{args[0].literal}' is not a date", 'write year, month and day, as in DATE("2026-01-31")')


_TIMESTAMP_HINT = 'write TIMESTAMP("2026-01-31T12:00:00Z"), with at most microseconds'


def _refuse_timestamp(args: Sequence[Argument]) -> Refusal | None:
    if read_timestamp(str(args[0].literal)):
        return None
    return Refusal(f"'{args[0].literal}' is not a timestamp", _TIMESTAMP_HINT)


def _date(c: Building, *parts: Column) -> Column:
    if len(parts) == 3:
        return F.make_date(*(part.cast("int") for part in parts))
    written = read_date(str(c.args[0].literal))
    assert written is not None
    return day(written)


def _compute_date(c: Computing, *parts: int) -> date | None:
    try:
        return date(*parts) if len(parts) == 3 else read_date(str(c.args[0].literal))
    except (ValueError, OverflowError):
        raise ValueError(f"there is no day {parts[2]} in month {parts[1]} of year {parts[0]}") from None


def _timestamp(c: Building, _text: Column) -> Column:
    written = read_timestamp(str(c.args[0].literal))
    assert written is not None
    return timestamp_literal(written)


register(
    Function(
        "DATE",
        "dates",
        _date_shape,
        'DATE("2026-01-31"), or DATE(year, month, day)',
        always(DATE),
        "A date from a literal, or from year, month and day; a day that does not exist fails the run.",
        ("DATE(2026, 1, 31)", "2026-01-31"),
        _date,
        compute=_compute_date,
        refuse=_refuse_date,
        moves_dates=True,
    )
)
register(
    Function(
        "TIMESTAMP",
        "dates",
        params(Param("the text", TEXT, literal=True)),
        'TIMESTAMP("2026-01-31T12:00:00Z")',
        always(TIMESTAMP),
        "A timestamp literal; UTC if it names no zone.",
        ('TIMESTAMP("2026-01-31T12:00:00+01:00")', "2026-01-31 11:00:00"),
        _timestamp,
        compute=lambda _c, text: read_timestamp(text),
        refuse=_refuse_timestamp,
    )
)
register(
    Function(
        "TODAY",
        "dates",
        params(),
        "TODAY()",
        always(DATE),
        "The day of the run (UTC), the same for every row and in a replay.",
        ("DATEDIFF(TODAY(), TODAY())", "0"),
        lambda c: day(c.timestamp.astimezone(UTC).date()),
        compute=lambda c: c.timestamp.astimezone(UTC).date(),
    )
)
register(
    Function(
        "NOW",
        "dates",
        params(),
        "NOW()",
        always(TIMESTAMP),
        "The timestamp of the run (UTC), the same for every row and in a replay.",
        ("NOW() = NOW()", "true"),
        lambda c: timestamp_literal(c.timestamp),
        compute=lambda c: c.timestamp.astimezone(UTC),
    )
)


def _of_date(
    name: str, summary: str, result: str, on_spark: str, compute: Callable[[date], int], first: int = 0
) -> None:
    """Registers a function that gives a number for a date; Spark's own may count from another first number."""
    register(
        Function(
            name,
            "dates",
            params(Param("the date", DAY_OR_TIME)),
            f"{name}(date)",
            always(INTEGER),
            summary,
            (f'{name}(DATE("2026-01-31"))', result),
            lambda c, x: c.cast(getattr(F, on_spark)(x) + first if first else getattr(F, on_spark)(x), INTEGER),
            compute=lambda _c, value: compute(value),
        )
    )


_of_date("YEAR", "The year of the date, a number.", "2026", "year", lambda d: d.year)
_of_date("QUARTER", "The quarter of the date, from 1 to 4.", "1", "quarter", lambda d: (d.month + 2) // 3)
_of_date("MONTH", "The month of the date, a number.", "1", "month", lambda d: d.month)
_of_date(
    "WEEK",
    "The week of the year after ISO 8601: it begins on Monday, and week 1 is the one with the first Thursday.",
    "5",
    "weekofyear",
    lambda d: d.isocalendar().week,
)
_of_date("DAY", "The day of the month, a number.", "31", "day", lambda d: d.day)
_of_date(
    "WEEKDAY",
    "The day of the week, from 1 for Monday to 7 for Sunday.",
    "6",
    "weekday",
    lambda d: d.isoweekday(),
    first=1,
)
register(
    Function(
        "DATEDIFF",
        "dates",
        params(Param("the end", DAY_OR_TIME), Param("the start", DAY_OR_TIME)),
        "DATEDIFF(end, start)",
        always(INTEGER),
        "The days from start to end.",
        ('DATEDIFF(DATE("2026-03-01"), DATE("2026-02-01"))', "28"),
        lambda c, end, start: c.cast(F.datediff(end, start), INTEGER),
        compute=lambda _c, end, start: (day_of(end) - day_of(start)).days,
    )
)
register(
    Function(
        "DATEADD",
        "dates",
        params(Param("the date", DAY), Param("the days", WHOLE)),
        "DATEADD(date, days)",
        always(DATE),
        "The date a number of days later, or earlier when negative.",
        ('DATEADD(DATE("2026-01-31"), 1)', "2026-02-01"),
        lambda c, x, days: on_day(F.unix_date(x).cast("bigint") + days),
        compute=lambda _c, x, days: days_later(x, days),
        moves_dates=True,
    )
)
register(
    Function(
        "ADD_MONTHS",
        "dates",
        params(Param("the date", DAY), Param("the months", WHOLE)),
        "ADD_MONTHS(date, months)",
        always(DATE),
        "The same day a number of months later, or earlier when negative; the last day of a month that is too short.",
        ('ADD_MONTHS(DATE("2026-01-31"), 1)', "2026-02-28"),
        lambda c, x, months: F.add_months(x, months.cast("int")),
        compute=lambda _c, x, months: months_later(x, months),
        moves_dates=True,
    )
)
register(
    Function(
        "MONTH_END",
        "dates",
        params(Param("the date", DAY)),
        "MONTH_END(date)",
        always(DATE),
        "The last day of the date's month.",
        ('MONTH_END(DATE("2024-02-10"))', "2024-02-29"),
        lambda c, x: F.last_day(x),
        compute=lambda _c, x: last_day_of_month(x),
        aliases=("EOMONTH",),
    )
)
