"""What the hand-written rivals share: reading with a declared schema, and the system columns.

A rival makes system columns only where the output of the engine has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import polars as pl
from _data import spark_schema
from _kit import CORES
from _workspace import PERIOD
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

ID_PREFIX = "019c1c38-a400-7000-8000-"
SYSTEM_COLUMNS = (
    "_row_id",
    "_source_dataset_id",
    "_source_table",
    "_operation_seq",
    "_created_at",
    "_updated_at",
    "_deleted",
    "_labels",
    "_period",
)


def read(spark: SparkSession, folder: Path, columns: Mapping[str, str]) -> DataFrame:
    return spark.read.schema(spark_schema(columns)).parquet(str(folder))


def write(frame: DataFrame, folder: Path) -> None:
    frame.write.mode("overwrite").parquet(str(folder))


def system_columns(table: str, seq: int = 0, period: str | None = PERIOD) -> dict[str, Column]:
    """Returns the system columns of new rows, with an id from the position of the row."""
    number = F.lpad(F.lower(F.hex(F.monotonically_increasing_id())), 12, "0")
    now = F.current_timestamp()
    return {
        "_row_id": F.concat(F.lit(ID_PREFIX), number),
        "_source_dataset_id": F.lit(table),
        "_source_table": F.lit(table),
        "_operation_seq": F.lit(seq).cast("bigint"),
        "_created_at": now,
        "_updated_at": now,
        "_deleted": F.lit(False),
        "_labels": F.lit(""),
        "_period": F.lit(period).cast("string"),
    }


def duckdb_system_columns(table: str, seq: int = 0, period: str | None = PERIOD) -> str:
    """Returns the same columns in the SQL of DuckDB."""
    known_period = f"'{period}'" if period else "NULL::VARCHAR"
    return (
        f"'{ID_PREFIX}' || format('{{:012x}}', row_number() OVER ()) AS _row_id, '{table}' AS _source_dataset_id, "
        f"'{table}' AS _source_table, {seq}::BIGINT AS _operation_seq, now() AS _created_at, now() AS _updated_at, "
        f"false AS _deleted, '' AS _labels, {known_period} AS _period"
    )


def polars_system_columns(table: str, seq: int = 0, period: str | None = PERIOD) -> list[pl.Expr]:
    """Returns the same columns for Polars. It has no hexadecimal numbers, so the ids are decimal."""
    now = pl.lit(datetime.now(UTC))
    number = pl.int_range(pl.len()).cast(pl.String).str.pad_start(12, "0")
    return [
        (pl.lit(ID_PREFIX) + number).alias("_row_id"),
        pl.lit(table).alias("_source_dataset_id"),
        pl.lit(table).alias("_source_table"),
        pl.lit(seq, pl.Int64).alias("_operation_seq"),
        now.alias("_created_at"),
        now.alias("_updated_at"),
        pl.lit(False).alias("_deleted"),
        pl.lit("").alias("_labels"),
        pl.lit(period, pl.String).alias("_period"),
    ]


def duckdb_copy(query: str, target: Path) -> None:
    """Writes the rows of a query with a new DuckDB, as a script would."""
    target.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {CORES}")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"COPY ({query}) TO '{target / 'rows.parquet'}' (FORMAT parquet)")
