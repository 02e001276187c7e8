"""Data whose columns differ from the expected ones by case only: never overlooked, never an internal error."""

from __future__ import annotations

import pytest

from tallybook.storage import write


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc", "delta"])
@pytest.mark.parametrize("name", ["_DELETED", "_Period"])
def test_a_system_column_in_another_case_is_told(spark, refused, place, table, tmp_path, format, name):
    location = place(format, tmp_path / "out")
    frame = spark.createDataFrame([(1, "true")], f"id bigint, {name} string")
    write(spark, frame.coalesce(1), location, mode="overwrite", run_id="run-1", seq=1)
    problem = refused(location, table(id="integer"))
    assert problem.type == "SchemaMismatch"
    assert f"has a column '{name}', which differs from '{name.lower()}' by case only" in problem.message


def test_letters_that_spark_takes_for_one_another(rows, place, table, text):
    """Only one of them is asked for; Spark must not find the other."""
    file = text("orders.csv", "ſ,s,\u212a,k,İ,i", "1,2,3,4,5,6")
    assert rows(place("csv", file), table(a="integer s", b="integer \u212a", c="integer i")) == [(2, 3, 6)]
