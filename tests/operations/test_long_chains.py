"""Operations that read what the ones before them set. Spark writes their expressions into each other, and what it plans
must not double with every operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.kit.operations import aggregate, applied, delete, orders, rows, update

Operations = list[dict[str, Any]]


def own_selector(count: int) -> Operations:
    return [update(f"amount > {number}", amount="amount + 1") for number in range(count)]


def own_value(count: int) -> Operations:
    return [update(amount=f"IF(amount > {number}, amount + 1, amount)") for number in range(count)]


def two_columns(count: int) -> Operations:
    return [update("amount > 0", amount="amount + quantity", quantity="quantity + 1") for _ in range(count)]


def deletes(count: int) -> Operations:
    return [delete(f"quantity = {number} AND amount = 10") for number in range(count)]


def deletes_and_updates(count: int) -> Operations:
    return [
        operation
        for number in range(count // 2)
        for operation in (delete(f"amount = {number}"), update("amount > 0", amount="amount + 1"))
    ]


CHAINS = [own_selector, own_value, two_columns, deletes, deletes_and_updates]


def planned(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> int:
    """The length of the plan of a filter on what the operations set."""
    capsys.readouterr()
    frame.filter("amount > 5 AND NOT _deleted").select("order_id").explain()
    return len(capsys.readouterr().out)


@pytest.mark.parametrize("chain", CHAINS)
def test_a_filter_after_a_long_chain_stays_small(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], chain: Callable[[int], Sequence[dict[str, Any]]]
) -> None:
    given = orders(spark, ("A", "EMEA", "active", 10, 1))
    short, long = (planned(applied(given, *chain(count)), capsys) for count in (6, 12))
    assert long < 4 * short


def test_a_filter_on_the_key_of_a_summary_stays_small(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    given = orders(spark, ("A", "EMEA", "active", 10, 1))

    def summed(count: int) -> int:
        return planned(applied(given, *own_value(count), aggregate(["amount"], n="COUNT(*)")), capsys)

    assert summed(12) < 4 * summed(6)


@pytest.mark.parametrize(
    ("chain", "amount"), [(own_selector, "22.00"), (own_value, "22.00"), (two_columns, "88.00"), (deletes, "10.00")]
)
def test_every_operation_of_a_long_chain_counts(
    spark: SparkSession, chain: Callable[[int], Sequence[dict[str, Any]]], amount: str
) -> None:
    given = orders(spark, ("A", "EMEA", "active", 10, 1), ("B", "EMEA", "active", None, 1))
    is_deleted = chain is deletes
    assert rows(applied(given, *chain(12)), "order_id", "amount", "_deleted") == [
        ("A", amount, is_deleted),
        ("B", None, False),
    ]


def test_a_condition_is_not_evaluated_on_deleted_rows(spark: SparkSession) -> None:
    given = orders(spark, ("A", "none", "active", 1, 1), ("B", "7", "active", 2, 2), ("C", "8", "active", None, 3))
    after = applied(
        given,
        delete('region = "none"'),
        delete("TO_INTEGER(region) = 7"),
        delete("amount > 0"),
        delete("TO_INTEGER(region) < 0"),
    )
    assert rows(after, "order_id", "_deleted") == [("A", True), ("B", True), ("C", False)]
