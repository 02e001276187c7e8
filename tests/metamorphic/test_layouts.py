"""However the rows lie and however Spark splits the work: the same cells, and from files the same row ids."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.frames import dataset_of
from tallybook.model.dataset import Table
from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.storage import read_all

from .conftest import Apply, aggregate, fingerprint, update

JOIN = [{"alias": "r", "dataset_id": "rates", "on": "ledger.account = r.account"}]
OPERATIONS = (
    update("tax", "ROUND(amount * r.rate / 3, 4)", joins=JOIN, selector="quantity > 0 OR region IS NULL"),
    {"type": "delete", "selector": "day < DATE('2026-01-04')"},
    aggregate(["region", "account"], total="SUM(tax)", average="AVG(amount)", rows="COUNT(*)"),
    update("share", "tax / 7", selector="tax IS NOT NULL"),
)
SETTINGS = {
    "AQE on": {"spark.sql.adaptive.enabled": "true"},
    "AQE off": {"spark.sql.adaptive.enabled": "false"},
    "shuffle joins": {"spark.sql.autoBroadcastJoinThreshold": "-1"},
    "broadcast joins": {"spark.sql.autoBroadcastJoinThreshold": "100m"},
    "many shuffle partitions": {"spark.sql.shuffle.partitions": "31", "spark.sql.adaptive.enabled": "false"},
    "interpreted": {"spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    "small splits": {"spark.sql.files.maxPartitionBytes": "20k", "spark.sql.files.openCostInBytes": "1"},
}
FINGERPRINTS: dict[int, tuple[object, ...]] = {
    2_000: (2205, 152887736958832117906, -22920941540254846532),
    100_000: (100205, 378417778501518191186, -628913329636561788979),
}
"""Of the rows that OPERATIONS make, ids included, by the number of rows that went in."""
NO_IDS = ("_row_id",)
ALL: tuple[str, ...] = ()


@contextmanager
def settings(spark: SparkSession, **changed: str) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@pytest.mark.parametrize("partitions", [1, 7, pytest.param(200, marks=pytest.mark.long)])
def test_input_partitions(spark: SparkSession, rows: pa.Table, apply: Apply, partitions: int) -> None:
    split = spark.createDataFrame(rows).repartition(partitions)
    assert fingerprint(apply(*OPERATIONS, frame=split)) == fingerprint(apply(*OPERATIONS))


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_of_spark(spark: SparkSession, parquet: Path, table: Table, apply: Apply, name: str) -> None:
    """Rows from a Parquet file keep even their ids."""
    usual = fingerprint(apply(*OPERATIONS, frame=_read(spark, table, "parquet", parquet)), ALL)
    with settings(spark, **SETTINGS[name]):
        assert fingerprint(apply(*OPERATIONS, frame=_read(spark, table, "parquet", parquet)), ALL) == usual


def test_the_kind_of_session(spark: SparkSession, rows: pa.Table, parquet: Path, table: Table, apply: Apply) -> None:
    """Written down, so that one process, a cluster of workers and Spark Connect are held to the same cells."""
    result = fingerprint(apply(*OPERATIONS, frame=_read(spark, table, "parquet", parquet)), ALL)
    assert result == FINGERPRINTS[rows.num_rows]


def test_ids_from_delta_under_another_parallelism(
    spark: SparkSession, rows: pa.Table, table: Table, apply: Apply, tmp_path: Path
) -> None:
    for start in range(0, rows.num_rows, rows.num_rows // 4):
        write_deltalake(tmp_path / "delta", rows.slice(start, rows.num_rows // 4), mode="append")
    usual = fingerprint(apply(*OPERATIONS, frame=_read(spark, table, "delta", tmp_path / "delta")), ALL)
    with settings(spark, **SETTINGS["small splits"]):
        assert fingerprint(apply(*OPERATIONS, frame=_read(spark, table, "delta", tmp_path / "delta")), ALL) == usual


def test_one_file_or_many(
    spark: SparkSession, rows: pa.Table, parquet: Path, table: Table, apply: Apply, tmp_path: Path
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for index in range(9):
        size = rows.num_rows // 9 + 1
        pq.write_table(rows.slice(index * size, size), folder / f"part-{index}.parquet", row_group_size=500)
    one, many = (apply(*OPERATIONS, frame=_read(spark, table, "parquet", path)) for path in (parquet, folder))
    assert fingerprint(one, NO_IDS) == fingerprint(many, NO_IDS)
    assert many.select("_row_id").distinct().count() == many.count()


@pytest.fixture
def parquet(rows: pa.Table, tmp_path: Path) -> Path:
    pq.write_table(rows, tmp_path / "one.parquet", row_group_size=1000)
    return tmp_path / "one.parquet"


@pytest.fixture
def table(spark: SparkSession, rows: pa.Table) -> Table:
    return dataset_of("ledger", spark.createDataFrame(rows.slice(0, 1))).main_table


def _read(spark: SparkSession, table: Table, format: str, path: Path) -> DataFrame:
    source = FileSource(id="files", type=format, options=FileOptions(path_prefix="/"))  # type: ignore[arg-type]  # a Literal
    return read_all(spark, [Location(source, str(path))], table)
