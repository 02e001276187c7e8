"""Logic and comparisons, three-valued."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from tallybook.model.columns import BOOLEAN, NULL

from . import values
from .expressions import Context, Meaning, common_type, require
from .functions import ANYTHING, FUNCTIONS, ORDERED, Args, evaluated, function, simple, strict
from .readings import all_needed
from .values import FailedError, RefusedError, put


def conjunction(verdicts: Sequence[Any], decisive: bool = False) -> bool | None:
    """Three-valued AND; with `decisive` true, OR."""
    if any(verdict is decisive for verdict in verdicts):
        return decisive
    all_needed(verdicts)
    return None if None in verdicts else not decisive


def _junction(decisive: bool) -> Callable[[Args, Context], Meaning]:
    def define(args: Args, _context: Context) -> Meaning:
        truths = [require(arg, "boolean") for arg in args]
        return Meaning(BOOLEAN, lambda row: conjunction(evaluated(truths, row), decisive))

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


@function("IFS")
def _ifs(args: Args, _context: Context) -> Meaning:
    """IF(condition, value, IFS(the rest)); a single argument left over is the default."""
    if len(args) < 2:
        raise RefusedError("TypeMismatch")
    paired = len(args) - len(args) % 2
    tests = [require(arg, "boolean") for arg in args[:paired:2]]
    results = [*args[1:paired:2], *args[paired:]]
    type = common_type(results)

    def of(row: Any) -> object:
        chosen = next((i for i, test in enumerate(tests) if test.of(row) is True), len(tests))
        return put(results[chosen].of(row), type) if chosen < len(results) else None

    return Meaning(type, of)


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


@function("ISBLANK")
def _is_blank(args: Args, _context: Context) -> Meaning:
    text = require(args[0], "string")
    return Meaning(BOOLEAN, lambda row: all(map(_is_white, str(text.of(row) or ""))))


def _is_white(character: str) -> bool:
    return unicodedata.category(character) in ("Zs", "Zl", "Zp") or character in "\t\n\v\f\r\x85"


def comparable(value: Any) -> Any:
    """Numbers by value, moments by time, text by code point (as Python does)."""
    return values.as_moment(value) if isinstance(value, date) else value


def equal(a: object, b: object) -> bool | None:
    return None if a is None or b is None else bool(comparable(a) == comparable(b))


def _comparison(name: str, test: Callable[[Any, Any], bool], kinds: Sequence[str]) -> None:
    def define(args: Args, _context: Context) -> Meaning:
        common_type([require(arg, *kinds) for arg in args])
        return strict(BOOLEAN, lambda a, b: test(comparable(a), comparable(b)), args)

    FUNCTIONS[name] = define


_comparison("=", lambda a, b: a == b, ANYTHING)
_comparison("<>", lambda a, b: a != b, ANYTHING)
_comparison("<", lambda a, b: a < b, ORDERED)
_comparison("<=", lambda a, b: a <= b, ORDERED)
_comparison(">", lambda a, b: a > b, ORDERED)
_comparison(">=", lambda a, b: a >= b, ORDERED)


@function("IN")
def _in(args: Args, _context: Context) -> Meaning:
    """value = choice OR value = choice OR …"""
    common_type(args)
    value, *choices = args
    verdicts = [strict(BOOLEAN, equal, [value, choice]) for choice in choices]
    return Meaning(BOOLEAN, lambda row: conjunction(evaluated(verdicts, row), decisive=True))


@function("BETWEEN")
def _between(args: Args, _context: Context) -> Meaning:
    """value >= low AND value <= high."""
    value, low, high = (require(arg, *ORDERED) for arg in args)
    common_type(args)
    above = strict(BOOLEAN, lambda a, b: comparable(a) >= comparable(b), [value, low])
    below = strict(BOOLEAN, lambda a, b: comparable(a) <= comparable(b), [value, high])
    return Meaning(BOOLEAN, lambda row: conjunction(evaluated([above, below], row)))


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
