"""Choices and truth on Spark."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import product

import pytest

DAY = date(2026, 1, 31)
TRUTHS = (True, False, None)


def _and(a, b):
    return False if False in (a, b) else None if None in (a, b) else True


def _or(a, b):
    return True if True in (a, b) else None if None in (a, b) else False


def test_three_valued_logic(evaluate):
    rows = list(product(TRUTHS, TRUTHS))
    expressions = ["a AND b", "a OR b", "AND(a, b)", "OR(a, b)", "NOT a", "a = b", "NOT (a AND b)"]
    results = evaluate.over(expressions, {"a": "boolean", "b": "boolean"}, rows)
    for (a, b), values in zip(rows, results, strict=True):
        negated = None if a is None else not a
        equal = None if None in (a, b) else a == b
        neither = None if _and(a, b) is None else not _and(a, b)
        assert values == [_and(a, b), _or(a, b), _and(a, b), _or(a, b), negated, equal, neither]


def test_choices(evaluate):
    evaluate.table(
        """
        IF(flag, 1, 2)                          => 2
        IF(NULL, 1, 2)                          => 2
        IF(NOT flag, 1, 2)                      => 2
        IF(FALSE, 1)                            => NULL
        IF(TRUE, NULL, 2)                       => NULL
        IF(TRUE, 1, 2.5)                        => 1.0
        IF(TRUE, DATE("2026-01-31"), NOW())     => 2026-01-31 00:00:00+00:00
        SWITCH(code, "a", 1, 2)                 => 2
        SWITCH(code, "a", 1)                    => NULL
        SWITCH(code, NULL, 1, 2)                => 2
        SWITCH(2, 1, "one", 2, "two")           => two
        SWITCH(2, 1, "one", 2.0, "two")         => two
        SWITCH("A", "a", 1, "A", 2)             => 2
        SWITCH(1, 1, "first", 1, "second")      => first
        COALESCE(code, "x")                     => x
        COALESCE(NULL, NULL, 3)                 => 3
        COALESCE(NULL, code)                    => NULL
        COALESCE(1, 2.50)                       => 1
        ISNULL(code)                            => true
        IS_NULL(1)                              => false
        code IS NULL                            => true
        code IS NOT NULL                        => false
        IF(TRUE, 1, "a")                        => TypeMismatch
        COALESCE(1, "a")                        => TypeMismatch
        SWITCH(1, 1, "a", 2, 3)                 => TypeMismatch
        SWITCH(1, "1", "a")                     => TypeMismatch
        """,
        {"flag": ("boolean", None), "code": ("string", None)},
    )


def test_a_branch_that_is_not_taken_cannot_fail(evaluate):
    expressions = [
        'IF(text = "none", 0, TO_INTEGER(text))',
        'IF(text = "none", 0, IF(TO_INTEGER(text) > 1, TO_INTEGER(text), -TO_INTEGER(text)))',
        'SWITCH(text, "none", 0, TO_INTEGER(text))',
        'COALESCE(IF(text = "none", 0), TO_INTEGER(text))',
        'IF(text <> "none", TO_INTEGER(text), 0) + IF(text <> "none", TO_INTEGER(text), 0)',
        "SWITCH(CONCAT(text" + ', ""' * 20 + '), "none", 0, TO_INTEGER(text))',
    ]
    results = evaluate.over(expressions, {"text": "string"}, [("none",), ("5",)])
    assert results == [[0, 0, 0, 0, 0, 0], [5, 5, 5, 5, 10, 5]]


def test_long_conditions_do_not_exhaust_spark(evaluate):
    many = " OR ".join(f"n = {i}" for i in range(500))
    mixed = ", ".join(f"{i}.5" if i % 2 else str(i) for i in range(100))
    values = evaluate.all([many, f"n IN ({mixed})", f"n + 0.5 IN ({mixed})"], {"n": ("integer", 99)})
    assert values == [True, False, True]


def test_forty_levels_are_no_trouble(evaluate):
    """Spark Connect, the narrowest way there is, sends expressions of some fifty levels."""
    columns = {"n": ("integer", 3), "a": ("decimal(18,6)", Decimal("1.5"))}
    evaluate.table(
        f"""
        {" + ".join(["a"] * 40)}                            => 60
        {" - ".join(["n"] * 40)}                            => -114
        {" / ".join(["64.0", *["2"] * 7, *["1"] * 32])}     => 0.5
        {"IF(n = 1, 0, " * 40 + "n" + ")" * 40}             => 3
        {"-ABS(" * 20 + "n" + ")" * 20}                     => -3
        """,
        columns,
    )


@pytest.mark.parametrize("levels", [8, pytest.param(20, marks=pytest.mark.long)])
def test_nesting_does_not_multiply_the_plan(evaluate, levels: int):
    """Each of these mentions an argument more than once, at every level."""
    if "connect" in type(evaluate.spark).__module__:
        pytest.skip("too deep for Spark Connect")

    def nested(before: str, inner: str, after: str) -> str:
        return before * levels + inner + after * levels

    columns = {
        "n": ("integer", 3),
        "a": ("decimal(18,6)", Decimal("1.5")),
        "text": ("string", "abc"),
        "day": ("date", DAY),
    }
    evaluate.table(
        f"""
        {nested("MIN(n, MAX(n, ", "n", "))")}               => 3
        {nested("a / (", "a", ")")}                         => 1.5
        {nested("2 % (5 + ", "4", ")")}                     => 2
        {nested("SWITCH(", "n", ", 1, 2, 3, 3)")}           => 3
        {nested("LEFT(text, LEN(", "text", "))")}           => abc
        {nested("SUBSTRING(text, LEN(", '"a"', "))")}       => c
        {nested("TO_DATE(TO_STRING(", "day", "))")}         => 2026-01-31
        {nested("(IF(1 BETWEEN ", "1", " AND 2, 1, 0))")}   => 1
        """,
        columns,
    )


def test_ifs(evaluate):
    evaluate.table(
        """
        IFS(1 > 2, "a", 2 > 1, "b", "c")        => b
        IFS(1 > 2, "a", NULL, "b", "c")         => c
        IFS(1 > 2, "a")                         => NULL
        IFS(TRUE, 1, FALSE, 2.5)                => 1.0
        IFS(TRUE, 1, FALSE, TO_INTEGER("x"))    => 1
        IFS(TRUE, 1, FALSE, "b")                => TypeMismatch
        IFS(1, 2)                               => TypeMismatch
        IFS(TRUE)                               => TypeMismatch
        """
    )
