"""The exact text a user sees for typical mistakes. Read the golden files as that user would."""

from __future__ import annotations

import re

import pytest

from tallybook.errors import Problem, ProblemError
from tallybook.expressions import elsewhere
from tallybook.expressions.check import Checker
from tallybook.expressions.elsewhere import hint_for
from tallybook.expressions.parse import parse
from tallybook.expressions.registry import find_function
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.expressions.selectors import parse_selector
from tallybook.model.columns import BOOLEAN, DATE, DECIMAL, INTEGER, STRING, TIMESTAMP
from tallybook.source import Place, SourceText

ORDERS = ScopeTable(
    "orders",
    {
        "order_id": STRING,
        "customer_id": STRING,
        "amount": DECIMAL,
        "quantity": INTEGER,
        "order_date": DATE,
        "shipped_at": TIMESTAMP,
        "is_paid": BOOLEAN,
        "region": STRING,
    },
)
CUSTOMERS = ScopeTable("customers", {"customer_id": STRING, "tier": STRING, "region": STRING}, joined=True)
SCOPE = Scope((ORDERS, CUSTOMERS))

MISTAKES = {
    "writing": [
        "",
        "IF(amount > 100, 1, 2",
        "ROUND((amount + 1, 2)",
        "ROUND((amount + 1) * 2",
        "amount > 100)",
        "amount +",
        "is_paid AND",
        "AND is_paid",
        "is_paid && amount > 1",
        "is_paid || amount > 1",
        '"a" & "b"',
        "!is_paid",
        'region = "EMEA',
        "region = “EMEA”",
        "`Order Amount",
        "[Order Amount]",
        "=amount * 2",
        "amount => 100",
        "100 < amount < 200",
        "amount = = 100",
        "IF(is_paid; 1; 2)",
        "amount − 1",
        "amount > 10 000",
        "COUNT(DISTINCT region)",
        'region IN ["a", "b"]',
        "IF(is_paid 1, 2)",
        "IF(is_paid, 1, )",
        "IF(, 1, 2)",
        "amount 100",
        "amount region",
        "amount * 10%",
        "IF(is_paid, amount * 10%, 0)",
        "1,5 * amount",
        ".5 * amount",
        "$100",
        "1e3",
        "amount ^ 2",
        "amount ** 2",
        "amount::integer",
        "CAST(amount AS integer)",
        "EXTRACT(YEAR FROM order_date)",
        'region ILIKE "e%"',
        "COUNT(DISTINCT region)",
        "STDEV.S(amount)",
        "CEILING.MATH(amount)",
        "amount OVER (region)",
        'SUM(amount) OVER ("region")',
        'region IN "EMEA"',
        "region IN ()",
        "amount BETWEEN 1",
        "region IS EMPTY",
        "amount IS 5",
        "CASE WHEN is_paid THEN 1 ELSE 2 END",
        'CASE region WHEN "EMEA" THEN 1 END',
        "{{ACTIVE AND is_paid",
        "{ACTIVE}",
        "{{}}",
        "SUM(amount, *)",
        "123456789012345678901234567890123456789",
        "(" * 101 + "1" + ")" * 101,
        "amount > 1\n  AND region = 'EMEA'\n  AND (is_paid",
    ],
    "names": [
        "amont * 2",
        "DATEDIFF(today, order_date)",
        "Amount * 2",
        "order.amount",
        "orders.amont",
        "customers.level",
        "region",
        "a.b.c.d",
        "price",
        "LENGTH(region)",
        "VLOOKUP(region)",
        "ROUN(amount, 2)",
        "LAST_DAY(order_date)",
        "{{ACTIVE}}",
    ],
    "types": [
        "amount + order_id",
        'quantity = "5"',
        'order_date > "2026-01-31"',
        "order_date - order_date",
        "order_date + 1.5",
        "order_date - 1.5",
        "shipped_at + 1",
        "is_paid + 1",
        "-order_id",
        "NOT amount",
        "amount AND is_paid",
        "is_paid > FALSE",
        "IF(amount, 1, 2)",
        'IF(is_paid, amount, "none")',
        'SWITCH(order_id, 1, "a")',
        "COALESCE(amount, order_date)",
        "UPPER(amount)",
        "UPPER(ROUND(amount * quantity, 2) + ROUND(amount / 2, 2))",
        "CONCAT(order_id, quantity)",
        "LEFT(order_id, amount)",
        "ROUND(amount, quantity)",
        "ROUND(amount, 2, 3)",
        "TODAY(1)",
        'DATE("31.01.2026")',
        "DATE(order_id)",
        'TIMESTAMP("2026-01-31")',
        "DATEADD(shipped_at, 1)",
        "TO_DECIMAL(order_id, 40, 2)",
        "TO_INTEGER(is_paid)",
        'order_id LIKE "a\\b"',
        "UPPER(amount) = LOWER(quantity)",
        "MATCHES(order_id, customers.region)",
        "TEXT(amount, customers.region)",
        "EOMONTH(order_date, 1)",
        "YEARFRAC(order_date, order_date, 1)",
    ],
    "aggregates": [
        "amount",
        "SUM(amount) / quantity",
        "SUM(AVG(amount))",
        "MIN(amount)",
        "MODE(amount)",
        "ROUN(SUM(amount), 2)",
        "AVERAGE(amount)",
        "SUM(order_id)",
        "SUM(*)",
        "SUM()",
    ],
    "misplaced": ["SUM(amount) > 1", "MIN_AGG(amount)", "COUNT(*)", "order_id IN (COUNT(*))"],
}
SELECTORS = {
    "PAID": "is_paid AND amount > 0",
    "BIG": "amont > 1000",
    "BROKEN": "amount > (1",
    "TOTAL": "amount * 2",
    "FIRST": "{{SECOND}} OR is_paid",
    "SECOND": "NOT {{FIRST}}",
    "DEEP": "{{BIG}} AND {{PAID}}",
}
USES = ["{{PAYED}}", "{{BIG}} AND is_paid", "{{BROKEN}}", "{{TOTAL}}", "{{FIRST}}", "{{DEEP}}"]


def _problems(expression: str, grouped: frozenset[str] | None = None) -> list[Problem]:
    checker = Checker(SCOPE, grouped)
    try:
        checker.check(parse(expression))
    except ProblemError as error:
        return list(error.problems)
    return checker.problems


def _page(problems: list[Problem]) -> str:
    return "\n\n".join(str(problem) for problem in problems) + "\n"


@pytest.mark.parametrize("group", MISTAKES)
def test_messages(golden, group):
    grouped = frozenset({"order_id"}) if group == "aggregates" else None
    found = [_problems(mistake, grouped) for mistake in MISTAKES[group]]
    assert all(found), [m for m, problems in zip(MISTAKES[group], found, strict=True) if not problems]
    golden(f"expressions/{group}.txt", _page([problem for problems in found for problem in problems]))


def test_messages_about_selectors(golden):
    """They point into the selector, and say where it was used."""
    lines = [f"  {name}: {text}" for name, text in SELECTORS.items()]
    selectors = {
        name: _written(text, "project.yaml", row, lines, column=len(name) + 4)
        for row, (name, text) in enumerate(SELECTORS.items())
    }
    problems = []
    for row, use in enumerate(USES):
        source = _written(use, "project.yaml", len(lines) + row, [*lines, *(f"selector: {u}" for u in USES)], column=10)
        checker = Checker(SCOPE)
        try:
            checker.check(parse_selector(source, selectors))
        except ProblemError as error:
            problems += error.problems
        problems += checker.problems
    golden("expressions/selectors.txt", _page(problems))


def _written(text: str, file: str, row: int, lines: list[str], column: int) -> SourceText:
    offsets = [(row, column + i) for i in range(len(text))]
    return SourceText(text, Place(file, row + 1, column + 1, lines[row]), offsets, lines)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("LAG", "to read another period, join the dataset with `period: prior` and write alias.column"),
        ("LEAD", "to read another period, join the dataset with `period: next` and write alias.column"),
        ("XLOOKUP", "join the other table and write alias.column"),
        ("INDEX", "join the other table and write alias.column"),
        ("SUMIFS", "write SUM_IF(value, condition)"),
        ("COUNTIF", "write COUNT_IF(condition)"),
        (
            "IFERROR",
            "a division by zero gives NULL: write COALESCE(a / b, 0); "
            "a conversion that may fail is TRY_TO_DECIMAL(value)",
        ),
        ("MAXIFS", "write MAX_AGG(IF(condition, value))"),
        ("LET", "compute the value with an update into a column first, then use that column"),
        ("MODE", "the most frequent value is not available; MEDIAN(value) is the middle one"),
        ("SAFE_DIVIDE", "write a / b: a division by zero gives NULL"),
        ("YTD", "join the dataset with `period: year_to_date` and an `aggregation`, and write alias.column"),
        ("CONCATENATE", "write CONCAT(text, …)"),
        ("DATEDIF", "write MONTHS_BETWEEN(end, start)"),
        ("EDATE", "write ADD_MONTHS(date, months)"),
        ("TEXTJOIN", 'write STRING_AGG(text, "separator", order)'),
        ("NVL", "write COALESCE(value, …)"),
        ("DECODE", "write SWITCH(subject, value, result, …, default)"),
        ("SUBSTR", "write SUBSTRING(text, start, length)"),
        ("LENGTH", "write LEN(text)"),
        ("TOTAL", "write SUM(value)"),
        (
            "ROW_NUMBER",
            "rows have no rank here; FIRST_BY and LAST_BY give the value of the first or last row of a group",
        ),
        ("RUOND", "did you mean 'ROUND'?"),
        ("STRINGAGG", "did you mean 'STRING_AGG'?"),
        ("FROBNICATE", None),
    ],
)
def test_the_hint_for_a_function_of_elsewhere(name: str, hint: str | None) -> None:
    assert hint_for(name) == hint


def test_what_is_known_elsewhere_is_unknown_here() -> None:
    """A name that is ours needs no hint, and what a hint recommends must be ours."""
    theirs = {**elsewhere._INSTEAD, **elsewhere._ADVICE}
    assert [name for name in theirs if find_function(name)] == []
    assert [name for name in elsewhere._INSTEAD.values() if find_function(name) is None] == []
    advised = re.findall(r"\b([A-Z][A-Z_]+)\(", " ".join(elsewhere._ADVICE.values()))
    assert [name for name in advised if find_function(name) is None] == []
