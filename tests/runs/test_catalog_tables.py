"""Runs that read and write tables of the Spark catalog."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import JANUARY, Books

from tallybook.errors import RunError

REGISTERED = "        register_as_dataset: ledger\n"


@pytest.fixture
def schema(books: Books, spark: SparkSession) -> Iterator[str]:
    """The close writes its ledger to a table of this schema."""
    name = f"books_{uuid4().hex}"
    spark.sql(f"CREATE SCHEMA {name} LOCATION '{books.root / 'catalog'}'")
    source = f"{{id: warehouse, type: spark_catalog, options: {{schema: {name}}}}}"
    books.edit("places.yaml", "{id: warehouse, type: delta, options: {path_prefix: warehouse}}", source)
    books.edit("close.yaml", REGISTERED, "")
    (books.root / "report.yaml").unlink()
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def test_a_run_writes_a_table_and_a_replay_finds_the_same_rows(books: Books, schema: str, spark: SparkSession) -> None:
    draft = books.run()
    assert draft.outputs[0].location.endswith(f"close/2026-01/30-{schema}.ledger")
    assert not spark.catalog.tableExists(f"{schema}.ledger")

    books.open().activate("close")
    result = books.run()

    assert result.outputs[0].rows_written == 2
    assert result.outputs[0].location == f"spark_catalog {schema}.ledger"
    assert sorted(tuple(row) for row in spark.table(f"{schema}.ledger").collect()) == JANUARY
    assert books.open().replay(result.run.id).identical is True
    assert dict(books.open().first_rows(result, 2))[30].rows[0] == ("a", "gold", Decimal("9.00"), "2026-01")


def test_a_run_does_not_replace_a_table_that_it_reads(books: Books, schema: str, spark: SparkSession) -> None:
    books.open().activate("close")
    books.run()
    books.edit(
        "places.yaml",
        'type: path, datasource_id: files, path: "{{table_name}}/{{period}}.csv"',
        "type: table, datasource_id: warehouse, table: LEDGER",
    )
    books.edit("places.yaml", "data_level: month", "data_level: any")
    books.edit("sales.yaml", "{name: region, type: string}", "{name: region, type: string, source: tier}")
    books.edit("sales.yaml", 'amount, type: "decimal(10,2)"', 'amount, type: "decimal(22,2)", source: net')
    before = spark.table(f"{schema}.ledger").collect()
    books.open().activate("close")
    with pytest.raises(RunError, match="a location that the same run reads") as refused:
        books.run()
    assert refused.value.problem.type == "InvalidDestination"
    assert spark.table(f"{schema}.ledger").collect() == before
