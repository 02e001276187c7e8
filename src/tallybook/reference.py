"""Reference pages written from the registries, so that they say what the product does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tallybook.errors import PROBLEM_TYPES
from tallybook.expressions.functions import FAMILIES
from tallybook.expressions.registry import FUNCTIONS, Function, load_functions

_GENERATED = "<!-- Generated from the registry: change the declaration, then run `pytest --update-golden`. -->"
_TITLES = {
    "logic": "Choices and logic",
    "comparisons": "Comparisons",
    "numbers": "Numbers",
    "text": "Text",
    "dates": "Dates and the run",
    "conversions": "Conversions",
    "aggregates": "Aggregates",
}
_NOTES = {
    "text": "Text is counted in Unicode code points and compared by them, case-sensitive.",
    "dates": "Timestamps are UTC. The examples are of a run for the period 2026-01.",
    "conversions": "Nothing is converted unasked, and what cannot be converted fails the run.",
    "aggregates": "They stand in `aggregate` and in the `aggregation` of `append`, and pass over NULLs. "
    "In the examples `amount` is 10.00, 20.50 and NULL in three rows.",
}
_WHEN = {"check": "before a run", "run": "during a run"}


def functions_page() -> str:
    """Every function and operator, family by family."""
    load_functions()
    every = list(dict.fromkeys(FUNCTIONS.values()))
    parts = [
        _GENERATED,
        "# Functions and operators",
        "How they are put together is told in [Expressions](expressions.md). Names may be written in any case. A NULL "
        "argument makes the result NULL where nothing else is said.",
    ]
    for family in FAMILIES:
        rows = [_function_row(function) for function in every if function.family == family]
        parts += [f"## {_TITLES[family]}", *([_NOTES[family]] if family in _NOTES else [])]
        parts.append(_table(("Written", "Meaning", "Example", "Result"), rows))
    return "\n\n".join(parts) + "\n"


def problems_page() -> str:
    """Every type of problem."""
    rows = [
        (_code(type.name), _code(type.append_code or ""), _WHEN[type.when], type.meaning)
        for type in PROBLEM_TYPES.values()
    ]
    parts = [
        _GENERATED,
        "# Problems",
        "What can be wrong with a workspace or its data. Those found before a run are all reported at once by "
        "`tallybook validate`; the code is the one of the append rules, given where an `append` is concerned.",
        _table(("Type", "Code", "Found", "Meaning"), rows),
    ]
    return "\n\n".join(parts) + "\n"


def _function_row(function: Function) -> Sequence[str]:
    others = f" Also {', '.join(function.aliases)}." if function.aliases else ""
    expression, result = function.example
    return _code(function.signature), function.summary + others, _code(expression), _code(result)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
