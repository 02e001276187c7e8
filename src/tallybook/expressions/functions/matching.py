"""MATCHES and REGEX_EXTRACT. The pattern is a literal, so that the checker can refuse one that could take for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tallybook.expressions.functions.regex import PatternError, read_regex
from tallybook.expressions.functions.spark import F
from tallybook.expressions.registry import (
    TEXT,
    WHOLE,
    Argument,
    Building,
    Computing,
    Function,
    Param,
    Refusal,
    always,
    params,
    register,
)
from tallybook.model.columns import BOOLEAN, STRING

if TYPE_CHECKING:
    from pyspark.sql import Column

_TEXT = Param("the text", TEXT)
_PATTERN = Param("the pattern", TEXT, literal=True)
_SUPPORTED = "characters, . [a-z] [^a-z] \\d \\w \\s, (…) (?:…) |, ? * + {2,5}, ^ and $ are supported"


def _pattern(args: Sequence[Argument]) -> str:
    return str(args[1].literal)


def _group(args: Sequence[Argument]) -> int:
    """The group to extract: the given one, else the first, else the whole match."""
    return int(str(args[2].literal)) if len(args) > 2 else min(1, read_regex(_pattern(args)).groups)


def _refuse(args: Sequence[Argument]) -> Refusal | None:
    pattern = _pattern(args)
    try:
        regex = read_regex(pattern)
    except PatternError as error:
        return Refusal(f"the pattern '{pattern}' cannot be used: {error}", _SUPPORTED)
    if not 0 <= _group(args) <= regex.groups:
        groups = f"{regex.groups or 'no'} group{'' if regex.groups == 1 else 's'}"
        return Refusal(
            f"the pattern '{pattern}' has {groups}, so there is no group {_group(args)}",
            "put what you want to extract in parentheses; group 0 is the whole match",
        )
    return None


def _matches(c: Building, text: Column, _pattern_column: Column) -> Column:
    return F.rlike(text, F.lit(read_regex(_pattern(c.args)).for_java(whole=True)))


def _extract(c: Building, text: Column, *_literals: Column) -> Column:
    java = read_regex(_pattern(c.args)).for_java(whole=False)
    return F.when(F.rlike(text, F.lit(java)), F.regexp_extract(text, java, _group(c.args)))


def _compute_extract(c: Computing, text: str, pattern: str, _group_number: int = 0) -> str | None:
    match = read_regex(pattern).for_python().search(text)
    return (match[_group(c.args)] or "") if match else None


register(
    Function(
        "MATCHES",
        "text",
        params(_TEXT, _PATTERN),
        'MATCHES(text, "pattern")',
        always(BOOLEAN),
        "True when the whole text fits the regular expression.",
        ('MATCHES("INV-0042", "INV-[0-9]+")', "true"),
        _matches,
        compute=lambda _c, text, pattern: read_regex(pattern).for_python().fullmatch(text) is not None,
        refuse=_refuse,
    )
)
register(
    Function(
        "REGEX_EXTRACT",
        "text",
        params(_TEXT, _PATTERN, optional=[Param("the group", WHOLE, literal=True)]),
        'REGEX_EXTRACT(text, "pattern", group)',
        always(STRING),
        "The first part of the text that fits the regular expression: the given group of it, else the first group, "
        "else all of it. NULL without a match, empty for a group that took no part in it.",
        ('REGEX_EXTRACT("paid INV-0042 late", "INV-([0-9]+)")', "0042"),
        _extract,
        compute=_compute_extract,
        refuse=_refuse,
        repeats=(0,),
    )
)
