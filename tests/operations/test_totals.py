"""Aggregates over groups of the rows that an update selects: `SUM(amount) OVER (region)`."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.kit.operations import aggregate, applied, delete, orders, rows, update

from tallybook.errors import ValidationError


@pytest.fixture
def sales(spark: SparkSession) -> DataFrame:
    return orders(
        spark,
        ("A", "EMEA", "on", "10.00", 1),
        ("B", "EMEA", "off", "30.00", 2),
        ("C", "APAC", "on", "5.00", 3),
        ("D", None, "on", "1.00", 4),
        ("E", None, "on", None, 5),
        ("F", "EMEA", "on", "100.00", 6, True),
    )


def test_a_share_of_the_group(sales: DataFrame) -> None:
    """NULL is a group of its own, NULL amounts are passed over, and deleted rows do not count."""
    after = applied(sales, update(share="ROUND(amount / SUM(amount) OVER (region), 2)", n="COUNT(*) OVER (region)"))
    assert rows(after, "order_id", "share", "n") == [
        ("A", "0.25", 2),
        ("B", "0.75", 2),
        ("C", "1.00", 1),
        ("D", "1.00", 2),
        ("E", None, 2),
        ("F", None, None),
    ]


def test_over_nothing_is_one_group_of_the_selected_rows(sales: DataFrame) -> None:
    after = applied(sales, update('status = "on"', total="SUM(amount) OVER ()", most="MAX_AGG(order_id) OVER ()"))
    assert rows(after, "order_id", "total", "most") == [
        ("A", "16.00", "E"),
        ("B", None, None),
        ("C", "16.00", "E"),
        ("D", "16.00", "E"),
        ("E", "16.00", "E"),
        ("F", None, None),
    ]


def test_it_sees_the_rows_before_the_operation(sales: DataFrame) -> None:
    after = applied(sales, update(amount="amount * 2", before="SUM(amount) OVER (region)"))
    assert rows(after.filter("region = 'EMEA' AND NOT _deleted"), "amount", "before") == [
        ("20.00", "40.00"),
        ("60.00", "40.00"),
    ]


def test_it_reads_the_rows_of_every_segment(sales: DataFrame) -> None:
    """Summary rows are working rows; a selector by origin leaves them out."""
    summary = aggregate(["region"], amount="SUM(amount)")
    every = applied(sales, summary, update(total="SUM(amount) OVER (region)", n="COUNT(*) OVER ()"))
    detail = applied(sales, summary, update("_operation_seq = 0", total="SUM(amount) OVER (region)"))
    assert rows(every.filter("region = 'EMEA' AND NOT _deleted"), "amount", "total", "n") == [
        ("10.00", "80.00", 8),
        ("30.00", "80.00", 8),
        ("40.00", "80.00", 8),
    ]
    assert rows(detail.filter("region = 'EMEA' AND NOT _deleted"), "amount", "total") == [
        ("10.00", "40.00"),
        ("30.00", "40.00"),
        ("40.00", None),
    ]


def test_groups_by_columns_of_several_lists_and_one_after_the_other(sales: DataFrame) -> None:
    after = applied(
        sales,
        delete('order_id = "E"'),
        update(by_region="SUM(amount) OVER (region)", by_both="SUM(amount) OVER (region, status)"),
        update(of_both="SUM(by_both) OVER (region)"),
        *[update(of_both="of_both + COUNT(*) OVER ()")] * 8,
    )
    assert rows(after.filter("NOT _deleted"), "order_id", "by_region", "by_both", "of_both") == [
        ("A", "40.00", "10.00", "72.00"),
        ("B", "40.00", "30.00", "72.00"),
        ("C", "5.00", "5.00", "37.00"),
        ("D", "1.00", "1.00", "33.00"),
    ]


def test_no_row_is_selected(sales: DataFrame) -> None:
    after = applied(sales, update("amount > 1000", total="SUM(amount) OVER ()"))
    assert {row[0] for row in rows(after, "total")} == {None}


@pytest.mark.parametrize(
    ("operation", "type", "message"),
    [
        (update("SUM(amount) OVER () > 1", x="1"), "AggregateMisplaced", "only in the assignments of an update"),
        (aggregate(["region"], x="SUM(amount) OVER ()"), "AggregateMisplaced", "only in the assignments of an update"),
        (update(x="SUM(SUM(amount) OVER ()) OVER ()"), "InvalidAggregation", "nested inside another aggregate"),
        (update(x="ROUND(amount) OVER ()"), "InvalidAggregation", "ROUND is not an aggregate function"),
        (update(x="SUM(amount) OVER (nothing)"), "ColumnNotFound", "nothing"),
        (update(x="SUM(amount) OVER (region, region)"), "DuplicateColumn", "twice"),
        (update(x="SUM(region) OVER ()"), "TypeMismatch", "a number"),
        (update(x="amount / SUM(amount)"), "AggregateMisplaced", "SUM is an aggregate function"),
        (update(x="SUM(amount) OVER (PARTITION BY region)"), "ExpressionParseError", "'BY'"),
    ],
)
def test_the_checker_finds_mistakes(sales: DataFrame, operation: dict[str, object], type: str, message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        applied(sales, operation)
    assert [problem.type for problem in refused.value.problems] == [type]
    assert message in refused.value.problem.message
    assert refused.value.problem.hint


def test_the_hint_for_a_plain_aggregate_says_over(sales: DataFrame) -> None:
    with pytest.raises(ValidationError) as refused:
        applied(sales, update(x="amount / SUM(amount)"))
    assert "SUM(amount) OVER ()" in str(refused.value.problem.hint)
