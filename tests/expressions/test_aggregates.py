"""Aggregates on Spark: NULLs are passed over, digits are kept, sums have room."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pyspark.errors import PySparkException

from tallybook.errors import ProblemError

from .evaluation import check

TYPES = {"amount": "decimal(18,2)", "qty": "integer", "name": "string", "wide": "decimal(38,0)"}
COLUMNS = {name: (type, None) for name, type in TYPES.items()}
ROWS = [
    (Decimal("10.00"), 3, "b", Decimal(10**38 - 1)),
    (Decimal("20.50"), 4, "🙂", Decimal(1)),
    (None, None, None, None),
    (Decimal("10.00"), 2**63 - 1, "～", None),
]


def _summarise(evaluate, expressions, rows=ROWS):
    typed = [check(expression, COLUMNS, frozenset()) for expression in expressions]
    return evaluate.collect(evaluate.frame(TYPES, rows), typed)[0]


def test_aggregates(evaluate):
    cases = {
        "SUM(amount)": Decimal("40.50"),
        "SUM(qty)": Decimal(2**63 + 6),
        "SUM(amount * qty) / COUNT(*)": Decimal("23058430092136939545.5"),
        "AVG(amount)": Decimal("13.5"),
        "AVG(IF(qty < 10, qty))": Decimal("3.5"),
        "SUM(1 / 3)": Decimal("1.333333333333333333333333332"),
        "AVG(1 / 3)": Decimal("0.333333333333333333333333333"),
        "SUM(qty / qty)": Decimal(3),
        "COUNT(amount)": 3,
        "COUNT(*)": 4,
        "COUNT_ALL()": 4,
        "COUNT_DISTINCT(amount)": 2,
        "COUNT(NULL)": 0,
        "MIN_AGG(amount)": Decimal("10.00"),
        "MAX_AGG(name)": "🙂",
        "MIN_AGG(name)": "b",
        "ROUND(SUM(amount) / 3, 1)": Decimal("13.5"),
        "MAX(SUM(amount), 100)": Decimal(100),
        "MAX(SUM(amount + 1 + 1 + 1 + 1 + 1 + 1 + 1), 0)": Decimal("61.50"),
        "SUM(amount) / (COUNT(*) + 0 + 0 + 0 + 0 + 0 + 0)": Decimal("10.125"),
        'IF(COUNT(*) > 3, "many", "few")': "many",
    }
    values = _summarise(evaluate, cases)
    assert dict(zip(cases, values, strict=True)) == cases


def test_no_values_at_all(evaluate):
    expressions = ["SUM(amount)", "AVG(amount)", "MIN_AGG(name)", "COUNT(amount)", "COUNT(*)"]
    assert _summarise(evaluate, expressions, [(None, None, None, None)]) == [None, None, None, 0, 1]


def test_a_sum_that_overflows_fails(evaluate):
    with pytest.raises(PySparkException):
        _summarise(evaluate, ["SUM(wide)"])


def test_many_long_fractions_can_be_added(evaluate):
    typed = [check("SUM(1 / 3)", {}, frozenset())]
    assert evaluate.collect(evaluate.spark.range(100), typed) == [[Decimal("33.3333333333333333333333333")]]


def test_conditional_aggregates(evaluate):
    cases = {
        'SUM_IF(amount, name <> "b")': Decimal("30.50"),
        "SUM_IF(amount, qty < 0)": None,
        "SUM_IF(qty, qty < 10)": Decimal(7),
        "AVG_IF(amount, qty < 10)": Decimal("15.25"),
        "COUNT_IF(qty > 3)": 2,
        "COUNT_IF(qty > 3 OR name IS NULL)": 3,
        "COUNT_IF(NULL)": 0,
    }
    assert dict(zip(cases, _summarise(evaluate, cases), strict=True)) == cases


def test_the_order_decides_and_ties_go_by_the_value(evaluate):
    cases = {
        "FIRST_BY(name, qty)": "b",
        "LAST_BY(name, qty)": "～",
        "FIRST_BY(name, amount)": "b",
        "LAST_BY(name, amount)": "🙂",
        "FIRST_BY(qty, amount)": 3,
        "LAST_BY(amount, name)": Decimal("20.50"),
        "FIRST_BY(NULL, amount)": None,
        "FIRST_BY(wide, NULL)": None,
        'STRING_AGG(name, ", ")': "b, ～, 🙂",
        'STRING_AGG(name, "", -amount)': "🙂b～",
        'STRING_AGG(TO_STRING(qty), "+", IF(qty = 4, NULL, -qty))': "9223372036854775807+3+4",
        'STRING_AGG(IF(qty < 0, name), ", ", qty)': None,
    }
    assert dict(zip(cases, _summarise(evaluate, cases), strict=True)) == cases


def test_medians_and_deviations(evaluate):
    cases = {
        "MEDIAN(amount)": Decimal("10.000"),
        "MEDIAN(IF(qty < 10, qty))": Decimal("3.5"),
        "MEDIAN(IF(qty < 0, qty))": None,
        "STDDEV(amount)": Decimal("6.06217783"),
        "STDDEV(IF(qty = 3, amount))": None,
        "STDDEV(IF(qty < 10, qty))": Decimal("0.707107"),
        "STDDEV(qty * 0)": Decimal(0),
        "STDDEV(qty)": Decimal(5325116328314170000),
        "STDDEV(1 / qty)": Decimal("0.173472166622178"),
    }
    assert dict(zip(cases, _summarise(evaluate, cases), strict=True)) == cases


def test_the_distribution_of_rows_changes_nothing(evaluate):
    """Neither the order of the rows nor the number of partitions, for values that differ in magnitude."""
    rows = [(Decimal(i * 7919 % 1009).scaleb(-2) * 10 ** (i % 9), i % 5, f"n{i % 7}", None) for i in range(300)]
    expressions = ["STDDEV(amount)", "MEDIAN(amount)", "AVG(amount)", 'STRING_AGG(name, ",", qty)']
    expressions += ["FIRST_BY(name, qty)", "LAST_BY(amount, qty)"]
    typed = [check(expression, COLUMNS, frozenset()) for expression in expressions]
    first = evaluate.collect(evaluate.frame(TYPES, rows).repartition(1), typed)
    assert evaluate.collect(evaluate.frame(TYPES, rows[::-1]).repartition(7), typed) == first


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("amount", "InvalidAggregation"),
        ("SUM(amount) + qty", "InvalidAggregation"),
        ("SUM(MAX_AGG(amount))", "InvalidAggregation"),
        ("MODE(amount)", "InvalidAggregation"),
        ("MIN(amount)", "InvalidAggregation"),
        ("1 + 1", "InvalidAggregation"),
        ("SUM(name)", "TypeMismatch"),
        ("MAX_AGG(amount > 1)", "TypeMismatch"),
        ("SUM_IF(amount, qty)", "TypeMismatch"),
        ("STRING_AGG(name, name)", "TypeMismatch"),
        ("MEDIAN(name)", "TypeMismatch"),
        ("SUM(*)", "ExpressionParseError"),
    ],
)
def test_what_is_no_aggregation(expression, type):
    with pytest.raises(ProblemError) as caught:
        check(expression, COLUMNS, frozenset())
    assert [problem.type for problem in caught.value.problems] == [type]


def test_grouped_columns_stand_alone():
    assert str(check("CONCAT(name, TO_STRING(COUNT(*)))", COLUMNS, frozenset({"name"})).type) == "string"
