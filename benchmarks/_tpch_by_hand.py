"""The queries of TPC-H in PySpark, in SQL for DuckDB, and in Polars, with averages rounded as the specification does.

No query sorts or limits: an output has no order, and rows are compared as a set.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

Tables = Callable[[str], DataFrame]
LazyTables = Callable[[str], pl.LazyFrame]


class Query(NamedTuple):
    """One query: the columns it gives, and how each rival asks for them."""

    columns: tuple[str, ...]
    spark: Callable[[Tables], DataFrame]
    sql: str
    polars: Callable[[LazyTables], pl.LazyFrame]


def spark_q1(table: Tables) -> DataFrame:
    price = F.col("l_extendedprice") * (1 - F.col("l_discount"))
    lines = table("lineitem").where(F.col("l_shipdate") <= date(1998, 9, 2))
    return lines.groupBy("l_returnflag", "l_linestatus").agg(
        F.sum("l_quantity").alias("sum_qty"),
        F.sum("l_extendedprice").alias("sum_base_price"),
        F.sum(price).alias("sum_disc_price"),
        F.sum(price * (1 + F.col("l_tax"))).alias("sum_charge"),
        F.round(F.avg("l_quantity"), 2).alias("avg_qty"),
        F.round(F.avg("l_extendedprice"), 2).alias("avg_price"),
        F.round(F.avg("l_discount"), 2).alias("avg_disc"),
        F.count("*").alias("count_order"),
    )


def spark_q3(table: Tables) -> DataFrame:
    customers = table("customer").where(F.col("c_mktsegment") == "BUILDING")
    orders = table("orders").where(F.col("o_orderdate") < date(1995, 3, 15))
    lines = table("lineitem").where(F.col("l_shipdate") > date(1995, 3, 15))
    joined = lines.join(orders, F.col("l_orderkey") == F.col("o_orderkey")).join(
        customers, F.col("o_custkey") == F.col("c_custkey")
    )
    return joined.groupBy("l_orderkey", "o_orderdate", "o_shippriority").agg(spark_revenue())


def spark_q5(table: Tables) -> DataFrame:
    in_1994 = F.col("o_orderdate").between(date(1994, 1, 1), date(1994, 12, 31))
    asia = table("nation").join(
        table("region").where(F.col("r_name") == "ASIA"), F.col("n_regionkey") == F.col("r_regionkey")
    )
    suppliers = table("supplier").join(asia, F.col("s_nationkey") == F.col("n_nationkey"))
    joined = (
        table("lineitem")
        .join(table("orders").where(in_1994), F.col("l_orderkey") == F.col("o_orderkey"))
        .join(suppliers, F.col("l_suppkey") == F.col("s_suppkey"))
        .join(table("customer"), F.col("o_custkey") == F.col("c_custkey"))
        .where(F.col("c_nationkey") == F.col("s_nationkey"))
    )
    return joined.groupBy("n_name").agg(spark_revenue())


def spark_q6(table: Tables) -> DataFrame:
    chosen = (
        F.col("l_shipdate").between(date(1994, 1, 1), date(1994, 12, 31))
        & F.col("l_discount").between("0.05", "0.07")
        & (F.col("l_quantity") < 24)
    )
    return table("lineitem").where(chosen).agg(F.sum(F.col("l_extendedprice") * F.col("l_discount")).alias("revenue"))


def spark_q12(table: Tables) -> DataFrame:
    chosen = (
        F.col("l_shipmode").isin("MAIL", "SHIP")
        & (F.col("l_commitdate") < F.col("l_receiptdate"))
        & (F.col("l_shipdate") < F.col("l_commitdate"))
        & F.col("l_receiptdate").between(date(1994, 1, 1), date(1994, 12, 31))
    )
    urgent = F.col("o_orderpriority").isin("1-URGENT", "2-HIGH")
    joined = table("lineitem").where(chosen).join(table("orders"), F.col("l_orderkey") == F.col("o_orderkey"))
    return joined.groupBy("l_shipmode").agg(
        F.sum(F.when(urgent, 1).otherwise(0)).alias("high_line_count"),
        F.sum(F.when(urgent, 0).otherwise(1)).alias("low_line_count"),
    )


def spark_q14(table: Tables) -> DataFrame:
    lines = table("lineitem").where(F.col("l_shipdate").between(date(1995, 9, 1), date(1995, 9, 30)))
    joined = lines.join(table("part"), F.col("l_partkey") == F.col("p_partkey"))
    price = F.col("l_extendedprice") * (1 - F.col("l_discount"))
    promo = F.sum(F.when(F.col("p_type").startswith("PROMO"), price).otherwise(0))
    return joined.agg(F.round(100 * promo / F.sum(price), 2).alias("promo_revenue"))


def spark_revenue() -> F.Column:
    return F.sum(F.col("l_extendedprice") * (1 - F.col("l_discount"))).alias("revenue")


def polars_price() -> pl.Expr:
    """The price after the discount. Polars keeps the larger scale of two decimals, so one gets all the digits first."""
    return pl.col("l_extendedprice").cast(pl.Decimal(38, 6)) * (1 - pl.col("l_discount"))


def polars_mean(name: str) -> pl.Expr:
    """The average as an exact quotient; `mean` of Polars is a binary fraction."""
    return (pl.col(name).sum().cast(pl.Decimal(38, 8)) / pl.len()).round(2, mode="half_away_from_zero")


def in_year(name: str, year: int) -> pl.Expr:
    return pl.col(name).is_between(date(year, 1, 1), date(year, 12, 31))


def polars_q1(table: LazyTables) -> pl.LazyFrame:
    lines = table("lineitem").filter(pl.col("l_shipdate") <= date(1998, 9, 2))
    return lines.group_by("l_returnflag", "l_linestatus").agg(
        pl.col("l_quantity").sum().alias("sum_qty"),
        pl.col("l_extendedprice").sum().alias("sum_base_price"),
        polars_price().sum().alias("sum_disc_price"),
        (polars_price() * (1 + pl.col("l_tax"))).sum().alias("sum_charge"),
        polars_mean("l_quantity").alias("avg_qty"),
        polars_mean("l_extendedprice").alias("avg_price"),
        polars_mean("l_discount").alias("avg_disc"),
        pl.len().cast(pl.Int64).alias("count_order"),
    )


def polars_q3(table: LazyTables) -> pl.LazyFrame:
    customers = table("customer").filter(pl.col("c_mktsegment") == "BUILDING")
    orders = table("orders").filter(pl.col("o_orderdate") < date(1995, 3, 15))
    lines = table("lineitem").filter(pl.col("l_shipdate") > date(1995, 3, 15))
    joined = lines.join(orders, left_on="l_orderkey", right_on="o_orderkey").join(
        customers, left_on="o_custkey", right_on="c_custkey"
    )
    keys = ("l_orderkey", "o_orderdate", "o_shippriority")
    return joined.group_by(keys).agg(polars_price().sum().alias("revenue"))


def polars_q5(table: LazyTables) -> pl.LazyFrame:
    asia = table("nation").join(
        table("region").filter(pl.col("r_name") == "ASIA"), left_on="n_regionkey", right_on="r_regionkey"
    )
    suppliers = table("supplier").join(asia, left_on="s_nationkey", right_on="n_nationkey")
    joined = (
        table("lineitem")
        .join(table("orders").filter(in_year("o_orderdate", 1994)), left_on="l_orderkey", right_on="o_orderkey")
        .join(suppliers, left_on="l_suppkey", right_on="s_suppkey")
        .join(table("customer"), left_on=["o_custkey", "s_nationkey"], right_on=["c_custkey", "c_nationkey"])
    )
    return joined.group_by("n_name").agg(polars_price().sum().alias("revenue"))


def polars_q6(table: LazyTables) -> pl.LazyFrame:
    chosen = in_year("l_shipdate", 1994) & pl.col("l_discount").is_between(0.05, 0.07) & (pl.col("l_quantity") < 24)
    product = pl.col("l_extendedprice").cast(pl.Decimal(38, 4)) * pl.col("l_discount")
    return table("lineitem").filter(chosen).select(product.sum().alias("revenue"))


def polars_q12(table: LazyTables) -> pl.LazyFrame:
    chosen = (
        pl.col("l_shipmode").is_in(["MAIL", "SHIP"])
        & (pl.col("l_commitdate") < pl.col("l_receiptdate"))
        & (pl.col("l_shipdate") < pl.col("l_commitdate"))
        & in_year("l_receiptdate", 1994)
    )
    urgent = pl.col("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    joined = table("lineitem").filter(chosen).join(table("orders"), left_on="l_orderkey", right_on="o_orderkey")
    return joined.group_by("l_shipmode").agg(
        urgent.sum().cast(pl.Int64).alias("high_line_count"), (~urgent).sum().cast(pl.Int64).alias("low_line_count")
    )


def polars_q14(table: LazyTables) -> pl.LazyFrame:
    lines = table("lineitem").filter(pl.col("l_shipdate").is_between(date(1995, 9, 1), date(1995, 9, 30)))
    joined = lines.join(table("part"), left_on="l_partkey", right_on="p_partkey")
    promo = polars_price().filter(pl.col("p_type").str.starts_with("PROMO")).sum()
    share = (100 * promo / polars_price().sum()).round(2, mode="half_away_from_zero")
    return joined.select(share.alias("promo_revenue"))


PRICE = "l_extendedprice * (1 - l_discount)"
Q1_SUMS = ("sum_qty", "sum_base_price", "sum_disc_price", "sum_charge")
Q1_COLUMNS = ("l_returnflag", "l_linestatus", *Q1_SUMS, "avg_qty", "avg_price", "avg_disc", "count_order")
QUERIES = {
    "q1": Query(
        Q1_COLUMNS,
        spark_q1,
        f"""SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty, sum(l_extendedprice) AS sum_base_price,
            sum({PRICE}) AS sum_disc_price, sum({PRICE} * (1 + l_tax)) AS sum_charge,
            round(avg(l_quantity), 2)::DECIMAL(18,2) AS avg_qty,
            round(avg(l_extendedprice), 2)::DECIMAL(18,2) AS avg_price,
            round(avg(l_discount), 2)::DECIMAL(18,2) AS avg_disc, count(*) AS count_order
            FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY ALL""",
        polars_q1,
    ),
    "q3": Query(
        ("l_orderkey", "revenue", "o_orderdate", "o_shippriority"),
        spark_q3,
        f"""SELECT l_orderkey, sum({PRICE}) AS revenue, o_orderdate, o_shippriority
            FROM lineitem, orders, customer WHERE l_orderkey = o_orderkey AND o_custkey = c_custkey
            AND c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
            GROUP BY ALL""",
        polars_q3,
    ),
    "q5": Query(
        ("n_name", "revenue"),
        spark_q5,
        f"""SELECT n_name, sum({PRICE}) AS revenue FROM lineitem, orders, customer, supplier, nation, region
            WHERE l_orderkey = o_orderkey AND o_custkey = c_custkey AND l_suppkey = s_suppkey
            AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND c_nationkey = s_nationkey
            AND r_name = 'ASIA' AND o_orderdate BETWEEN DATE '1994-01-01' AND DATE '1994-12-31' GROUP BY ALL""",
        polars_q5,
    ),
    "q6": Query(
        ("revenue",),
        spark_q6,
        """SELECT sum(l_extendedprice * l_discount) AS revenue FROM lineitem
            WHERE l_shipdate BETWEEN DATE '1994-01-01' AND DATE '1994-12-31'
            AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
        polars_q6,
    ),
    "q12": Query(
        ("l_shipmode", "high_line_count", "low_line_count"),
        spark_q12,
        """SELECT l_shipmode, count_if(o_orderpriority IN ('1-URGENT', '2-HIGH'))::BIGINT AS high_line_count,
            count_if(o_orderpriority NOT IN ('1-URGENT', '2-HIGH'))::BIGINT AS low_line_count
            FROM lineitem JOIN orders ON l_orderkey = o_orderkey WHERE l_shipmode IN ('MAIL', 'SHIP')
            AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
            AND l_receiptdate BETWEEN DATE '1994-01-01' AND DATE '1994-12-31' GROUP BY ALL""",
        polars_q12,
    ),
    "q14": Query(
        ("promo_revenue",),
        spark_q14,
        f"""SELECT round(100 * sum(CASE WHEN starts_with(p_type, 'PROMO') THEN {PRICE} ELSE 0 END) / sum({PRICE}),
            2)::DECIMAL(18,2) AS promo_revenue FROM lineitem JOIN part ON l_partkey = p_partkey
            WHERE l_shipdate BETWEEN DATE '1995-09-01' AND DATE '1995-09-30'""",
        polars_q14,
    ),
}
COMBINED = ("q1", "q5", "q6", "q12")
COMBINED_COLUMNS = ("query", *dict.fromkeys(name for query in COMBINED for name in QUERIES[query].columns))


def spark_query(name: str, table: Tables) -> DataFrame:
    if name in QUERIES:
        return QUERIES[name].spark(table).select(*QUERIES[name].columns)
    frames = [QUERIES[query].spark(table).withColumn("query", F.lit(query)) for query in COMBINED]
    union = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)
    return union.select(*COMBINED_COLUMNS)


def duckdb_query(name: str, data: Path) -> str:
    """Returns the query with its tables as subqueries of the files."""
    parts = {query: QUERIES[query].sql for query in (COMBINED if name == "combined" else (name,))}
    text = " UNION ALL BY NAME ".join(f"(SELECT '{query}' AS query, * FROM ({sql}))" for query, sql in parts.items())
    columns = COMBINED_COLUMNS if name == "combined" else QUERIES[name].columns
    views = ", ".join(
        f"{table.name} AS NOT MATERIALIZED (FROM '{table}/*.parquet')" for table in sorted(data.iterdir())
    )
    return f"WITH {views} SELECT {', '.join(columns)} FROM ({text})"


def polars_query(name: str, data: Path) -> pl.LazyFrame:
    def table(name: str) -> pl.LazyFrame:
        return pl.scan_parquet(data / name / "*.parquet")

    if name in QUERIES:
        return QUERIES[name].polars(table).select(QUERIES[name].columns)
    frames = [QUERIES[query].polars(table).with_columns(query=pl.lit(query)) for query in COMBINED]
    return pl.concat(frames, how="diagonal_relaxed").select(COMBINED_COLUMNS)
