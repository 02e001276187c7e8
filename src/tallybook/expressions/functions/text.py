"""Text functions: they count Unicode code points, and return NULL if an argument is NULL."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING
from unicodedata import category

from tallybook.expressions.functions.raising import refusing
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import TEXT, WHOLE, Building, Computing, Function, Param, always, params, register
from tallybook.expressions.values import Value, lower, upper
from tallybook.model.columns import BOOLEAN, INTEGER, STRING, ColumnType

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

_MOST = 2**31 - 1
"""Spark counts characters in 32 bits."""
LONGEST_PADDED = 100_000
"""Longer padding would only exhaust the memory."""
_TOO_LONG = f"is too long, at most {LONGEST_PADDED:,} characters can be padded to"
WHITE_SPACE = "".join(map(chr, (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029)))
WHITE_SPACE += "\u202f\u205f\u3000"
"""What Unicode calls white space."""


def _count(n: Column, least: int = 0) -> Column:
    """A number brought into Spark's range; NULL stays NULL, which Spark's own least and greatest would pass over."""
    return F.when(n > _MOST, _MOST).when(n < least, least).otherwise(n).cast("int")


def _substring(_c: Building, text: Column, start: Column, length: Column | None = None) -> Column:
    """Characters `start` to `start + length - 1`, those before the first one counted but not there."""
    begin = _count(start, least=1)
    if length is None:
        return text.substr(begin, F.lit(_MOST))
    first = _count(start, least=-_MOST).cast("bigint")
    return text.substr(begin, _count(first + _count(length) - begin))


def _within(n: int, least: int = 0) -> int:
    return min(max(n, least), _MOST)


def _compute_substring(_c: Computing, text: str, start: int, length: int | None = None) -> str:
    begin = _within(start, least=1)
    if length is None:
        return text[begin - 1 :]
    count = _within(_within(start, least=-_MOST) + _within(length) - begin)
    return text[begin - 1 : begin - 1 + count]


def _padded(name: str) -> Callable[..., Column]:
    def build(_c: Building, text: Column, length: Column, fill: Column) -> Column:
        padded = getattr(F, name.lower())(text, _count(length), fill)
        return F.when(length > LONGEST_PADDED, refusing(name, length, _TOO_LONG)).otherwise(padded)

    return build


def _compute_padded(name: str) -> Callable[..., str]:
    def compute(_c: Computing, text: str, length: int, fill: str) -> str:
        if length > LONGEST_PADDED:
            raise ValueError(f"{length} {_TOO_LONG}")
        missing = max(length, 0) - len(text)
        if missing <= 0:
            return text[: max(length, 0)]
        filling = (fill * missing)[:missing]
        return filling + text if name == "LPAD" else text + filling

    return compute


def _part(_c: Building, text: Column, separator: Column, number: Column) -> Column:
    """Spark's own gives an empty text for a part that is not there."""
    without = F.char_length(F.replace(text, separator, F.lit("")))
    separators = F.when(separator == "", 0).otherwise((F.char_length(text) - without) / F.char_length(separator))
    return F.when(number.between(1, separators + 1), F.split_part(text, separator, _count(number)))


def _compute_part(_c: Computing, text: str, separator: str, number: int) -> str | None:
    parts = text.split(separator) if separator else [text]
    return parts[number - 1] if 1 <= number <= len(parts) else None


def _proper(_c: Building, text: Column) -> Column:
    """Spark's own `initcap` takes only spaces for the end of a word."""
    runs = F.regexp_extract_all(text, F.lit(r"([\p{L}\p{M}]+|[^\p{L}\p{M}]+)"))
    return F.array_join(F.transform(runs, _capitalised), "")


def _capitalised(word: Column) -> Column:
    return F.concat(F.upper(F.left(word, F.lit(1))), F.lower(word.substr(2, _MOST)))


def _compute_proper(_c: Computing, text: str) -> str:
    runs = ("".join(run) for _, run in groupby(text, key=lambda character: category(character)[0] in "LM"))
    return "".join(upper(run[0]) + lower(run[1:]) for run in runs)


def _compute_blank(_c: Computing, text: Value) -> bool:
    value = text()
    return value is None or not value.strip(WHITE_SPACE)


def _function(
    name: str,
    shape: tuple[Param, ...],
    result: ColumnType,
    summary: str,
    example: tuple[str, str],
    build: Callable[..., Column],
    compute: Callable[..., object],
    optional: tuple[Param, ...] = (),
    repeats: tuple[int, ...] = (),
    repeats_often: tuple[int, ...] = (),
) -> None:
    names = [param.name.removeprefix("the ") for param in (*shape, *optional)]
    signature = f"{name}({', '.join(names)})"
    many = params(*shape, optional=optional)
    register(
        Function(
            name,
            "text",
            many,
            signature,
            always(result),
            summary,
            example,
            build,
            compute=compute,
            repeats=repeats,
            repeats_often=repeats_often,
        )
    )


_TEXT = Param("the text", TEXT)
_PART = Param("the part", TEXT)
_LENGTH = Param("the length", WHOLE)


def _of_one_text(name: str, summary: str, example: tuple[str, str], compute: Callable[[str], str]) -> None:
    """Registers a function from a text to a text that Spark has under the same name."""
    _function(
        name,
        (_TEXT,),
        STRING,
        summary,
        example,
        lambda _c, text: getattr(F, name.lower())(text),
        lambda _c, text: compute(text),
    )


register(
    Function(
        "CONCAT",
        "text",
        params(Param("a text", TEXT), repeat=Param("a text", TEXT)),
        "CONCAT(text, …)",
        always(STRING),
        "The texts joined in order; NULL when one of them is NULL. Convert numbers with TO_STRING first.",
        ('CONCAT("Q", "1")', "Q1"),
        lambda c, *texts: F.concat(*texts),
        compute=lambda _c, *texts: "".join(texts),
    )
)
_of_one_text("UPPER", "The text in upper case.", ('UPPER("emea")', "EMEA"), upper)
_of_one_text("LOWER", "The text in lower case.", ('LOWER("EMEA")', "emea"), lower)
_of_one_text(
    "TRIM",
    "The text without leading and trailing spaces.",
    ('TRIM("  a b ")', "a b"),
    lambda text: text.strip(" "),
)
_function(
    "LEFT",
    (_TEXT, _LENGTH),
    STRING,
    "The first characters; none for a length of zero or less.",
    ('LEFT("2026-01", 4)', "2026"),
    lambda c, x, n: F.left(x, _count(n)),
    lambda _c, x, n: x[: max(n, 0)],
    repeats=(1,),
)
_function(
    "RIGHT",
    (_TEXT, _LENGTH),
    STRING,
    "The last characters; none for a length of zero or less.",
    ('RIGHT("2026-01", 2)', "01"),
    lambda c, x, n: F.right(x, _count(n)),
    lambda _c, x, n: x[-n:] if n > 0 else "",
    repeats=(1,),
)
_function(
    "LEN",
    (_TEXT,),
    INTEGER,
    "The number of characters.",
    ('LEN("café")', "4"),
    lambda c, x: c.cast(F.char_length(x), INTEGER),
    lambda _c, x: len(x),
)
_function(
    "CONTAINS",
    (_TEXT, _PART),
    BOOLEAN,
    "True when the part is somewhere in the text.",
    ('CONTAINS("month end", "end")', "true"),
    lambda c, x, part: F.contains(x, part),
    lambda _c, x, part: part in x,
)
_function(
    "STARTS_WITH",
    (_TEXT, _PART),
    BOOLEAN,
    "True when the text begins with the part.",
    ('STARTS_WITH("4000", "4")', "true"),
    lambda c, x, part: F.startswith(x, part),
    lambda _c, x, part: x.startswith(part),
)
_function(
    "ENDS_WITH",
    (_TEXT, _PART),
    BOOLEAN,
    "True when the text ends with the part.",
    ('ENDS_WITH("4000", "00")', "true"),
    lambda c, x, part: F.endswith(x, part),
    lambda _c, x, part: x.endswith(part),
)
_function(
    "SUBSTRING",
    (_TEXT, Param("the start", WHOLE)),
    STRING,
    "The characters from a position, counted from 1, to the end or for a length.",
    ('SUBSTRING("2026-Q1", 6, 2)', "Q1"),
    _substring,
    _compute_substring,
    optional=(_LENGTH,),
    repeats=(1, 2),
)
_function(
    "REPLACE",
    (_TEXT, _PART, Param("the replacement", TEXT)),
    STRING,
    "The text with every occurrence of the part replaced.",
    ('REPLACE("a-b-c", "-", "")', "abc"),
    lambda c, x, part, new: F.replace(x, part, new),
    lambda _c, x, part, new: x.replace(part, new) if part else x,
)
_function(
    "PROPER",
    (_TEXT,),
    STRING,
    "The text with a capital at the beginning of each word and small letters in the rest. A word ends at anything "
    "that is not a letter.",
    ('PROPER("north-west REGION")', "North-West Region"),
    _proper,
    _compute_proper,
)
for _name, _side, _example in (
    ("LPAD", "left", ('LPAD("42", 5, "0")', "00042")),
    ("RPAD", "right", ('RPAD("42", 5, ".")', "42...")),
):
    _function(
        _name,
        (_TEXT, _LENGTH, Param("the fill", TEXT)),
        STRING,
        f"The text filled up on the {_side} to a length; a longer text is cut at its end.",
        _example,
        _padded(_name),
        _compute_padded(_name),
        repeats_often=(1,),
    )
_function(
    "FIND",
    (Param("the needle", TEXT), _TEXT),
    INTEGER,
    "The position of the first occurrence of the needle in the text, counted from 1; 0 if there is none.",
    ('FIND("-", "2026-Q1")', "5"),
    lambda c, needle, x: c.cast(F.position(needle, x), INTEGER),
    lambda _c, needle, x: x.find(needle) + 1,
)
_function(
    "SPLIT_PART",
    (_TEXT, Param("the separator", TEXT), Param("the number", WHOLE)),
    STRING,
    "A part of a text with separators, counted from 1; NULL if there is no such part. An empty separator splits "
    "nothing.",
    ('SPLIT_PART("EMEA/DE/Berlin", "/", 2)', "DE"),
    _part,
    _compute_part,
    repeats_often=(0, 1, 2),
)
register(
    Function(
        "ISBLANK",
        "text",
        params(_TEXT),
        "ISBLANK(text)",
        always(BOOLEAN),
        "True when the text is NULL, empty, or only white space.",
        ('ISBLANK("  ")', "true"),
        lambda _c, text: F.coalesce(F.btrim(text, F.lit(WHITE_SPACE)) == "", F.lit(True)),
        compute=_compute_blank,
        null_safe=True,
    )
)
