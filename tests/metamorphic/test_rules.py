"""Two ways to say the same thing give the same cells."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from .conftest import Apply, aggregate, fingerprint, update

CONDITIONS = ("amount > 100", 'region = "EMEA" AND quantity < 4', 'quantity IN (1, NULL) OR region <> ""')
RATE = {"joins": [{"alias": "r", "dataset_id": "rates", "on": "ledger.account = r.account"}]}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_its_negation_and_null_are_everything(apply: Apply, condition: str) -> None:
    value = "ROUND(amount * r.rate, 2)"
    parts = (condition, f"NOT ({condition})", f"({condition}) IS NULL")
    in_parts = apply(*(update("tax", value, selector=part, **RATE) for part in parts))
    assert fingerprint(in_parts) == fingerprint(apply(update("tax", value, **RATE)))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_what_is_left_after_a_delete_is_the_complement(apply: Apply, condition: str) -> None:
    kept = apply({"type": "delete", "selector": condition}).filter(~F.col("_deleted"))
    complement = apply({"type": "delete", "selector": f"COALESCE({condition}, FALSE)"}).filter("NOT _deleted")
    selected = apply(update("chosen", "TRUE", selector=condition)).filter("chosen IS NULL").drop("chosen")
    assert fingerprint(kept) == fingerprint(complement) == fingerprint(selected)


def test_totals_of_summaries_are_the_totals_of_the_details(apply: Apply) -> None:
    frame = apply(
        aggregate(["region"], total="SUM(amount)", rows="COUNT(*)"),
        {"type": "delete", "selector": "total IS NULL AND _operation_seq = 1"},
    )
    found = frame.agg(
        F.sum("amount"), F.sum("total"), F.count(F.when(F.col("_operation_seq") == 0, 1)), F.sum("rows")
    ).collect()[0]
    assert found[0] == found[1]
    assert found[2] == found[3]


def test_sums_by_two_keys_add_up_to_sums_by_one(apply: Apply) -> None:
    """Grouping details, or grouping their subtotals, is the same."""
    direct = apply(aggregate(["region"], total="SUM(amount)")).filter("_operation_seq = 1")
    steps = apply(
        aggregate(["region", "account"], part="SUM(amount)"),
        {**aggregate(["region"], total="SUM(part)"), "selector": "_operation_seq = 1"},
    ).filter("_operation_seq = 2")
    columns = [F.col("region"), F.col("total").cast("decimal(28,2)").alias("total")]
    assert fingerprint(direct.select(*columns)) == fingerprint(steps.select(*columns))


def test_independent_operations_in_any_order(apply: Apply) -> None:
    one = update("tax", "ROUND(amount * r.rate, 2)", **RATE)
    two = update("label", "CONCAT(COALESCE(region, '-'), account)", selector="quantity > 3")
    three = update("quantity", "quantity + 1", selector="amount < 0")
    four = {"type": "delete", "selector": "day = DATE('2026-01-31')"}
    assert fingerprint(apply(one, two, four)) == fingerprint(apply(two, one, four))
    assert fingerprint(apply(one, three)) == fingerprint(apply(three, one))


def test_an_update_twice_is_an_update_once_if_it_reads_nothing_it_writes(apply: Apply) -> None:
    once = update("tax", "ROUND(amount / 3, 2)")
    assert fingerprint(apply(once)) == fingerprint(apply(once, once))
