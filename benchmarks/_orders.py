"""Orders in any number, and the project of the annotated example that runs over them."""

from __future__ import annotations

from pathlib import Path

from _data import CUSTOMERS, REGIONS, code, made, mixed, one_of
from _data import write as write_data
from _workspace import PERIOD, aggregate, dataset, delete, join, output, update, write_workspace
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

FILES = 8
ORDERS = {
    "order_id": "string",
    "customer_id": "string",
    "region": "string",
    "status": "string",
    "amount": "decimal(18,2)",
    "order_date": "date",
}
CUSTOMER = {"id": "string", "tier": "string"}
TABLE = "orders"


def generate(spark: SparkSession, cache: Path, rows: int) -> Path:
    """Returns a folder with orders of two months, half of them in the period, and their customers."""

    def make(folder: Path) -> None:
        amount = F.when(mixed("zero") % 50 == 0, 0).otherwise(mixed("amount") % 1_000_000) / 100
        orders = spark.range(0, rows, numPartitions=FILES).select(
            code("O", F.col("id")).alias("order_id"),
            code("C", mixed("customer") % CUSTOMERS).alias("customer_id"),
            one_of("region", REGIONS).alias("region"),
            F.when(mixed("status") % 10 < 8, "active").otherwise("cancelled").alias("status"),
            amount.cast("decimal(18,2)").alias("amount"),
            F.date_add(F.lit(f"{PERIOD}-01").cast("date"), (mixed("day") % 31).cast("int")).alias("order_date"),
            F.when(F.col("id") % 2 == 0, PERIOD).otherwise("2026-02").alias("_period"),
        )
        tier = one_of("tier", ("gold", "silver", "bronze"))
        customers = spark.range(0, CUSTOMERS, numPartitions=1).select(
            code("C", F.col("id")).alias("id"), tier.alias("tier")
        )
        write_data(orders, folder / "orders")
        write_data(customers, folder / "customers")

    return made(cache, f"orders-{rows}", make)


def workspace(folder: Path, data: Path, format: str) -> Path:
    """Writes a workspace with the five operations of the annotated example, from Parquet to `format`."""
    tier_and_price = {
        "customer_tier": "customers.tier",
        "discounted_price": 'IF(customers.tier = "gold", orders.amount * 0.9, orders.amount)',
    }
    customers = join("customers", "orders.customer_id = customers.id")
    operations = [
        update('orders.region = "EMEA"', _labels='CONCAT(_labels, "{region:EMEA}")'),
        update("{{active_orders}}", joins=[customers], **tier_and_price),
        aggregate(
            ["orders._period", "orders.region"],
            total_sales="SUM(orders.amount)",
            order_count="COUNT(orders.order_id)",
        ),
        delete("orders.amount = 0"),
        output("processed_orders", selector="{{active_orders}}"),
    ]
    datasets = [dataset(TABLE, ORDERS, period_column=True), dataset("customers", CUSTOMER)]
    selectors = {"active_orders": 'orders.status = "active"'}
    return write_workspace(folder, data, datasets, operations, warehouse=format, selectors=selectors)
