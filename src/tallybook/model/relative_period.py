"""Periods counted from that of a run: the prior one, the same one last year, the year to date.

They are counted on the calendar of the run, at the level of its period. In a year a period is found by its number: the
third month of this fiscal year is compared with the third month of the last one, also if one of the two years has 53
weeks. Days of a calendar of months are found by their date instead. A period that the calendar does not have is
PeriodNotFound, never the nearest one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from tallybook.errors import RunError, fail
from tallybook.model.base import as_text
from tallybook.model.period import Calendar, Period

OFFSETS = {"prior": -1, "next": 1}
SAME_LAST_YEAR, YEAR_TO_DATE = "same_last_year", "year_to_date"
WORDS = (*OFFSETS, SAME_LAST_YEAR, YEAR_TO_DATE)
MAX_OFFSET = 9999
_ONE_DAY = timedelta(days=1)
_LONGEST = {"year": 372, "quarter": 120, "month": 42, "period": 35, "week": 7, "day": 1}
"""The most days of a period of a computed calendar, by level, or more."""


@dataclass(frozen=True)
class RelativePeriod:
    """A period as YAML names it: a word, or a number of periods to go forward or back."""

    written: str | int

    @property
    def is_several(self) -> bool:
        """True if it can be more than one period."""
        return self.written == YEAR_TO_DATE

    def __str__(self) -> str:
        return self.written if isinstance(self.written, str) else f"offset {self.written:+d}"

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate, serialization=core_schema.plain_serializer_function_ser_schema(cls._serialize)
        )

    @classmethod
    def _validate(cls, value: object) -> RelativePeriod:
        if isinstance(value, RelativePeriod):
            return value
        if isinstance(value, dict):
            offset = value.get("offset")
            if set(value) != {"offset"} or isinstance(offset, bool) or not isinstance(offset, int):
                raise PydanticCustomError("relative_period", "write a distance in periods as {offset: -2}")
            if abs(offset) > MAX_OFFSET:
                raise PydanticCustomError("relative_period", f"an offset has at most {MAX_OFFSET} periods")
            return cls(int(offset))
        word = as_text(value)
        if word not in WORDS:
            expected = ", ".join(f"'{word}'" for word in (*WORDS, "{offset: -2}"))
            raise PydanticCustomError("literal_error", "use one of: {expected}", {"expected": expected})
        return cls(word)

    def _serialize(self) -> object:
        return self.written if isinstance(self.written, str) else {"offset": self.written}

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        offset = {"type": "integer", "minimum": -MAX_OFFSET, "maximum": MAX_OFFSET}
        offset["description"] = "How many periods to go forward, or back if it is negative."
        by_offset = {"type": "object", "properties": {"offset": offset}, "required": ["offset"]}
        return {"anyOf": [{"enum": list(WORDS)}, by_offset | {"additionalProperties": False}]}


@dataclass(frozen=True)
class RunPeriod:
    """The period of a run, and the periods around it on a calendar."""

    period: Period
    calendar: Calendar

    @property
    def identifier(self) -> str:
        return self.period.identifier

    def relative(self, relative: RelativePeriod | None) -> tuple[Period, ...]:
        """Returns the periods that a relative period means, in order; without one the period itself."""
        if relative is None:
            return (self.period,)
        if relative.written == SAME_LAST_YEAR:
            return (self.same_last_year(),)
        if relative.written == YEAR_TO_DATE:
            return self.year_to_date()
        offset = OFFSETS.get(str(relative.written), relative.written)
        assert isinstance(offset, int), f"{relative.written} was not checked"
        return (self.shifted(offset),)

    def shifted(self, offset: int) -> Period:
        """Returns the period so many periods of the same level later, or earlier if the offset is negative."""
        if offset == 0:
            return self.period
        self._check_known()
        try:
            same_level = self._same_level(abs(offset))
        except (OverflowError, ValueError):
            same_level = ()
        index = next((i for i, one in enumerate(same_level) if one.start_date == self.period.start_date), 0) + offset
        if not 0 <= index < len(same_level):
            distance = f"{abs(offset)} periods " if abs(offset) > 1 else ""
            raise self._missing(f"{distance}{'after' if offset > 0 else 'before'}")
        return same_level[index]

    def same_last_year(self) -> Period:
        """Returns the period with the same number in the year before; a day of a calendar of months by its date."""
        first, last = self._year()
        if (self.period.start_date, self.period.end_date) == (first, last) and self.period.level != "day":
            return self.shifted(-1)
        if self.calendar.counts_days_by_date and self.period.level == "day":
            return self._same_date()
        number = len(self._since(first)) - 1
        try:
            before = self.calendar.year_of(first - _ONE_DAY)
            parts = self._parts(*before)
        except (OverflowError, RunError):
            raise self._missing("in the year before that of") from None
        if number >= len(parts):
            raise self._missing(f"number {number + 1} in the year before that of")
        return parts[number]

    def year_to_date(self) -> tuple[Period, ...]:
        """Returns every period of the level from the first of the year to this one."""
        return self._since(self._year()[0])

    def _since(self, first: date) -> tuple[Period, ...]:
        return self._parts(first, self.period.end_date)

    def _parts(self, first: date, last: date) -> tuple[Period, ...]:
        """The periods of the level from the beginning of a year on."""
        parts = self.calendar.between(self.period.level, first, last)
        if not parts or parts[0].start_date != first:
            raise fail(
                "PeriodNotFound",
                f"calendar '{self.calendar.id}' has no {self.period.level} that begins with the year, on {first}",
                hint="periods of a year are counted from its first day; list them all",
            )
        return parts

    def _same_date(self) -> Period:
        day = self.period.start_date
        try:
            then = day.replace(year=day.year - 1)
        except ValueError:
            raise self._missing("on the same date in the year before") from None
        return self.calendar.between("day", then, then)[0]

    def _year(self) -> tuple[date, date]:
        self._check_known()
        return self.calendar.year_of(self.period.start_date)

    def _same_level(self, reach: int) -> tuple[Period, ...]:
        """The periods of the level that are at most so many away, in order; all of a listed calendar."""
        if self.calendar.periods:
            return self.calendar.between(self.period.level, date.min, date.max)
        days = timedelta(days=(reach + 1) * _LONGEST[self.period.level])
        return self.calendar.between(self.period.level, self.period.start_date - days, self.period.end_date + days)

    def _check_known(self) -> None:
        """Raises PeriodNotFound if the period is not one of the calendar: nothing can be counted from it."""
        period = self.calendar.period(self.period.identifier)
        if (period.start_date, period.end_date) != (self.period.start_date, self.period.end_date):
            raise fail(
                "PeriodNotFound",
                f"calendar '{self.calendar.id}' has other dates for period '{period.identifier}', so the periods "
                "around it are not known",
                hint="use the dates of the calendar, or read no other periods",
            )

    def _missing(self, where: str) -> RunError:
        period = self.period
        return fail(
            "PeriodNotFound",
            f"calendar '{self.calendar.id}' has no {period.level} {where} '{period.identifier}'",
            hint="list it in the calendar" if self.calendar.periods else None,
        )
