"""How do projects compare with TPC-H queries, one by one and four of them combined?

Each project starts with the rows of `lineitem`, joins what the query needs, aggregates, and writes the summary rows.
The combined project joins five tables once and has four aggregates (Q1, Q5, Q6, Q12) and one output of 12 rows. The
rows must be those of DuckDB, and at scale 1 those that the specification prints.
"""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path

import duckdb
from _agree import DisagreementError, parquet_files
from _by_hand import duckdb_copy, read, write
from _data import made
from _kit import DUCKDB, ENGINE, POLARS, SPARK, Case, Suite, Way, options, suite
from _tpch_by_hand import COMBINED, COMBINED_COLUMNS, QUERIES, duckdb_query, polars_query, spark_query
from _workspace import Definition, aggregate, dataset, engine_way, join, output, update, write_workspace
from pyspark.sql import SparkSession

BAR = 1.2
LINES_PER_SCALE = 6_000_000
SMALLEST_SCALE = 0.001
DECIMAL = "decimal(15,2)"
TABLES = {
    "lineitem": dict.fromkeys(("l_orderkey", "l_partkey", "l_suppkey"), "integer")
    | dict.fromkeys(("l_quantity", "l_extendedprice", "l_discount", "l_tax"), DECIMAL)
    | dict.fromkeys(("l_returnflag", "l_linestatus"), "string")
    | dict.fromkeys(("l_shipdate", "l_commitdate", "l_receiptdate"), "date")
    | dict.fromkeys(("l_shipinstruct", "l_shipmode", "l_comment"), "string"),
    "orders": dict.fromkeys(("o_orderkey", "o_custkey"), "integer")
    | {"o_orderstatus": "string", "o_totalprice": DECIMAL, "o_orderdate": "date", "o_orderpriority": "string"}
    | {"o_shippriority": "integer"},
    "customer": {"c_custkey": "integer", "c_name": "string", "c_nationkey": "integer", "c_mktsegment": "string"},
    "supplier": {"s_suppkey": "integer", "s_name": "string", "s_nationkey": "integer"},
    "nation": {"n_nationkey": "integer", "n_name": "string", "n_regionkey": "integer"},
    "region": {"r_regionkey": "integer", "r_name": "string"},
    "part": {"p_partkey": "integer", "p_name": "string", "p_type": "string"},
}
PRICE = "l_extendedprice * (1 - l_discount)"
JOINS = {
    "orders": "orders.o_orderkey = lineitem.l_orderkey",
    "customer": "customer.c_custkey = orders.o_custkey",
    "supplier": "supplier.s_suppkey = lineitem.l_suppkey",
    "nation": "nation.n_nationkey = supplier.s_nationkey",
    "region": "region.r_regionkey = nation.n_regionkey",
    "part": "part.p_partkey = lineitem.l_partkey",
}
JOINED = {
    "q3": ({"o_orderdate": "orders.o_orderdate", "o_shippriority": "orders.o_shippriority"}, ("orders", "customer")),
    "q5": ({"n_name": "nation.n_name"}, ("orders", "customer", "supplier", "nation", "region")),
    "q12": ({"priority": "orders.o_orderpriority"}, ("orders",)),
    "q14": ({"p_type": "part.p_type"}, ("part",)),
}
EXTRA = {
    "q3": {"segment": "customer.c_mktsegment"},
    "q5": {
        "ordered_on": "orders.o_orderdate",
        "home": "customer.c_nationkey",
        "seller": "supplier.s_nationkey",
        "r_name": "region.r_name",
    },
}
"""Columns that only selectors read."""
YEAR_1994 = 'BETWEEN DATE("1994-01-01") AND DATE("1994-12-31")'
SELECTORS = {
    "q1": 'l_shipdate <= DATE("1998-09-02")',
    "q3": 'segment = "BUILDING" AND o_orderdate < DATE("1995-03-15") AND l_shipdate > DATE("1995-03-15")',
    "q5": f'r_name = "ASIA" AND home = seller AND ordered_on {YEAR_1994}',
    "q6": f"l_shipdate {YEAR_1994} AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    "q12": 'l_shipmode IN ("MAIL", "SHIP") AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate'
    f" AND l_receiptdate {YEAR_1994}",
    "q14": 'l_shipdate BETWEEN DATE("1995-09-01") AND DATE("1995-09-30")',
}
URGENT = 'priority IN ("1-URGENT", "2-HIGH")'
AGGREGATES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "q1": (
        ("l_returnflag", "l_linestatus"),
        {
            "sum_qty": "SUM(l_quantity)",
            "sum_base_price": "SUM(l_extendedprice)",
            "sum_disc_price": f"SUM({PRICE})",
            "sum_charge": f"SUM({PRICE} * (1 + l_tax))",
            "avg_qty": "ROUND(AVG(l_quantity), 2)",
            "avg_price": "ROUND(AVG(l_extendedprice), 2)",
            "avg_disc": "ROUND(AVG(l_discount), 2)",
            "count_order": "COUNT(*)",
        },
    ),
    "q3": (("l_orderkey", "o_orderdate", "o_shippriority"), {"revenue": f"SUM({PRICE})"}),
    "q5": (("n_name",), {"revenue": f"SUM({PRICE})"}),
    "q6": (("_period",), {"revenue": "SUM(l_extendedprice * l_discount)"}),
    "q12": (
        ("l_shipmode",),
        {"high_line_count": f"SUM(IF({URGENT}, 1, 0))", "low_line_count": f"SUM(IF({URGENT}, 0, 1))"},
    ),
    "q14": (
        ("_period",),
        {"promo_revenue": f'ROUND(100 * SUM(IF(STARTS_WITH(p_type, "PROMO"), {PRICE}, 0)) / SUM({PRICE}), 2)'},
    ),
}
ANSWERS = {
    "q1": "SELECT sum_qty, count_order FROM result ORDER BY l_returnflag, l_linestatus",
    "q3": "SELECT l_orderkey, round(revenue, 2) FROM result ORDER BY revenue DESC LIMIT 3",
    "q5": "SELECT n_name, round(revenue, 2) FROM result ORDER BY revenue DESC",
    "q6": "SELECT round(revenue, 2) FROM result",
    "q12": "SELECT l_shipmode, high_line_count, low_line_count FROM result ORDER BY l_shipmode",
    "q14": "SELECT promo_revenue FROM result",
}
PRINTED = {
    "q1": "37734107.00 1478493, 991417.00 38854, 74476040.00 2920374, 37719753.00 1478870",
    "q3": "2456423 406181.01, 3459808 405838.70, 492164 390324.06",
    "q5": "INDONESIA 55502041.17, VIETNAM 55295087.00, CHINA 53724494.26, INDIA 52035512.00, JAPAN 45410175.70",
    "q6": "123141078.23",
    "q12": "MAIL 6202 9324, SHIP 6200 9262",
    "q14": "16.38",
}
"""What the specification prints for scale 1: two columns of Q1, the first three rows of Q3, and all of the others."""


def generate(cache: Path, scale: float) -> Path:
    def make(folder: Path) -> None:
        program = Path(sys.executable).with_name("tpchgen-cli")
        options = ["--quiet", "--parts", "4", "--compression", "SNAPPY", "--output-dir", str(folder)]
        subprocess.run([program, "parquet", "--scale-factor", str(scale), *options], check=True)

    return made(cache, f"tpch-{scale}", make)


def operations_of(name: str) -> list[Definition]:
    """Returns the operations of one query, or of the four combined."""
    queries = COMBINED if name == "combined" else (name,)
    columns = COMBINED_COLUMNS if name == "combined" else QUERIES[name].columns
    assignments: dict[str, str] = {}
    tables: dict[str, str] = {}
    for query in queries:
        set_columns, joined = JOINED.get(query, ({}, ()))
        assignments |= set_columns | EXTRA.get(query, {})
        tables |= {table: JOINS[table] for table in joined}
    operations = [update(joins=[join(*table) for table in tables.items()], **assignments)] if tables else []
    for query in queries:
        keys, sums = AGGREGATES[query]
        operations.append(aggregate(keys, f"_operation_seq = 0 AND {SELECTORS[query]}", **sums))
        if name == "combined":
            operations.append(update("_operation_seq > 0 AND ISNULL(query)", query=f'"{query}"'))
    return [*operations, output("result", columns, "_operation_seq > 0")]


def by_engine(suite: Suite, data: Path, name: str) -> Way:
    operations = operations_of(name)
    if name == "combined":
        operations.insert(0, update(query="TO_STRING(NULL)"))
    datasets = [dataset(table, columns) for table, columns in TABLES.items()]
    return engine_way(write_workspace(suite.new_folder("workspace"), data, datasets, operations), ["result"])


def by_spark(spark: SparkSession, data: Path, target: Path, name: str) -> None:
    write(spark_query(name, lambda table: read(spark, data / table, TABLES[table])), target)


def by_polars(data: Path, target: Path, name: str) -> None:
    target.mkdir(parents=True, exist_ok=True)
    polars_query(name, data).sink_parquet(target / "rows.parquet")


def case(suite: Suite, scale: float, name: str) -> Case:
    spark, data = suite.session, generate(suite.data, scale)
    targets = {rival: suite.folder / rival for rival in (SPARK, DUCKDB, POLARS)}
    ways = {
        ENGINE: by_engine(suite, data, name),
        SPARK: Way(lambda: by_spark(spark, data, targets[SPARK], name), (targets[SPARK],)),
        DUCKDB: Way(lambda: duckdb_copy(duckdb_query(name, data), targets[DUCKDB]), (targets[DUCKDB],)),
        POLARS: Way(lambda: by_polars(data, targets[POLARS], name), (targets[POLARS],)),
    }
    return Case({"scale": f"{scale:g}", "query": name}, ways, BAR)


def check_answers(name: str, ways: Mapping[str, Way]) -> None:
    """Raises DisagreementError if the rows of the first way are not those that the specification prints for scale 1."""
    files = parquet_files(next(iter(ways.values())).outputs[0])
    with duckdb.connect() as connection:
        connection.from_parquet(files).create_view("result")
        rows = connection.execute(ANSWERS[name]).fetchall()
    answer = ", ".join(" ".join(map(str, row)) for row in rows)
    if answer != PRINTED[name]:
        raise DisagreementError(f"{name}: the answer is {answer}, the specification prints {PRINTED[name]}")


def more(parser: ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, nargs="+", default=[])
    parser.add_argument("--queries", nargs="+", choices=[*QUERIES, "combined"], default=[*QUERIES, "combined"])


def main() -> None:
    given = options(__doc__, rows=[600_000], long_rows=[6_000_000], more=more)
    scales = given.scale or [max(rows / LINES_PER_SCALE, SMALLEST_SCALE) for rows in given.rows]
    with suite("tpch", __doc__, given) as running:
        for scale in scales:
            for name in given.queries:
                measured = case(running, scale, name)
                running.measure(measured)
                if scale == 1 and name in PRINTED:
                    check_answers(name, measured.ways)


if __name__ == "__main__":
    main()
