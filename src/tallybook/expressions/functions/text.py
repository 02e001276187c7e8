"""Text functions: they count Unicode code points, and return NULL if an argument is NULL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import TEXT, WHOLE, Building, Computing, Function, Param, always, params, register
from tallybook.expressions.values import lower, upper
from tallybook.model.columns import BOOLEAN, INTEGER, STRING, ColumnType

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

_MOST = 2**31 - 1
"""Spark counts characters in 32 bits."""


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
) -> None:
    names = [param.name.removeprefix("the ") for param in (*shape, *optional)]
    signature = f"{name}({', '.join(names)})"
    many = params(*shape, optional=optional)
    register(
        Function(
            name, "text", many, signature, always(result), summary, example, build, compute=compute, repeats=repeats
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
