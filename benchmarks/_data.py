"""The tables that benchmarks read. Every cell is a hash of its row number and SEED, so all machines make the same rows.

A table is made once and kept, in a folder whose name depends on this file: a change makes new data.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from _workspace import PERIOD
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

SEED = 15
FILES = 4
CUSTOMERS = 100_000
SMALL = 1_000
SMALL_TABLES = 8
REGIONS = ("EMEA", "AMER", "APAC", "LATAM")
CHANNELS = ("shop", "web", "phone", "partner", "field", "market")
CURRENCIES = ("EUR", "USD", "GBP", "CHF", "JPY")

LINES = {
    "line_id": "string",
    "customer": "string",
    "product": "string",
    "cost_centre": "string",
    "region": "string",
    "status": "string",
    "channel": "string",
    "currency": "string",
    "booked_on": "date",
    "quantity": "integer",
    "unit_price": "decimal(18,2)",
    "amount": "decimal(18,2)",
    "tax": "decimal(18,2)",
    "memo": "string",
}
SMALL_TABLE = {"code": "string", "title": "string", "rate": "decimal(9,4)"}
CUSTOMER_TABLE = {"id": "string", "tier": "string", "country": "string", "discount": "decimal(5,4)"}


def made(cache: Path, name: str, make: Callable[[Path], object]) -> Path:
    """Returns the folder of that name, which `make` fills if it does not exist yet."""
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    folder = cache / f"{name}-{version}"
    if not folder.exists():
        partial = folder.with_name(folder.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        make(partial)
        partial.rename(folder)
    return folder


def mixed(salt: str) -> Column:
    """Returns a number from 0 that looks random and depends on the row, the salt and SEED only."""
    return F.shiftrightunsigned(F.xxhash64(F.lit(SEED), F.lit(salt), F.col("id")), 1)


def one_of(salt: str, values: tuple[str, ...]) -> Column:
    return F.element_at(F.array(*map(F.lit, values)), (mixed(salt) % len(values) + 1).cast("int"))


def code(prefix: str, number: Column) -> Column:
    return F.concat(F.lit(prefix), number.cast("string"))


def cents(salt: str, below: int) -> Column:
    return ((mixed(salt) % below).cast("decimal(18,0)") * F.lit("0.01").cast("decimal(2,2)")).cast("decimal(18,2)")


def lines(spark: SparkSession, rows: int, *, customers: int = CUSTOMERS, skew: int = 0) -> DataFrame:
    """Sales lines of one month. With `skew`, so many percent of them have the same customer."""
    customer = mixed("customer") % customers
    if skew:
        customer = F.when(mixed("skew") % 100 < skew, F.lit(0)).otherwise(customer)
    columns = {
        "line_id": code("L", F.col("id")),
        "customer": code("C", customer),
        "product": code("P", mixed("product") % SMALL),
        "cost_centre": code("CC-", mixed("cost_centre") % 50),
        "region": one_of("region", REGIONS),
        "status": F.when(mixed("status") % 10 < 8, "active").otherwise("cancelled"),
        "channel": one_of("channel", CHANNELS),
        "currency": one_of("currency", CURRENCIES),
        "booked_on": F.date_add(F.lit(f"{PERIOD}-01").cast("date"), (mixed("day") % 31).cast("int")),
        "quantity": mixed("quantity") % 100 + 1,
        "unit_price": cents("unit_price", 100_000),
        "amount": cents("amount", 10_000_000),
        "tax": cents("tax", 1_000_000),
        "memo": code("Delivery of ", mixed("memo") % 5_000),
    }
    frame = spark.range(0, rows, numPartitions=FILES)
    return frame.select(*(column.alias(name) for name, column in columns.items()))


def small_table(spark: SparkSession, number: int) -> DataFrame:
    """A reference table of 1,000 rows whose codes are those of the products."""
    return spark.range(0, SMALL, numPartitions=1).select(
        code("P", F.col("id")).alias("code"),
        code(f"Title {number} of ", F.col("id")).alias("title"),
        (mixed(f"rate {number}") % 20_000 / 10_000).cast("decimal(9,4)").alias("rate"),
    )


def customer_table(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, numPartitions=FILES).select(
        code("C", F.col("id")).alias("id"),
        one_of("tier", ("gold", "silver", "bronze")).alias("tier"),
        code("Country ", mixed("country") % 200).alias("country"),
        (mixed("discount") % 3_000 / 10_000).cast("decimal(5,4)").alias("discount"),
    )


def lines_data(spark: SparkSession, cache: Path, rows: int) -> Path:
    """Returns a folder with the monthly table `lines`."""

    def make(folder: Path) -> None:
        write(lines(spark, rows), folder / "lines" / PERIOD)

    return made(cache, f"lines-{rows}", make)


def write(frame: DataFrame, folder: Path) -> None:
    frame.write.mode("overwrite").parquet(str(folder))


def spark_schema(columns: Mapping[str, str]) -> str:
    """Returns the schema of a dataset's columns as Spark writes it."""
    return ", ".join(f"{name} {'bigint' if type == 'integer' else type}" for name, type in columns.items())
