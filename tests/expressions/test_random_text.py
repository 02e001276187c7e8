"""Properties: a printed tree reads back the same, and no text, however odd, ends in anything but a problem."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallybook.errors import ProblemError
from tallybook.expressions.check import Checker
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.expressions.selectors import parse_selector
from tallybook.expressions.show import show
from tallybook.expressions.tree import Node
from tallybook.model.columns import BOOLEAN, DECIMAL, INTEGER, STRING
from tallybook.source import SourceText

from .trees import TREES

SHORT = settings(max_examples=1_000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
LONG = settings(SHORT, max_examples=100_000)
SCOPE = Scope((ScopeTable("t", {"a": INTEGER, "b": DECIMAL, "c": STRING, "d": BOOLEAN}),))
SELECTORS = {
    "S": SourceText("a > 1 AND {{T}}"),
    "T": SourceText("d"),
    "LOOP": SourceText("{{LOOP}}"),
    "BAD": SourceText("("),
}
TOKENS = [
    *(
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "LIKE",
        "IS",
        "NULL",
        "TRUE",
        "IF",
        "ROUND",
        "SUM",
        "COUNT",
        "DATE",
        "SWITCH",
        "OVER",
    ),
    *(
        "(",
        ")",
        ",",
        "+",
        "-",
        "*",
        "/",
        "%",
        "=",
        "<>",
        "<",
        ">=",
        "==",
        ".",
        "{{S}}",
        "{{LOOP}}",
        "{{BAD}}",
        "{{",
        "}}",
    ),
    *(
        "a",
        "b",
        "c",
        "d",
        "t.a",
        "`a`",
        "`",
        '"x"',
        "'y'",
        '"',
        "1",
        "2.5",
        "00",
        "99999999999999999999",
        "\\",
        "&",
        "🙂",
    ),
]
SAMPLES = [
    "IF(a > 1 AND d, ROUND(b / 3, 2), -1.50) + COALESCE(b, 0)",
    "c LIKE 'a\\%' OR c NOT IN (\"x\", 'y''z') AND b BETWEEN 1 AND 2",
    'SWITCH(c, "a", DATE("2026-01-31") + 1, TO_DATE(c)) IS NOT NULL',
    "{{S}} AND SUM(a) % COUNT(*) = `a` OR t.`b` <= TIMESTAMP('2026-01-31T12:00Z')",
]


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A right expression with a few characters removed, doubled or replaced."""
    text = draw(st.sampled_from(SAMPLES) | TREES.map(show))
    for _ in range(draw(st.integers(1, 4))):
        at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 3))
        text = text[:at] + draw(st.sampled_from(TOKENS) | st.text(max_size=2)) + text[at + length :]
    return text


TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join), mutations())


def _reads_back(tree: Node) -> None:
    text = show(tree)
    assert parse(text) == tree, text


def _is_an_expression_or_a_problem(text: str) -> None:
    try:
        tree = parse_selector(SourceText(text), SELECTORS)
    except ProblemError as error:
        _is_presentable(error)
        return
    for grouped in (None, frozenset({"a"})):
        checker = Checker(SCOPE, grouped)
        if checker.check(tree) is None:
            _is_presentable(ProblemError(checker.problems))
    _reads_back(parse(text))


def _is_presentable(error: ProblemError) -> None:
    assert error.problems
    for problem in error.problems:
        assert problem.message
        assert problem.place is not None
        assert str(problem).startswith(str(problem.place))


@SHORT
@given(TREES)
def test_a_printed_tree_reads_back_the_same(tree: Node):
    _reads_back(tree)


@SHORT
@given(TEXTS)
def test_any_text_is_an_expression_or_a_problem(text: str):
    _is_an_expression_or_a_problem(text)


@pytest.mark.long
@LONG
@given(TREES)
def test_a_printed_tree_reads_back_the_same_at_length(tree: Node):
    _reads_back(tree)


@pytest.mark.long
@LONG
@given(TEXTS)
def test_any_text_is_an_expression_or_a_problem_at_length(text: str):
    _is_an_expression_or_a_problem(text)
