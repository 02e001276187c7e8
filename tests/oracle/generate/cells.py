"""Single values: ordinary ones, and those at the edges of their type."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from random import Random

from tallybook.model.columns import ColumnType, decimal

TEXTS = (
    "",
    " ",
    "a",
    "A",
    "b",
    "ab",
    "EMEA",
    "Zürich",
    "straße",
    "🙂",
    "a🙂b",
    "e\u0301",
    "it's",
    'say "hi"',
    "100%",
    "a_b",
    "back\\slash",
    "  pad ",
    "日本",
    "null",
    "0",
    "-7",
    "1.5",
    "2024-02-29",
    "line\nbreak",
    "～",
    "\U0001f468\u200d\U0001f469",
)
NUMERALS = ("7", " 42 ", "-3", "+5", "007", "  -0 ", "12", "1000000", "\t8\r\n")
PATTERNS = ("a%", "%b", "_", "%", "", "%i%", "100\\%", "a\\_b", "%🙂%", "__", "%s_a%", "\\\\", "%\n%")
ODD = ("", "x", "e3", "0x1F", "１２", "1,000", "1_000", "--1", "1 2", "NaN", "9223372036854775808", "2026-1-31")
ODD += ("2025-02-29", "+2026-01-31", "12026-01-31", "2026-01-31 ", "2026-13-01", "２０２６-01-31", "b\\c", "a\\")
"""What is no number, no day or no pattern."""
TEXTUAL = {
    "numeral": (*NUMERALS, "9223372036854775807"),
    "amount_text": (*NUMERALS, "1.5", ".5", "5.", "-0.005", "+1.10", "0.0000004999", " 12.25 ", "1e3", "１２.５"),
    "day_text": ("2026-01-31", "2024-02-29", "0001-01-01", "9999-12-31", "1582-10-10"),
    "pattern": PATTERNS,
}
"""String columns by what is written in them, so that conversions have something to convert."""
KEYS = ("a", "b", "c", "🙂")
DAYS = (
    date(2026, 1, 1),
    date(2026, 1, 31),
    date(2025, 12, 31),
    date(2024, 2, 29),
    date(2025, 2, 28),
    date(2026, 12, 31),
    date(2000, 2, 29),
    date(1900, 3, 1),
)
FAR_DAYS = (date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10), date(1970, 1, 1))
DIGITS = ((18, 6), (18, 2), (10, 2), (9, 0), (28, 10), (5, 5))
WIDE_DIGITS = ((38, 0), (38, 10), (38, 18), (38, 37), (38, 38), (1, 0), (20, 19))


def column_type(random: Random, kind: str, wild: bool) -> ColumnType:
    if kind != "decimal":
        return ColumnType(kind)
    return decimal(*random.choice(DIGITS + WIDE_DIGITS if wild else DIGITS))


def cell(random: Random, type: ColumnType, wild: bool, nulls: float = 0.15) -> object:
    """A value of the type; one in seven is NULL."""
    if random.random() < nulls:
        return None
    if type.kind == "decimal":
        return _decimal(random, type, wild)
    if type.kind == "integer":
        far = (2**63 - 1, -(2**63), 2**31, -(2**31) - 1, 10**18)
        return random.choice(far) if wild and random.random() < 0.3 else random.randint(-12, 30)
    if type.kind == "string":
        return random.choice(TEXTS)
    if type.kind == "boolean":
        return random.random() < 0.5
    day = random.choice(FAR_DAYS if wild and random.random() < 0.3 else DAYS)
    if type.kind == "date":
        return day
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return moment + timedelta(microseconds=random.choice((0, 1, 43_200_000_000, 86_399_999_999, 1_500_000)))


def textual(random: Random, name: str) -> object:
    """The text of a number, day or pattern; one in thirty is none."""
    chance = random.random()
    return None if chance < 0.1 else random.choice(ODD if chance > 0.97 else TEXTUAL[name])


def many_literals(random: Random, kind: str) -> list[str]:
    """More choices than Spark compares one by one."""
    if kind == "string":
        return [quoted(text) for text in random.sample(TEXTS, 12)]
    if kind in ("date", "timestamp"):
        return [f"DATE(2026, 1, {number + 1})" for number in random.sample(range(31), 12)]
    return [f"{number}.5" if kind == "decimal" else str(number) for number in random.sample(range(-12, 31), 12)]


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'


def _decimal(random: Random, type: ColumnType, wild: bool) -> Decimal:
    """Few digits usually; the largest and the smallest of the type, and halves to round, now and then."""
    most = 10**type.precision - 1
    units = random.choice((0, 1, 5, 15, 25, 100, 12345, 999995, 10**type.scale, 25 * 10**type.scale // 10))
    if wild and random.random() < 0.4:
        units = random.choice((most, most - 5, 5 * 10 ** max(type.precision - 1, 0), random.randint(0, most)))
    units = min(units, most)
    sign = random.choice((1, 1, -1))
    return Decimal(sign * units).scaleb(-type.scale, Context(prec=100))
