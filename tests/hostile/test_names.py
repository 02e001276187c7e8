"""Unusual names and texts, from `validate` to the written rows.

Whatever a user calls things, a run ends in the same numbers or in a problem of theirs, never in a bug of ours.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import fields, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.hostile.kit import Case, Names, attempt

from tallybook.errors import Problem

NAMES = (
    *("_DELETED", "_Period", "_Row_Id", "_VALID_FROM", "_source_dataset", "_Labels", "Amount", "ORDERS", "_metadata"),
    *("a.b", "a b", " a", "a ", "`", "a`b", "``", "'", '"', "\\", "\\'", "a,b", "a;b", "#", "%", "*", "?", "a/b", "~"),
    *("select", "end", "from", "IN", "null", "true", "1", "-", "$", "${env:PATH}", "{{x}}", "}}", "{", "[a]", "a=b"),
    *("tallybook:position", "tallybook:key0", "tallybook:rows", "key0", "rows", "__x", "_c0", "value", "period"),
    *("ſ", "\u212aey", "İd", "ıd", "é", "e\u0301", "😀", "\u200d", "\u2028", "\ufeff", "\t", "\n", "a\r\nb", "\x7f"),
    *("n" * 300, "é" * 200, "../up", "/abs", "CON", "a" * 64 + "😀"),
)
TEXTS = (
    *(
        "",
        " ",
        "'",
        '"',
        "\\",
        "%",
        "_",
        "null",
        "NULL",
        "true",
        "0",
        "1e9",
        "2026-01",
        "a,b",
        'a"b',
        "a\nb",
        "😀",
        "ſ",
    ),
    *("${env:PATH}", "{{period}}", 'TALLYBOOK:{"type": "X"}', "[USER_RAISED_EXCEPTION]", "--", "/*", "x" * 5000),
)
SAFE_IN = {
    "csv": lambda text: text != "" and "\r" not in text,
    "json": lambda _text: True,
    "parquet": lambda _text: True,
}
"""CSV cannot distinguish NULL from an empty text."""


def check(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        outcome = attempt(case, Path(folder))
    problems = [each for each in outcome if isinstance(each, Problem)]
    assert not [str(problem) for problem in problems if problem.type == "InternalError"], case
    assert problems or outcome == case.expected, case


@pytest.mark.parametrize("format", SAFE_IN)
def test_everything_is_called_oddly(format: str, spark: SparkSession) -> None:
    names = Names(
        dataset="select.from-x",
        project="end",
        table="a`b",
        lookup="😀 x.y",
        lookup_table="IN",
        join="${env:PATH}`",
        selector="true or false",
        net="end",
        total="select",
        tier="from",
        id_source='Order `Id`, "é"',
        region_source="ſ.k",
        amount_source="{{x}} ",
        tier_source="İ" * 300,
        period_column="_PERIOD",
        output="a 'b' [c]",
        operation="`'\"\\",
    )
    case = Case(names, 'it\'s "${env:PATH}" 😀', 'TALLYBOOK:{"type": "X"}', format)
    with tempfile.TemporaryDirectory() as folder:
        assert attempt(case, Path(folder)) == case.expected


def random_case(seed: int) -> Case:
    """A few unusual names and texts; the columns of the data have different names."""
    choice = random.Random(seed)
    format = choice.choice(list(SAFE_IN))
    slots = choice.sample([each.name for each in fields(Names)], choice.choice((1, 1, 2, 4)))
    names = replace(Names(), **{slot: choice.choice(NAMES) for slot in slots})
    emea, apac = choice.sample([text for text in TEXTS if SAFE_IN[format](text)], 2)
    physical = [names.id_source, names.region_source, names.amount_source, names.period_column]
    if len({*physical}) < len(physical) or len({names.key, names.tier_source, names.region, names.amount}) < 4:
        return random_case(seed + 1_000_000)
    return Case(names, emea, apac, format) if choice.random() < 0.5 else Case(names, format=format)


@pytest.mark.parametrize("seed", range(4))
def test_odd_names(seed: int, spark: SparkSession) -> None:
    check(random_case(seed))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_more(seed: int, spark: SparkSession) -> None:
    check(random_case(seed))
