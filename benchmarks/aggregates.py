"""What does each further aggregate over the same detail rows cost?

The project has one update, then 1, 2, 4 or 8 aggregates over the detail, each by other columns, then one output. It
writes the summary rows only, or all rows with all columns. By hand: a groupBy for each summary, a union, one write;
and, as `sets`, all summaries in one pass with grouping sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
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
from _data import LINES, lines_data
from _kit import DUCKDB, ENGINE, POLARS, SPARK, Case, Suite, Way, options, suite
from _workspace import PERIOD, aggregate, dataset, engine_way, output, update, write_workspace
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

GROUPINGS = (
    ("region",),
    ("product",),
    ("cost_centre", "currency"),
    ("channel", "region"),
    ("booked_on",),
    ("customer",),
    ("status", "channel", "currency"),
    ("product", "region"),
)
SUMMARY = ("region", "product", "cost_centre", "currency", "channel", "booked_on", "customer", "status")
RESULTS = ("total_net", "total_tax", "line_count")
BARS = {4: 1.2, 8: 1.2}
WRITES = ["summaries", "all"]
SETS = "sets"
ALL_ROWS = 4
"""All rows are written with this many aggregates only, to save time, unless `--writes` asks for more."""


def by_engine(suite: Suite, data: Path, count: int, writes: str) -> Way:
    sums = {"total_net": "SUM(net)", "total_tax": "SUM(tax)", "line_count": "COUNT(*)"}
    aggregates = [aggregate(keys, "{{detail}}", **sums) for keys in GROUPINGS[:count]]
    last = output("result", (*SUMMARY, *RESULTS), "NOT {{detail}}") if writes == "summaries" else output("result")
    folder = write_workspace(
        suite.new_folder("workspace"),
        data,
        [dataset("lines", LINES, monthly=True)],
        [update(net="amount - tax"), *aggregates, last],
        selectors={"detail": "_operation_seq = 0"},
    )
    return engine_way(folder, ["result"])


def read_detail(spark: SparkSession, data: Path) -> DataFrame:
    return read(spark, data / "lines" / PERIOD, LINES).withColumn("net", F.col("amount") - F.col("tax"))


def sums() -> tuple[Column, ...]:
    return F.sum("net").alias("total_net"), F.sum("tax").alias("total_tax"), F.count("*").alias("line_count")


def by_spark(spark: SparkSession, data: Path, target: Path, count: int, writes: str) -> None:
    detail = read_detail(spark, data)
    summaries = [detail.groupBy(*keys).agg(*sums()) for keys in GROUPINGS[:count]]
    if writes == "all":
        detail = detail.withColumns(system_columns("lines"))
        summaries = [
            summary.withColumns(system_columns("lines", seq, period=None)) for seq, summary in enumerate(summaries, 2)
        ]
        written = union([detail, *summaries])
        columns = [name for name in written.columns if name not in RESULTS]
        system = columns.index("_row_id")
        written = written.select(*columns[:system], *RESULTS, *columns[system:])
    else:
        written = union(summaries)
        missing = {name: F.lit(None).cast("string") for name in SUMMARY if name not in written.columns}
        missing |= {"booked_on": F.lit(None).cast("date")} if "booked_on" in missing else {}
        written = written.withColumns(missing).select(*SUMMARY, *RESULTS)
    write(written, target)


def by_grouping_sets(spark: SparkSession, data: Path, target: Path, count: int) -> None:
    groupings = [[F.col(name) for name in keys] for keys in GROUPINGS[:count]]
    keys = [name for name in SUMMARY if any(name in keys for keys in GROUPINGS[:count])]
    written = read_detail(spark, data).groupingSets(groupings, *keys).agg(*sums())
    missing = {name: F.lit(None).cast(LINES[name]) for name in SUMMARY if name not in keys}
    write(written.withColumns(missing).select(*SUMMARY, *RESULTS), target)


def union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)


def by_duckdb(data: Path, target: Path, count: int, writes: str) -> None:
    files = f"'{data / 'lines' / PERIOD}/*.parquet'"
    sums = "sum(net)::DECIMAL(29,2) AS total_net, sum(tax)::DECIMAL(28,2) AS total_tax, count(*) AS line_count"
    everything = [*LINES, "net", *RESULTS] if writes == "all" else [*SUMMARY, *RESULTS]
    empty = f"SELECT {', '.join(f'NULL::{duckdb_type(name)} AS {name}' for name in everything)} WHERE false"
    summaries = []
    for seq, keys in enumerate(GROUPINGS[:count], start=2):
        system = f", {duckdb_system_columns('lines', seq, period=None)}" if writes == "all" else ""
        summaries.append(f"SELECT *{system} FROM (SELECT {', '.join(keys)}, {sums} FROM detail GROUP BY ALL)")
    detail = [f"SELECT *, {duckdb_system_columns('lines')} FROM detail"] if writes == "all" else []
    query = f"WITH detail AS NOT MATERIALIZED (SELECT *, amount - tax AS net FROM read_parquet({files})) "
    duckdb_copy(query + " UNION ALL BY NAME ".join([f"({part})" for part in (empty, *detail, *summaries)]), target)


def duckdb_type(name: str) -> str:
    results = {"net": "DECIMAL(19,2)", "total_net": "DECIMAL(29,2)", "total_tax": "DECIMAL(28,2)"}
    types = {"line_count": "BIGINT", "integer": "BIGINT", "string": "VARCHAR"}
    type = LINES.get(name, name)
    return results.get(name) or types.get(type) or type


def by_polars(data: Path, target: Path, count: int, writes: str) -> None:
    target.mkdir(parents=True, exist_ok=True)
    lines = pl.scan_parquet(data / "lines" / PERIOD / "*.parquet")
    detail = lines.with_columns(net=(pl.col("amount") - pl.col("tax")).cast(pl.Decimal(19, 2)))
    sums = (
        pl.col("net").sum().cast(pl.Decimal(29, 2)).alias("total_net"),
        pl.col("tax").sum().cast(pl.Decimal(28, 2)).alias("total_tax"),
        pl.len().cast(pl.Int64).alias("line_count"),
    )
    summaries = [detail.group_by(*keys).agg(*sums) for keys in GROUPINGS[:count]]
    if writes == "all":
        detail = detail.with_columns(*polars_system_columns("lines"))
        summaries = [
            summary.with_columns(*polars_system_columns("lines", seq, period=None))
            for seq, summary in enumerate(summaries, 2)
        ]
    header = lines.head(0).with_columns(net=pl.lit(None, pl.Decimal(19, 2))).collect().lazy()
    kept = [*LINES, "net", *RESULTS, *SYSTEM_COLUMNS] if writes == "all" else [*SUMMARY, *RESULTS]
    frames = [header, detail, *summaries] if writes == "all" else [header, *summaries]
    pl.concat(frames, how="diagonal").select(kept).sink_parquet(target / "rows.parquet")


def case(suite: Suite, rows: int, count: int, writes: str) -> Case:
    spark, data = suite.session, lines_data(suite.session, suite.data, rows)
    targets = {name: suite.folder / name for name in (SPARK, DUCKDB, POLARS)}
    ways = {
        ENGINE: by_engine(suite, data, count, writes),
        SPARK: Way(lambda: by_spark(spark, data, targets[SPARK], count, writes), (targets[SPARK],)),
        DUCKDB: Way(lambda: by_duckdb(data, targets[DUCKDB], count, writes), (targets[DUCKDB],)),
        POLARS: Way(lambda: by_polars(data, targets[POLARS], count, writes), (targets[POLARS],)),
    }
    if writes == "summaries" and count > 1:
        ways[SETS] = Way(lambda: by_grouping_sets(spark, data, suite.folder / SETS, count), (suite.folder / SETS,))
    return Case({"rows": rows, "aggregates": count, "writes": writes}, ways, BARS.get(count))


def main() -> None:
    given = options(
        __doc__,
        rows=[1_000_000],
        long_rows=[10_000_000],
        counts=[1, 2, 4, 8],
        more=lambda parser: parser.add_argument("--writes", nargs="+", default=WRITES, choices=WRITES),
    )
    all_rows = [count for count in given.counts if count == ALL_ROWS] or given.counts[-1:]
    with suite("aggregates", __doc__, given) as running:
        for rows in given.rows:
            for writes in given.writes:
                for count in all_rows if given.writes == WRITES and writes == "all" else given.counts:
                    running.measure(case(running, rows, count, writes))


if __name__ == "__main__":
    main()
