"""Orders in any number, and the workspace of the annotated example that runs over them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

PERIOD = "2026-01"
CUSTOMERS = 100_000
FILES = 8


def generate(spark: SparkSession, folder: Path, rows: int) -> Path:
    """Orders of two months, half of them in the period, and their customers; made once and kept."""
    data = folder / f"orders-{rows}"
    if (data / "done").exists():
        return data
    number = F.col("id")
    mixed = F.abs(F.xxhash64(number))
    region = F.element_at(F.array(*map(F.lit, ("EMEA", "AMER", "APAC", "LATAM"))), (mixed % 4 + 1).cast("int"))
    orders = spark.range(0, rows, numPartitions=FILES).select(
        F.concat(F.lit("O"), number.cast("string")).alias("order_id"),
        F.concat(F.lit("C"), (mixed % CUSTOMERS).cast("string")).alias("customer_id"),
        region.alias("region"),
        F.when(mixed % 10 < 8, "active").otherwise("cancelled").alias("status"),
        (F.when(mixed % 50 == 0, 0).otherwise(mixed % 1_000_000) / 100).cast("decimal(18,2)").alias("amount"),
        F.date_add(F.lit("2026-01-01").cast("date"), (mixed % 31).cast("int")).alias("order_date"),
        F.when(number % 2 == 0, PERIOD).otherwise("2026-02").alias("_period"),
    )
    orders.write.mode("overwrite").parquet(str(data / "orders"))
    customer = F.concat(F.lit("C"), number.cast("string"))
    tier = F.element_at(F.array(*map(F.lit, ("gold", "silver", "bronze"))), (number % 3 + 1).cast("int"))
    customers = spark.range(0, CUSTOMERS, numPartitions=1).select(customer.alias("id"), tier.alias("tier"))
    customers.write.mode("overwrite").parquet(str(data / "customers"))
    (data / "done").write_text("")
    return data


def workspace(folder: Path, data: Path, format: str) -> Path:
    """The five operations of the annotated example, from Parquet to `format`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tallybook.yaml").write_text("name: benchmark\n")
    (folder / "all.yaml").write_text(dedent(_DEFINITIONS).replace("DATA", str(data)).replace("FORMAT", format))
    return folder


_DEFINITIONS = """
    datasource: {id: data, type: parquet, options: {path_prefix: "DATA"}}
    ---
    datasource: {id: ds-warehouse, type: FORMAT, options: {path_prefix: warehouse}}
    ---
    resolver:
      id: all
      is_default: true
      rules: [{name: all, strategy: {type: path, datasource_id: data, path: "{{table_name}}"}}]
    ---
    dataset:
      id: sales-orders
      name: Orders
      main_table:
        name: orders
        temporal_mode: period
        columns:
          - {name: order_id, type: string}
          - {name: customer_id, type: string}
          - {name: region, type: string}
          - {name: status, type: string}
          - {name: amount, type: "decimal(18,2)"}
          - {name: order_date, type: date}
    ---
    dataset:
      id: customers
      name: Customers
      main_table: {name: customers, columns: [{name: id, type: string}, {name: tier, type: string}]}
    ---
    project:
      id: order-close
      name: Close orders
      input_dataset_id: sales-orders
      selectors: {active_orders: 'orders.status = "active"'}
      operations:
        - seq: 1
          name: Tag EMEA orders
          type: update
          selector: 'orders.region = "EMEA"'
          arguments: {assignments: [{column: _labels, expression: 'CONCAT(_labels, "{region:EMEA}")'}]}
        - seq: 2
          name: Add customer tier and discounted price
          type: update
          selector: "{{active_orders}}"
          arguments:
            joins: [{alias: customers, dataset_id: customers, on: "orders.customer_id = customers.id"}]
            assignments:
              - {column: customer_tier, expression: customers.tier}
              - column: discounted_price
                expression: 'IF(customers.tier = "gold", orders.amount * 0.9, orders.amount)'
        - seq: 3
          name: Monthly totals
          type: aggregate
          arguments:
            group_by: [orders._period, orders.region]
            aggregations:
              - {column: total_sales, expression: SUM(orders.amount)}
              - {column: order_count, expression: COUNT(orders.order_id)}
        - {seq: 4, name: Remove zero-amount rows, type: delete, selector: orders.amount = 0}
        - seq: 5
          name: Write to warehouse
          type: output
          selector: "{{active_orders}}"
          arguments: {destination: {datasource_id: ds-warehouse, table: processed_orders}}
"""
