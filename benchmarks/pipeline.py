"""How much slower is the engine than the annotated example written by hand?

Its five operations, from Parquet to Parquet and to Delta: tag a region, join the tier of the customer and compute a
price, add totals, delete rows without an amount, write the active orders with all columns. Half of the rows are in the
period.
"""

from __future__ import annotations

import shutil
from argparse import ArgumentParser
from decimal import Decimal
from pathlib import Path

import polars as pl
from _by_hand import (
    SYSTEM_COLUMNS,
    duckdb_copy,
    duckdb_system_columns,
    polars_system_columns,
    read,
    system_columns,
    write,
)
from _kit import DUCKDB, ENGINE, POLARS, SPARK, Case, Suite, Way, options, suite
from _orders import CUSTOMER, ORDERS, TABLE, generate, workspace
from _workspace import PERIOD, engine_way
from deltalake import convert_to_deltalake
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SMALL_ROWS = 1_000_000
SMALL_BAR, LARGE_BAR = 1.05, 1.0
LABEL = "{region:EMEA}"
SEQ_TOTALS = 3
FORMATS = ("parquet", "delta")
WRITTEN = (*ORDERS, "customer_tier", "discounted_price", "total_sales", "order_count", *SYSTEM_COLUMNS)


def by_spark(spark: SparkSession, data: Path, target: Path, format: str) -> None:
    orders = read(spark, data / "orders", {**ORDERS, "_period": "string"}).where(F.col("_period") == PERIOD)
    customers = read(spark, data / "customers", CUSTOMER).withColumnRenamed("id", "customer_id")
    active = F.col("status") == "active"
    price = F.when(F.col("tier") == "gold", F.col("amount") * F.lit("0.9").cast("decimal(1,1)")).otherwise(
        F.col("amount")
    )
    label = F.when(F.col("region") == "EMEA", LABEL).otherwise("")
    detail = (
        orders.join(customers, "customer_id", "left")
        .withColumns(
            {
                "customer_tier": F.when(active, F.col("tier")),
                "discounted_price": F.when(active, price.cast("decimal(20,3)")),
                **system_columns(TABLE),
                "_labels": label,
            }
        )
        .drop("tier")
    )
    totals = detail.groupBy("_period", "region").agg(
        F.sum("amount").alias("total_sales"), F.count("order_id").alias("order_count")
    )
    system = system_columns(TABLE, SEQ_TOTALS)
    del system["_period"]
    together = detail.unionByName(totals.withColumns(system), allowMissingColumns=True)
    marked = together.withColumn("_deleted", F.coalesce(F.col("amount") == 0, F.lit(False)))
    kept = marked.where(~F.col("_deleted") & (F.col("status") == "active"))
    write(kept.select(*WRITTEN), target)
    if format == "delta":
        shutil.rmtree(target / "_delta_log", ignore_errors=True)
        convert_to_deltalake(str(target))


def by_duckdb(data: Path, target: Path) -> None:
    label = f"CASE WHEN region = 'EMEA' THEN '{LABEL}' ELSE '' END AS _labels"
    price = "CASE WHEN status = 'active' THEN CASE WHEN tier = 'gold' THEN amount * 0.9 ELSE amount END END"
    columns = ", ".join(f"orders.{name}" for name in ORDERS)
    system = duckdb_system_columns(TABLE).replace("'' AS _labels", label)
    system = system.replace("false AS _deleted", "amount = 0 AS _deleted")
    totals_system = duckdb_system_columns(TABLE, SEQ_TOTALS).rpartition(",")[0]
    query = f"""
        WITH detail AS NOT MATERIALIZED (
            SELECT {columns}, CASE WHEN status = 'active' THEN tier END AS customer_tier,
                ({price})::DECIMAL(20,3) AS discounted_price, {system}
            FROM read_parquet('{data}/orders/*.parquet') AS orders
            LEFT JOIN read_parquet('{data}/customers/*.parquet') AS customers ON orders.customer_id = customers.id
            WHERE orders._period = '{PERIOD}'
        ), totals AS NOT MATERIALIZED (
            SELECT *, {totals_system} FROM (
                SELECT _period, region, sum(amount)::DECIMAL(28,2) AS total_sales, count(order_id) AS order_count
                FROM detail GROUP BY ALL)
        )
        SELECT {", ".join(WRITTEN)} FROM (SELECT * FROM detail UNION ALL BY NAME SELECT * FROM totals)
        WHERE NOT _deleted AND status = 'active'
    """
    duckdb_copy(query, target)


def by_polars(data: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    active = pl.col("status") == "active"
    amount = pl.col("amount").cast(pl.Decimal(20, 3))
    price = pl.when(pl.col("tier") == "gold").then(amount * pl.lit(Decimal("0.9"))).otherwise(amount)
    label = pl.when(pl.col("region") == "EMEA").then(pl.lit(LABEL)).otherwise(pl.lit(""))
    orders = pl.scan_parquet(data / "orders" / "*.parquet").filter(pl.col("_period") == PERIOD)
    customers = pl.scan_parquet(data / "customers" / "*.parquet")
    detail = orders.join(customers, left_on="customer_id", right_on="id", how="left").with_columns(
        *polars_system_columns(TABLE)
    )
    detail = detail.with_columns(
        pl.when(active).then(pl.col("tier")).alias("customer_tier"),
        pl.when(active).then(price).cast(pl.Decimal(20, 3)).alias("discounted_price"),
        label.alias("_labels"),
        (pl.col("amount") == 0).alias("_deleted"),
    )
    totals = detail.group_by("_period", "region").agg(
        pl.col("amount").sum().cast(pl.Decimal(28, 2)).alias("total_sales"),
        pl.col("order_id").count().cast(pl.Int64).alias("order_count"),
    )
    summary = totals.with_columns(*polars_system_columns(TABLE, SEQ_TOTALS)[:-1])
    together = pl.concat([detail, summary], how="diagonal")
    together.filter(~pl.col("_deleted") & active).select(WRITTEN).sink_parquet(target / "rows.parquet")


def case(suite: Suite, rows: int, format: str) -> Case:
    spark, data = suite.session, generate(suite.session, suite.data, rows)
    targets = {name: suite.folder / f"{name}-{format}" for name in (SPARK, DUCKDB, POLARS)}
    ways = {
        ENGINE: engine_way(workspace(suite.new_folder("workspace"), data, format), ["processed_orders"]),
        SPARK: Way(lambda: by_spark(spark, data, targets[SPARK], format), (targets[SPARK],)),
    }
    if format == "parquet":
        ways |= {
            DUCKDB: Way(lambda: by_duckdb(data, targets[DUCKDB]), (targets[DUCKDB],)),
            POLARS: Way(lambda: by_polars(data, targets[POLARS]), (targets[POLARS],)),
        }
    return Case({"rows": rows, "writes": format}, ways, SMALL_BAR if rows < SMALL_ROWS else LARGE_BAR)


def more(parser: ArgumentParser) -> None:
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)


def main() -> None:
    given = options(__doc__, rows=[100_000], long_rows=[10_000_000], rounds=5, more=more)
    with suite("pipeline", __doc__, given) as running:
        for rows in given.rows:
            for format in given.formats:
                running.measure(case(running, rows, format))


if __name__ == "__main__":
    main()
