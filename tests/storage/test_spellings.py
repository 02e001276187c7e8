"""Data whose columns differ from the expected ones by case only: never overlooked, never an internal error."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tallybook.storage import write


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc", "delta"])
@pytest.mark.parametrize("name", ["_DELETED", "_Period"])
def test_a_system_column_in_another_case_is_refused(spark, refused, locate, table, tmp_path, format, name):
    location = locate(format, tmp_path / "out")
    frame = spark.createDataFrame([(1, "true")], f"id bigint, {name} string")
    write(spark, frame.coalesce(1), location, mode="overwrite", run_id="run-1", seq=1)
    problem = refused(location, table(id="integer"))
    assert problem.type == "SchemaMismatch"
    assert f"has a column '{name}', which differs from '{name.lower()}' only by case" in problem.message


@pytest.mark.parametrize("file", [pq, orc], ids=["parquet", "orc"])
def test_a_system_column_in_another_case_in_one_of_several_files(refused, locate, table, tmp_path, file):
    """Both files are read alike, for nobody asks for the column."""
    format = file.__name__.rpartition(".")[2]
    file.write_table(pa.table({"id": [1]}), tmp_path / f"a.{format}")
    file.write_table(pa.table({"id": [2], "_DELETED": [True]}), tmp_path / f"b.{format}")
    problem = refused(locate(format, tmp_path), table(id="integer"))
    assert problem.type == "SchemaMismatch"
    assert f"{tmp_path} has a column '_DELETED', which differs from '_deleted' only by case" in problem.message


def test_letters_that_spark_takes_for_one_another(rows, locate, table, text):
    """Only one of them is asked for; Spark must not find the other."""
    file = text("orders.csv", "ſ,s,\u212a,k,İ,i", "1,2,3,4,5,6")
    assert rows(locate("csv", file), table(a="integer s", b="integer \u212a", c="integer i")) == [(2, 3, 6)]


@pytest.mark.parametrize("file", [pq, orc], ids=["parquet", "orc"])
def test_letters_that_spark_takes_for_one_another_in_columnar_files(rows, refused, locate, table, tmp_path, file):
    """Spark finds a column of a file by its lower case, and a column of a frame letter by letter."""
    format = file.__name__.rpartition(".")[2]
    file.write_table(pa.table({"ſ": ["1"], "s": ["2"]}), tmp_path / f"a.{format}")
    assert rows(locate(format, tmp_path / f"a.{format}"), table(a="string s")) == [("2",)]
    (tmp_path / "b" / "s=2").mkdir(parents=True)
    file.write_table(pa.table({"ſ": ["1"]}), tmp_path / "b" / "s=2" / f"b.{format}")
    problem = refused(locate(format, tmp_path / "b"), table(a="string ſ"))
    assert problem.type == "SchemaMismatch"
    assert "has the column 'ſ', and its folders name 's'" in problem.message
