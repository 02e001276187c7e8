"""How a text file writes numbers, dates and timestamps: `1.234,56`, `31.12.2026`.

Reading turns a text of that notation into the ISO form that `types.from_text` parses; writing does the reverse, and
fails the job on a value that the notation cannot express.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.expressions.functions.date_patterns import date_pattern
from tallybook.expressions.functions.timestamp_patterns import timestamp_pattern
from tallybook.model.columns import DATE, TIMESTAMP, ColumnType
from tallybook.model.datasource import FormatOptions
from tallybook.rows.raising import raising


@dataclass(frozen=True)
class Notation:
    """The notation of the values of a text file. Dates and timestamps without a pattern are in ISO form."""

    decimal: str = "."
    thousands: str | None = None
    date: str | None = None
    timestamp: str | None = None

    @classmethod
    def of(cls, options: FormatOptions) -> Notation:
        """Returns the notation of the options of a datasource."""
        return cls(options.decimal, options.thousands, options.date_format, options.timestamp_format)

    def iso(self, text: Column, type: ColumnType) -> Column:
        """Returns a text without surrounding spaces in ISO form; NULL if it is not in this notation."""
        if type.is_number and (self.decimal, self.thousands) != (".", None):
            return self._plain_number(text)
        if type == DATE and self.date is not None:
            days = date_pattern(self.date)
            return F.when(_fits(text, days.regex()), days.iso_date(text))
        if type == TIMESTAMP and self.timestamp is not None:
            times = timestamp_pattern(self.timestamp)
            return F.when(_fits(text, times.regex()), times.iso_timestamp(text))
        return text

    def _plain_number(self, text: Column) -> Column:
        """A separator must stand before every three digits: `1.234` is a number, `1.23` and `1234.567` are not."""
        whole, point = r"\d*", f"[{self.decimal}]"
        if self.thousands is not None:
            whole = rf"(?:\d{{1,3}}(?:[{self.thousands}]\d{{3}})+|\d*)"
        number = rf"[+-]?{whole}(?:{point}\d*)?(?:[eE][+-]?\d+)?"
        return F.when(_fits(text, number), F.translate(text, self.decimal + (self.thousands or ""), "."))

    def written(self, value: Column, type: T.DataType, column: str) -> Column:
        """Returns a value as text. Decimals get separators of thousands; integers do not, because they are often years
        or numbers of accounts. A value that would be read back as another one fails the job."""
        match type:
            case T.DecimalType():
                return self._number(value, type.scale)
            case T.DateType() if self.date is not None:
                days = date_pattern(self.date)
                text = F.date_format(value, days.for_java())
                return _exact(value, text, days.iso_date(text).try_cast("date"), column, self.date)
            case T.TimestampType() if self.timestamp is not None:
                times = timestamp_pattern(self.timestamp)
                text = F.date_format(value, times.for_java())
                return _exact(value, text, times.iso_timestamp(text).try_cast("timestamp_ltz"), column, self.timestamp)
        return value

    def _number(self, value: Column, scale: int) -> Column:
        if self.thousands is None:
            return F.translate(value.cast("string"), ".", self.decimal)
        pattern = "#,##0" + ("." + "0" * scale if scale else "")
        return F.translate(F.call_function("format_number", value, F.lit(pattern)), ",.", self.thousands + self.decimal)


ISO = Notation()


def _fits(text: Column, regex: str) -> Column:
    return F.rlike(text, F.lit(rf"\A{regex}\z"))


def _exact(value: Column, text: Column, read_back: Column, column: str, pattern: str) -> Column:
    failure = raising("WriteFailed", column=column, value=value.cast("string"), form=f"as {pattern}")
    return F.when(value.isNull() | read_back.eqNullSafe(value), text).otherwise(failure)
