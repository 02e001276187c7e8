"""Tables of the Spark catalog as destinations: replaced in one step, with the columns that they have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from tests.storage.kit import refusal

from tallybook.errors import RunError, fail
from tallybook.model.datasource import CatalogOptions, CatalogSource
from tallybook.model.location import Location
from tallybook.storage import write
from tallybook.storage.output import Guard


@pytest.fixture
def schema(spark, tmp_path) -> Iterator[str]:
    """A schema of the session's catalog in a folder of its own."""
    name = f"books_{uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {name} LOCATION '{tmp_path / 'warehouse'}'")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def ledger(schema) -> Location:
    source = CatalogSource(id="session", type="spark_catalog", options=CatalogOptions(schema=schema))
    return Location(source, f"{schema}.Ledger")


@pytest.fixture
def save(spark, ledger, run_id):
    """`save([(1, "a")], mode="append", run="run-2")`: writes rows of id and name."""

    def run(rows, *, location=ledger, mode="overwrite", run="run-1", columns="id bigint, name string", **options):
        frame = rows if hasattr(rows, "schema") else spark.createDataFrame(rows, columns)
        return write(spark, frame, location, mode=mode, run_id=run_id(run), seq=10, **options)

    return run


def rows_of(spark, location: Location) -> list[tuple]:
    return sorted(tuple(row) for row in spark.table(location.target).collect())


def test_a_table_is_created_replaced_and_added_to(spark, save, ledger, tmp_path):
    assert save([(1, "a"), (2, "b")]).rows == 2
    assert rows_of(spark, ledger) == [(1, "a"), (2, "b")]
    assert save([(3, "c")], run="run-2").columns == ("id", "name")
    assert rows_of(spark, ledger) == [(3, "c")]
    save([(4, "d")], run="run-3", mode="append")
    save([(4, "d")], run="run-3", mode="append")
    assert rows_of(spark, ledger) == [(3, "c"), (4, "d")]
    assert save(spark.createDataFrame([], "id bigint, name string"), run="run-4").rows == 0
    assert rows_of(spark, ledger) == []
    assert [entry.name for entry in (tmp_path / "warehouse").iterdir()] == ["ledger"]


def test_a_write_that_fails_leaves_the_old_rows(spark, save, ledger):
    save([(1, "a")])
    broken = spark.range(3).select("id", F.raise_error(F.lit("no")).cast("string").alias("name"))
    with pytest.raises(PySparkException):
        save(broken, run="run-2")

    def lost() -> None:
        raise fail("RunSuperseded", "another run has written")

    with pytest.raises(RunError, match="another run has written"):
        save([(9, "z")], run="run-3", guard=Guard(lost, "output", 1))
    assert rows_of(spark, ledger) == [(1, "a")]


def test_a_new_table_appears_only_with_its_rows(spark, save, ledger, schema):
    broken = spark.range(3).select("id", F.raise_error(F.lit("no")).cast("string").alias("name"))
    with pytest.raises(PySparkException):
        save(broken)
    assert not spark.catalog.tableExists(ledger.target)
    assert spark.sql(f"SHOW TABLES IN {schema}").where("NOT isTemporary").count() == 0


def test_an_existing_table_keeps_its_columns_and_their_order(spark, save, ledger, schema):
    spark.sql(f"CREATE TABLE {schema}.Ledger (name string COMMENT 'whose', id bigint) USING parquet")
    save([(1, "a")])
    assert rows_of(spark, ledger) == [("a", 1)]
    assert spark.sql(f"DESCRIBE {schema}.Ledger").collect()[0]["comment"] == "whose"
    message = refusal(save, [(1, 2)], columns="id bigint, name int", run="run-2")
    assert "has the columns name string, id bigint; the output has id bigint, name int" in message
    assert rows_of(spark, ledger) == [("a", 1)]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("CREATE VIEW {0} AS SELECT 1L AS id, 'a' AS name", "it is a view"),
        ("CREATE TABLE {0} (id bigint, name string) USING parquet PARTITIONED BY (name)", "it is partitioned"),
        ("CREATE TABLE {0} (id bigint, name string) USING csv", "it is stored as csv, not as Parquet"),
        ("CREATE TABLE {0} (id bigint, name varchar(3)) USING parquet", "with a maximum length: name"),
        ("CREATE TABLE {0} USING parquet AS SELECT 1L AS id, 'a' AS name", "which this product did not write"),
    ],
    ids=["view", "partitions", "csv", "length", "rows of others"],
)
def test_a_table_that_cannot_be_replaced_is_refused(statement, why, spark, save, schema, ledger):
    spark.sql(statement.format(ledger.target))
    before = rows_of(spark, ledger)
    assert why in refusal(save, [(1, "a")])
    assert rows_of(spark, ledger) == before


def test_a_schema_that_does_not_exist_is_named(save, ledger):
    location = Location(ledger.source, "no_such_schema.ledger")
    assert "no_such_schema" in refusal(save, [(1, "a")], location=location)


def test_a_table_of_another_catalog_is_read_by_three_names_and_not_written(spark, derby, save, ledger, rows, table):
    """Derby comes with Spark. It stands for every other catalog: its tables are not replaced in one step."""
    catalog = f"derby_{uuid4().hex}"
    jdbc = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    spark.conf.set(f"spark.sql.catalog.{catalog}", jdbc)
    spark.conf.set(f"spark.sql.catalog.{catalog}.url", f"jdbc:derby:memory:{catalog};create=true")
    spark.conf.set(f"spark.sql.catalog.{catalog}.driver", "org.apache.derby.iapi.jdbc.AutoloadedDriver")
    spark.sql(f"CREATE NAMESPACE {catalog}.books")
    spark.sql(f"CREATE TABLE {catalog}.books.ledger (id bigint, name string)")
    spark.sql(f"INSERT INTO {catalog}.books.ledger VALUES (1, 'a')")
    there = Location(ledger.source, f"{catalog}.books.ledger")
    assert rows([there], table(id="integer", name="string")) == [(1, "a")]
    assert "another catalog than the session's own" in refusal(save, [(2, "b")], location=there)
    new = Location(ledger.source, f"{catalog}.books.other")
    assert f"catalog '{catalog}' is not the session's own" in refusal(save, [(2, "b")], location=new)


def test_a_name_is_never_part_of_a_statement(spark, save, ledger, schema, tmp_path: Path):
    message = refusal(save, [(1, "a")], location=Location(ledger.source, f"{schema}.x; DROP SCHEMA {schema}"))
    assert "is not a valid name" in message
    assert spark.catalog.databaseExists(schema)
