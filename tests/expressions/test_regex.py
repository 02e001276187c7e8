"""Patterns of MATCHES and REGEX_EXTRACT: which are taken, what they mean on Spark, and that none takes long."""

from __future__ import annotations

from decimal import Decimal

import pytest
from tests.test_regular_expressions import Pattern, slow_texts

from tallybook.errors import ProblemError
from tallybook.expressions.functions.date_patterns import date_pattern
from tallybook.expressions.functions.regex import PatternError, read_regex

from .evaluation import Evaluator, check

TAKEN = (
    *(r"INV-[0-9]+", r"[A-Z]{2}\d{4}", r"^(\w+)-(\w+)-(\d+)$", "EUR|EUX|USD", r"[^,]*,([^,]*)", "<(.*?)>", ".*x.*"),
    *(
        r"\s*(-?\d+(?:\.\d+)?)\s*",
        "(?:[A-Z]+,){0,50}[A-Z]+",
        r"[\w.]+@[\w.]+\.[a-z]+",
        "[a-]",
        "",
        "a{2,3}a{2,3}",
        "x|",
    ),
)


@pytest.mark.parametrize("pattern", TAKEN)
def test_a_pattern_that_is_taken_is_quick(pattern: str) -> None:
    """On texts of 15,000 characters a pattern that goes back and forth without limit would take for ever. One gap
    is quadratic, so its text is shorter."""
    compiled = read_regex(pattern).for_python()
    gaps = ".*" in pattern or "[\\w.]+" in pattern
    if not gaps:
        assert not list(slow_texts(Pattern("here", compiled.pattern, 0, frozenset({"fullmatch"}))))
    for text in ("a" * 1_000 + "!", "ab" * 500, "x" * 1_000, "a-" * 500, "1" * 1_000 + "x", "A," * 500 + "!"):
        compiled.fullmatch(text)
        compiled.search(text)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a+)+b", "a group can be repeated at most 50 times"),
        ("(a|a){30}", "too many ways"),
        ("(a|b|ab){0,9}c", "too many ways"),
        (".*a.*b.*c.*", "more than 2 of its unlimited repetitions"),
        ("(a?){20}a{20}", "can be empty"),
        (r"(a)\1", "is not supported"),
        ("(?=a)b", "only supported as"),
        (r"\bword\b", "is not supported"),
        ("a**", "cannot be repeated"),
        ("(a", "without a"),
        ("a)", "without a"),
        ("[a", "without a"),
        ("*a", "nothing to apply to"),
        ("a{3,2}", "not a number of repetitions"),
        ("[z-a]", "to a later one"),
        ("a" * 501, "more than 500"),
    ],
)
def test_a_pattern_that_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        read_regex(pattern)


def test_meaning_on_spark(evaluate: Evaluator) -> None:
    evaluate.table(
        r"""
        MATCHES("INV-42", "INV-[0-9]+")                         => true
        MATCHES("an INV-42", "INV-[0-9]+")                      => false
        MATCHES("an INV-42", ".*INV-[0-9]+")                    => true
        MATCHES("a", "A")                                       => false
        MATCHES("", "")                                         => true
        MATCHES("٣", "\d")                                      => false
        MATCHES("🙂", ".")                                      => true
        MATCHES("Ä", "[À-Ý]")                                   => true
        MATCHES(CONCAT("a", text), "a$")                        => false
        MATCHES(text, ".")                                      => true
        MATCHES("a.b", "a\.b")                                  => true
        MATCHES("a]b", "a[\]]b")                                => true
        REGEX_EXTRACT("paid INV-0042 late", "INV-([0-9]+)")     => 0042
        REGEX_EXTRACT("paid INV-0042 late", "INV-([0-9]+)", 0)  => INV-0042
        REGEX_EXTRACT("paid INV-0042 late", "[0-9]+")           => 0042
        REGEX_EXTRACT("paid", "[0-9]+")                         => NULL
        REGEX_EXTRACT("ab", "a(x)?b")                           => ""
        REGEX_EXTRACT("<a><b>", "<(.*?)>")                      => a
        REGEX_EXTRACT("<a><b>", "<(.*)>")                       => a><b
        REGEX_EXTRACT("a", "(a)", 2)                            => TypeMismatch
        MATCHES("a", text)                                      => TypeMismatch
        MATCHES("a", "(a+)+b")                                  => TypeMismatch
        """,
        {"text": ("string", "\n")},
    )


def test_the_message_of_a_refused_pattern() -> None:
    with pytest.raises(ProblemError) as caught:
        check('MATCHES("a", "(a+)+b")')
    [problem] = caught.value.problems
    assert "the pattern '(a+)+b' cannot be used: a group can be repeated at most 50 times" in problem.message


@pytest.mark.parametrize("pattern", ["dd.mm.yyyy", "d mmmm yyyy", "yyyymmdd", "[yyyy]\\mm^d-"])
def test_patterns_of_dates_are_quick(pattern: str) -> None:
    regex = date_pattern(pattern).regex()
    assert not list(slow_texts(Pattern("here", regex, 0, frozenset({"fullmatch"}))))


def test_numbers_in_text_are_taken_out(evaluate: Evaluator) -> None:
    assert evaluate('TO_DECIMAL(REGEX_EXTRACT("EUR 12.50", "[0-9]+\\.[0-9]+"), 10, 2)') == Decimal("12.50")
