"""Join conditions are evaluated only for the selected rows of an update."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.kit.operations import applied, delete, orders, rows, update


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    return orders(spark, ("1", "EMEA", "on", 10, 1), ("2", "EMEA", "on", 10, 1), ("N/A", "APAC", "off", 10, 1))


@pytest.fixture
def sources(spark: SparkSession) -> dict[str, DataFrame]:
    numbers = spark.createDataFrame([(1, "one"), (2, "two")], "no bigint, name string")
    regions = spark.createDataFrame([("EMEA", "gold"), ("APAC", "silver")], "region string, tier string")
    twice = spark.createDataFrame([("1", "x"), ("N/A", "y"), ("N/A", "z")], "id string, mark string")
    return {"numbers": numbers, "regions": regions, "twice": twice}


def joining(selector: str | None, joins: dict[str, tuple[str, str]], **assignments: str) -> dict[str, Any]:
    """An update with joins: alias → dataset and condition."""
    listed = [{"alias": alias, "dataset_id": dataset, "on": on} for alias, (dataset, on) in joins.items()]
    operation = update(selector, **assignments)
    operation["arguments"]["joins"] = listed
    return operation


NUMBERS = ("numbers", "TO_INTEGER(order_id) = n.no")
MORE_THAN_EQUAL = ("numbers", "TO_INTEGER(order_id) = n.no AND TO_INTEGER(order_id) < 5")
REGIONS = ("regions", "orders.region = r.region")
TWICE = ("twice", "order_id = t.id")


@pytest.mark.parametrize("numbers", [NUMBERS, MORE_THAN_EQUAL], ids=["equality", "and more"])
def test_no_key_is_computed_for_deleted_rows(
    frame: DataFrame, sources: dict[str, DataFrame], numbers: tuple[str, str]
) -> None:
    after = applied(frame, delete('order_id = "N/A"'), joining(None, {"n": numbers}, name="n.name"), sources=sources)
    assert rows(after, "order_id", "name") == [("1", "one"), ("2", "two"), ("N/A", None)]


@pytest.mark.parametrize("numbers", [NUMBERS, MORE_THAN_EQUAL], ids=["equality", "and more"])
def test_no_key_is_computed_for_rows_that_are_not_selected(
    frame: DataFrame, sources: dict[str, DataFrame], numbers: tuple[str, str]
) -> None:
    after = applied(frame, joining('status = "on"', {"n": numbers}, name="n.name"), sources=sources)
    assert rows(after, "order_id", "name") == [("1", "one"), ("2", "two"), ("N/A", None)]
    with pytest.raises(PySparkException, match="N/A"):
        applied(frame, joining(None, {"n": numbers}, name="n.name"), sources=sources).collect()


@pytest.mark.parametrize("first", ["r", "t"])
def test_a_second_match_counts_once_the_selector_can_be_asked(
    frame: DataFrame, sources: dict[str, DataFrame], first: str
) -> None:
    """Whichever of the joins is written first."""
    joins = {"r": REGIONS, "t": TWICE} if first == "r" else {"t": TWICE, "r": REGIONS}
    after = applied(frame, joining('r.tier = "gold"', joins, mark="t.mark"), sources=sources)
    assert rows(after, "order_id", "mark") == [("1", "x"), ("2", None), ("N/A", None)]
    with pytest.raises(PySparkException, match="JoinNotUnique"):
        applied(frame, joining('r.tier = "silver"', joins, mark="t.mark"), sources=sources).collect()


def test_a_match_the_selector_depends_on_counts_for_every_row(frame: DataFrame, sources: dict[str, DataFrame]) -> None:
    by_mark = {"t": TWICE, "r": ("regions", 'orders.region = r.region AND t.mark <> "q"')}
    with pytest.raises(PySparkException, match="JoinNotUnique"):
        applied(frame, joining('r.tier = "gold"', by_mark, tier="r.tier"), sources=sources).collect()


ODD = ("odd", "order_id = o.__key0")
ODD_AND_MORE = ("odd", "order_id = o.__key0 AND o.__count < 9")


@pytest.mark.parametrize("odd", [ODD, ODD_AND_MORE], ids=["equality", "and more"])
def test_names_that_begin_with_underscores_are_the_users(
    spark: SparkSession, frame: DataFrame, odd: tuple[str, str]
) -> None:
    names = "__key0 string, __count bigint, __number bigint, __rows bigint, __there bigint"
    sources = {"odd": spark.createDataFrame([("1", 2, 3, 4, 5)], names)}
    read = {name: f"o.__{name}" for name in ("count", "number", "rows", "there")}
    after = applied(frame, joining(None, {"o": odd}, **read), sources=sources)
    nothing = (None,) * len(read)
    assert rows(after, "order_id", *read) == [("1", 2, 3, 4, 5), ("2", *nothing), ("N/A", *nothing)]
