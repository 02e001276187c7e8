"""No regular expression of the package takes much longer for hostile text than for any other.

The patterns are collected from the syntax trees, each with the methods it is used with, and tried on long texts that
make a careless pattern go back and forth. A text of this length takes a sound pattern a millisecond or two, a quadratic
one more than a hundred times as long.
"""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import FrameType
from typing import Any

import pytest
from tests.test_architecture import MODULES, Module

from tallybook.storage.formats.csv_dialect import Dialect

DIALECTS = "storage.formats.csv_dialect"
"""Its patterns depend on a delimiter and are made when a file is read."""
LENGTH = 15_000
SECONDS = 0.1
METHODS = ("search", "match", "fullmatch", "findall", "finditer", "sub", "split")
BEGINNINGS = ("", "{{", "decimal(", '"', "spark.a", "1", "x", "Exception: ")
REPEATED = (
    *(" ", "\n", "\t", "a", "A", "0", "_", ".", ":", "'", '"', "\\", "(", "[", "{", "}", "%", "#", "-", "ä"),
    *('\\"', "\\'", '""', "''", "a ", " a", "\n ", "{{", "{{ ", "}}", "0.", ".0", "a-", ": ", "a: ", "- ", "='"),
    *("BETWEEN ", "AND ", "id: a\n", "[A] ", "java.io.", "\tat a\n", "spark.a=\n", "spark.a  ", "{{a"),
)
ENDINGS = ("", "!")


@dataclass(frozen=True)
class Pattern:
    """A pattern of the package, and how it is used."""

    where: str
    text: str | bytes
    flags: int
    methods: frozenset[str]


def patterns(module: Module) -> Iterator[Pattern]:
    """Every literal given to a function of `re`, or to pydantic as the pattern of a field."""
    used = _methods_by_name(module.tree)
    names = {id(node.value): _name(node.targets[0]) for node in ast.walk(module.tree) if isinstance(node, ast.Assign)}
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        match node.func:
            case ast.Attribute(value=ast.Name(id="re")) if module.name == DIALECTS and not _is_constant(node.args[0]):
                continue
            case ast.Attribute(value=ast.Name(id="re"), attr=method) if not _is_translated(node.args[0]):
                text = _literal(node.args[0], module)
                methods = used.get(names.get(id(node), ""), {"search"}) if method == "compile" else {method}
                yield Pattern(f"{module.name}:{node.lineno}", text, _flags(node), frozenset(methods))
            case _:
                for keyword in node.keywords:
                    if keyword.arg == "pattern" and isinstance(keyword.value, ast.Constant):
                        yield Pattern(
                            f"{module.name}:{node.lineno}", str(keyword.value.value), 0, frozenset({"search"})
                        )


def patterns_of_dialects() -> Iterator[Pattern]:
    """The patterns that are made for the delimiter of a CSV file."""
    for delimiter in (",", "||"):
        for name in ("_field", "_field_end", "_outside", "_outside_for_spark"):
            made = getattr(Dialect(delimiter), name)
            yield Pattern(f"{DIALECTS}: {name} {delimiter}", made.pattern, made.flags, frozenset({"match"}))


def _is_constant(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant)


def _is_translated(node: ast.AST) -> bool:
    """True for the pattern that Python's own `fnmatch` makes, which goes back nowhere, and for those made from patterns
    of users, which `expressions/test_regex.py` tries."""
    return ast.unparse(node).startswith(("fnmatch.translate(", "self.regex()", "python_pattern"))


def _methods_by_name(tree: ast.Module) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=method) if method in METHODS:
                found.setdefault(name, set()).add(method)
    return found


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _literal(node: ast.expr, module: Module) -> str | bytes:
    """What a pattern is, if it is made of literals and constants of its module."""
    names = vars(import_module(f"tallybook.{module.name}"))
    try:
        text = eval(compile(ast.Expression(node), module.name, "eval"), names)
    except NameError as error:
        raise AssertionError(f"{module.name}:{node.lineno}: the pattern cannot be tried here: {error}") from None
    assert isinstance(text, str | bytes)
    return text


def _flags(call: ast.Call) -> int:
    given = [*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg == "flags")]
    named = {node.attr for part in given for node in ast.walk(part) if isinstance(node, ast.Attribute)}
    return sum(int(getattr(re, name)) for name in named & {"MULTILINE", "DOTALL", "IGNORECASE", "ASCII"})


class _TooLongError(Exception):
    pass


@contextmanager
def limited() -> Iterator[None]:
    """Stops after so many seconds of the processor, however busy the machine is."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def slow_texts(pattern: Pattern) -> Iterator[str]:
    compiled = re.compile(pattern.text, pattern.flags)
    for beginning in BEGINNINGS:
        for repeated in REPEATED:
            for ending in ENDINGS:
                text = beginning + repeated * (LENGTH // len(repeated)) + ending
                for method in pattern.methods:
                    try:
                        with limited():
                            _apply(compiled, method, text.encode() if isinstance(pattern.text, bytes) else text)
                    except _TooLongError:
                        yield f"{method}: {beginning!r} + {repeated!r} * n + {ending!r}"
                        return


def _apply(compiled: re.Pattern[str] | re.Pattern[bytes], method: str, text: str | bytes) -> None:
    run: Callable[..., Any] = getattr(compiled, method)
    if method == "sub":
        run("" if isinstance(text, str) else b"", text)
    elif method == "finditer":
        for _ in run(text):
            pass
    else:
        run(text)


PATTERNS = [found for module in MODULES if module.name not in ("", "reference") for found in patterns(module)]
PATTERNS += patterns_of_dialects()


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.where)
def test_hostile_text_is_read_as_fast_as_any(pattern: Pattern) -> None:
    assert list(slow_texts(pattern)) == []


@pytest.mark.parametrize(
    ("text", "flags"), [(r"^\s*id:", re.MULTILINE), (r"\{\{\s*([^{}]*?)\s*\}\}", 0), (r"\w+$", 0), (r"(a+)+!$", 0)]
)
def test_a_careless_pattern_is_found(text: str, flags: int) -> None:
    assert len(list(slow_texts(Pattern("here", text, flags, frozenset({"search"}))))) == 1


def test_patterns_are_collected() -> None:
    assert len(PATTERNS) > 30
    used = [each.methods for each in PATTERNS if each.where.startswith("model.template:")]
    assert frozenset({"finditer", "sub"}) in used
