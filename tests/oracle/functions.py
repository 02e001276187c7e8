"""Every function and operator, one short definition each: from the meanings of its arguments to its own."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

from tallybook.model.columns import BOOLEAN, DATE, DECIMAL, INTEGER, NULL, STRING, TIMESTAMP, ColumnType, decimal

from . import values
from .expressions import Context, Meaning, common_type, require
from .values import FailedError, RefusedError, as_integer, half_up, put

Args = Sequence[Meaning]
FUNCTIONS: dict[str, Callable[[Args, Context], Meaning]] = {}
AGGREGATES: dict[str, Callable[[Args], Meaning]] = {}
NUMBERS = ("integer", "decimal")
MOMENTS = ("date", "timestamp")
ORDERED = (*NUMBERS, *MOMENTS, "string")


def function(*names: str) -> Callable[[Callable[[Args, Context], Meaning]], Callable[[Args, Context], Meaning]]:
    def note(define: Callable[[Args, Context], Meaning]) -> Callable[[Args, Context], Meaning]:
        FUNCTIONS.update(dict.fromkeys(names, define))
        return define

    return note


def strict(type: ColumnType, compute: Callable[..., object], args: Args) -> Meaning:
    """A function that is NULL when an argument is; its result is put into its type."""

    def of(row: Any) -> object:
        given = [arg.of(row) for arg in args]
        return None if None in given else put(compute(*given), type)

    return Meaning(type, of)


def simple(name: str, kinds: Sequence[Sequence[str]], type: ColumnType, compute: Callable[..., object]) -> None:
    """Registers a strict function with fixed parameter kinds and result."""

    def define(args: Args, _context: Context) -> Meaning:
        if len(args) != len(kinds):
            raise RefusedError("TypeMismatch")
        return strict(type, compute, [require(arg, *kind) for arg, kind in zip(args, kinds, strict=True)])

    FUNCTIONS[name] = define


# --- logic ----------------------------------------------------------------------------------------------------------


def all_true(verdicts: Sequence[Callable[[], object]]) -> bool | None:
    """Three-valued AND, left to right, done at the first false."""
    known: bool | None = True
    for verdict in verdicts:
        each = verdict()
        if each is False:
            return False
        known = None if each is None else known
    return known


def negated(verdict: object) -> bool | None:
    return None if verdict is None else not verdict


def _junction(decisive: bool) -> Callable[[Args, Context], Meaning]:
    def define(args: Args, _context: Context) -> Meaning:
        truths = [require(arg, "boolean") for arg in args]

        def of(row: Any) -> object:
            known: bool | None = not decisive
            for truth in truths:
                each = truth.of(row)
                if each is decisive:
                    return decisive
                known = None if each is None else known
            return known

        return Meaning(BOOLEAN, of)

    return define


FUNCTIONS["AND"] = _junction(False)
FUNCTIONS["OR"] = _junction(True)
simple("NOT", [["boolean"]], BOOLEAN, lambda x: not x)


@function("IF")
def _if(args: Args, _context: Context) -> Meaning:
    test, yes, no = (*args, Meaning(NULL, lambda _row: None))[:3]
    require(test, "boolean")
    type = common_type([yes, no])
    return Meaning(type, lambda row: put((yes if test.of(row) is True else no).of(row), type))


@function("COALESCE")
def _coalesce(args: Args, _context: Context) -> Meaning:
    type = common_type(args)
    return Meaning(type, lambda row: put(next((v for v in (a.of(row) for a in args) if v is not None), None), type))


@function("SWITCH")
def _switch(args: Args, _context: Context) -> Meaning:
    subject, *rest = args
    default = rest.pop() if len(rest) % 2 else Meaning(NULL, lambda _row: None)
    choices, results = rest[::2], rest[1::2]
    common_type([subject, *choices])
    type = common_type([*results, default])

    def of(row: Any) -> object:
        found = subject.of(row)
        for choice, result in zip(choices, results, strict=True):
            if equal(found, choice.of(row)):
                return put(result.of(row), type)
        return put(default.of(row), type)

    return Meaning(type, of)


@function("ISNULL", "IS_NULL", "IS NULL")
def _is_null(args: Args, _context: Context) -> Meaning:
    return Meaning(BOOLEAN, lambda row: args[0].of(row) is None)


# --- comparisons ----------------------------------------------------------------------------------------------------


def comparable(value: Any) -> Any:
    """Numbers by value, moments by time, text by code point (as Python does)."""
    return values.as_moment(value) if isinstance(value, date) else value


def equal(a: object, b: object) -> bool | None:
    return None if a is None or b is None else bool(comparable(a) == comparable(b))


def not_above(a: object, b: object) -> bool | None:
    return None if a is None or b is None else bool(comparable(a) <= comparable(b))


def _comparison(name: str, test: Callable[[Any, Any], bool], kinds: Sequence[str]) -> None:
    def define(args: Args, _context: Context) -> Meaning:
        common_type([require(arg, *kinds) for arg in args])
        return strict(BOOLEAN, lambda a, b: test(comparable(a), comparable(b)), args)

    FUNCTIONS[name] = define


_comparison("=", lambda a, b: a == b, (*ORDERED, "boolean"))
_comparison("<>", lambda a, b: a != b, (*ORDERED, "boolean"))
_comparison("<", lambda a, b: a < b, ORDERED)
_comparison("<=", lambda a, b: a <= b, ORDERED)
_comparison(">", lambda a, b: a > b, ORDERED)
_comparison(">=", lambda a, b: a >= b, ORDERED)


@function("IN")
def _in(args: Args, _context: Context) -> Meaning:
    common_type(args)
    subject, *choices = args

    def of(row: Any) -> object:
        value = subject.of(row)
        return negated(all_true([lambda c=c: negated(equal(value, c.of(row))) for c in choices]))  # type: ignore[misc]

    return Meaning(BOOLEAN, of)


@function("BETWEEN")
def _between(args: Args, _context: Context) -> Meaning:
    common_type([require(arg, *ORDERED) for arg in args])

    def of(row: Any) -> object:
        value, low, high = (arg.of(row) for arg in args)
        return all_true([lambda: not_above(low, value), lambda: not_above(value, high)])

    return Meaning(BOOLEAN, of)


@function("LIKE")
def _like(args: Args, _context: Context) -> Meaning:
    text, pattern = (require(arg, "string") for arg in args)
    if isinstance(pattern.literal, str):
        try:
            like_pattern(pattern.literal)
        except FailedError:
            raise RefusedError("TypeMismatch") from None
    return strict(BOOLEAN, lambda x, p: like_pattern(p).fullmatch(x) is not None, [text, pattern])


def like_pattern(pattern: str) -> re.Pattern[str]:
    """% is any text, _ one character, a backslash takes them (or itself) literally and nothing else."""
    parts, rest = [], iter(pattern)
    for char in rest:
        if char == "\\":
            escaped = next(rest, "")
            if escaped not in ("%", "_", "\\"):
                raise FailedError("EvaluationError")
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(char, re.escape(char)))
    return re.compile("".join(parts), re.DOTALL)


# --- numbers --------------------------------------------------------------------------------------------------------


def _arithmetic(
    compute: Callable[[Fraction, Fraction], Fraction], digits: Callable[[ColumnType, ColumnType], ColumnType]
) -> Callable[[Args, Context], Meaning]:
    """Two integers give an integer, a decimal among them a decimal."""

    def define(args: Args, _context: Context) -> Meaning:
        a, b = (require(arg, *NUMBERS) for arg in args)
        whole = all(arg.type in (INTEGER, NULL) for arg in args)
        type = INTEGER if whole else digits(a.digits, b.digits)
        return strict(type, lambda x, y: compute(Fraction(x), Fraction(y)), args)

    return define


def _days(sign: int, otherwise: Callable[[Args, Context], Meaning]) -> Callable[[Args, Context], Meaning]:
    """date ± integer is days, integer + date too."""

    def define(args: Args, context: Context) -> Meaning:
        kinds = [arg.type.kind for arg in args]
        if kinds[0] == "date":
            return strict(DATE, lambda d, n: later(d, sign * n), [args[0], require(args[1], "integer")])
        if kinds[1] == "date" and sign > 0:
            return strict(DATE, lambda n, d: later(d, n), [require(args[0], "integer"), args[1]])
        return otherwise(args, context)

    return define


def _by_zero(type: Callable[[Meaning, Meaning], ColumnType], compute: Callable[[Fraction, Fraction], Fraction]) -> Any:
    """Dividing by zero gives NULL."""

    def define(args: Args, _context: Context) -> Meaning:
        a, b = (require(arg, *NUMBERS) for arg in args)
        return strict(type(a, b), lambda x, y: None if y == 0 else compute(Fraction(x), Fraction(y)), args)

    return define


def _remainder(x: Fraction, y: Fraction) -> Fraction:
    """With the sign of the dividend."""
    return x - y * int(x / y)


FUNCTIONS["+"] = _days(1, _arithmetic(lambda x, y: x + y, values.added))
FUNCTIONS["-"] = _days(-1, _arithmetic(lambda x, y: x - y, values.added))
FUNCTIONS["*"] = _arithmetic(lambda x, y: x * y, values.multiplied)
FUNCTIONS["/"] = _by_zero(lambda a, b: values.divided(a.digits, b.digits), lambda x, y: x / y)
FUNCTIONS["%"] = FUNCTIONS["MOD"] = _by_zero(
    lambda a, b: INTEGER if a.type == b.type == INTEGER else values.remainder(a.digits, b.digits), _remainder
)


@function("NEGATE")
def _negate(args: Args, _context: Context) -> Meaning:
    return strict(require(args[0], *NUMBERS).type, lambda x: -x, args)


@function("ABS")
def _abs(args: Args, _context: Context) -> Meaning:
    return strict(require(args[0], *NUMBERS).type, abs, args)


@function("ROUND")
def _round(args: Args, _context: Context) -> Meaning:
    number, digits = require(args[0], *NUMBERS), args[1].literal if len(args) > 1 else 0
    if not isinstance(digits, int) or isinstance(digits, bool) or abs(digits) > 38:
        raise RefusedError("TypeMismatch")
    if number.type == INTEGER or digits <= 0:
        return strict(INTEGER, lambda x: half_up(Fraction(x), min(digits, 0)) * 10 ** max(-digits, 0), args[:1])
    kept = number.type
    if digits < kept.scale:
        kept = values.with_room(kept.precision - kept.scale + 1, digits)
    return strict(kept, lambda x: Fraction(half_up(Fraction(x), digits), 10**digits), args[:1])


simple("FLOOR", [NUMBERS], INTEGER, lambda x: Fraction(x).__floor__())
simple("CEIL", [NUMBERS], INTEGER, lambda x: Fraction(x).__ceil__())


def _extreme(pick: Callable[..., object]) -> Callable[[Args, Context], Meaning]:
    def define(args: Args, _context: Context) -> Meaning:
        type = common_type([require(arg, *ORDERED) for arg in args])
        return strict(type, lambda *found: pick(put(each, type) for each in found), args)

    return define


FUNCTIONS["MIN"] = _extreme(min)
FUNCTIONS["MAX"] = _extreme(max)

# --- text -----------------------------------------------------------------------------------------------------------

TEXT, WHOLE, DAY = ["string"], ["integer"], ["date"]


@function("CONCAT")
def _concat(args: Args, _context: Context) -> Meaning:
    return strict(STRING, lambda *texts: "".join(texts), [require(arg, "string") for arg in args])


@function("SUBSTRING")
def _substring(args: Args, _context: Context) -> Meaning:
    """Positions count from 1; those before the text are there but empty."""

    def cut(text: str, start: int, length: int | None = None) -> str:
        end = len(text) + 1 if length is None else start + length
        return text[max(start, 1) - 1 : max(end, 1) - 1]

    return strict(STRING, cut, [require(args[0], "string"), *(require(arg, "integer") for arg in args[1:])])


simple("UPPER", [TEXT], STRING, str.upper)
simple("LOWER", [TEXT], STRING, str.lower)
simple("TRIM", [TEXT], STRING, lambda text: text.strip(" "))
simple("LEFT", [TEXT, WHOLE], STRING, lambda text, n: text[: max(n, 0)])
simple("RIGHT", [TEXT, WHOLE], STRING, lambda text, n: text[max(len(text) - max(n, 0), 0) :])
simple("LEN", [TEXT], INTEGER, len)
simple("CONTAINS", [TEXT, TEXT], BOOLEAN, lambda text, part: part in text)
simple("STARTS_WITH", [TEXT, TEXT], BOOLEAN, str.startswith)
simple("ENDS_WITH", [TEXT, TEXT], BOOLEAN, str.endswith)
simple("REPLACE", [TEXT] * 3, STRING, lambda text, part, new: text.replace(part, new) if part else text)

# --- dates ----------------------------------------------------------------------------------------------------------


def later(day: date, days: int) -> date:
    """The years 1 to 9999 are all there is."""
    try:
        return day + timedelta(days=days)
    except OverflowError:
        raise values.overflow() from None


def make_day(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        raise values.overflow() from None


def written_day(text: str) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise values.overflow()
    return make_day(*map(int, text.split("-")))


def months_later(day: date, months: int) -> date:
    """The same day of the month, or its last where it is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise values.overflow()
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def day_of(moment: date) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


@function("DATE")
def _date(args: Args, _context: Context) -> Meaning:
    if len(args) == 3:
        return strict(DATE, make_day, [require(arg, "integer") for arg in args])
    try:
        day = written_day(str(args[0].literal))
    except FailedError:
        raise RefusedError("TypeMismatch") from None
    return Meaning(DATE, lambda _row: day)


@function("TIMESTAMP")
def _timestamp(args: Args, _context: Context) -> Meaning:
    moment = datetime.fromisoformat(str(args[0].literal))
    known = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Meaning(TIMESTAMP, lambda _row: known)


@function("NOW")
def _now(_args: Args, context: Context) -> Meaning:
    return Meaning(TIMESTAMP, lambda _row: context.now)


@function("TODAY")
def _today(_args: Args, context: Context) -> Meaning:
    return Meaning(DATE, lambda _row: context.now.date())


@function("PERIOD")
def _period(_args: Args, context: Context) -> Meaning:
    return Meaning(STRING, lambda _row: context.period)


simple("YEAR", [MOMENTS], INTEGER, lambda day: day.year)
simple("MONTH", [MOMENTS], INTEGER, lambda day: day.month)
simple("DAY", [MOMENTS], INTEGER, lambda day: day.day)
simple("DATEDIFF", [MOMENTS, MOMENTS], INTEGER, lambda end, start: (day_of(end) - day_of(start)).days)
simple("DATEADD", [DAY, WHOLE], DATE, later)
simple("ADD_MONTHS", [DAY, WHOLE], DATE, months_later)
simple("MONTH_END", [DAY], DATE, lambda day: day.replace(day=calendar.monthrange(day.year, day.month)[1]))

# --- conversions ----------------------------------------------------------------------------------------------------


@function("TO_STRING")
def _to_string(args: Args, _context: Context) -> Meaning:
    def text(value: object) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Decimal):
            return format(value, "f")
        if isinstance(value, datetime):
            seconds, _, fraction = value.replace(tzinfo=None).isoformat(" ").partition(".")
            return seconds + ("." + fraction.rstrip("0") if fraction else "")
        return value.isoformat() if isinstance(value, date) else str(value)

    return strict(STRING, text, args)


@function("TO_INTEGER")
def _to_integer(args: Args, _context: Context) -> Meaning:
    def whole(value: Any) -> int:
        if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]+", value.strip(" ")):
            raise values.overflow()
        return as_integer(int(value))

    return strict(INTEGER, whole, [require(args[0], "string", *NUMBERS)])


@function("TO_DECIMAL")
def _to_decimal(args: Args, _context: Context) -> Meaning:
    type = DECIMAL
    if len(args) == 3:
        precision, scale = args[1].literal, args[2].literal
        if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision <= 38:
            raise RefusedError("TypeMismatch")
        type = decimal(precision, scale)

    def number(value: Any) -> Fraction:
        if isinstance(value, str) and not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", value.strip(" ")):
            raise values.overflow()
        return Fraction(value.strip(" ") if isinstance(value, str) else value)

    return strict(type, number, [require(args[0], "string", *NUMBERS)])


@function("TO_DATE")
def _to_date(args: Args, _context: Context) -> Meaning:
    return strict(
        DATE, lambda x: written_day(x) if isinstance(x, str) else day_of(x), [require(args[0], "string", *MOMENTS)]
    )


# --- aggregates -----------------------------------------------------------------------------------------------------


def _aggregate(name: str, kinds: Sequence[str], type: Callable[[Meaning], ColumnType], compute: Any) -> None:
    """`compute` gets the type and the values of the group that are not NULL."""

    def define(args: Args) -> Meaning:
        arg = require(args[0], *kinds)
        known = type(arg)

        def of(group: Any) -> object:
            found = [value for value in (arg.of(row) for row in group.rows) if value is not None]
            return put(compute(arg, found), known)

        return Meaning(known, of, sums_integers=name == "SUM" and arg.type == INTEGER)

    AGGREGATES[name] = define


def _sum(arg: Meaning, found: Sequence[Any]) -> Fraction | None:
    return reduce(lambda total, each: total + Fraction(each), found, Fraction(0)) if found else None


def _average(arg: Meaning, found: Sequence[Any]) -> Fraction | None:
    """The SUM, as SUM gives it, divided by the COUNT."""
    total = put(_sum(arg, found), values.summed(arg.digits))
    return None if total is None else Fraction(total) / len(found)  # type: ignore[arg-type]  # a number


ANYTHING = (*ORDERED, "boolean")
_aggregate("SUM", NUMBERS, lambda arg: values.summed(arg.digits), _sum)
_aggregate("AVG", NUMBERS, lambda arg: values.divided(values.summed(arg.digits), decimal(19, 0)), _average)
_aggregate("COUNT", ANYTHING, lambda _arg: INTEGER, lambda _arg, found: len(found))
_aggregate("COUNT_DISTINCT", ANYTHING, lambda _arg: INTEGER, lambda _arg, found: len(set(found)))
_aggregate("MIN_AGG", ORDERED, lambda arg: arg.type, lambda _arg, found: min(found, default=None))
_aggregate("MAX_AGG", ORDERED, lambda arg: arg.type, lambda _arg, found: max(found, default=None))
AGGREGATES["COUNT_ALL"] = lambda _args: Meaning(INTEGER, lambda group: len(group.rows))  # type: ignore[union-attr]
