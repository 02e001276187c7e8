"""What does a table of rules cost: 20, 100 or 200 updates of one column, each under its own selector?

The selectors read columns that no rule changes, and a later rule wins. By hand twice: as one CASE, with the last rule
first, and as a chain of `withColumn` with `when`, one for each rule. `ratio` refers to the CASE, `chain_ratio` to the
chain.
"""

from __future__ import annotations

from pathlib import Path

from _by_hand import read, write
from _data import CHANNELS, CURRENCIES, LINES, REGIONS, lines_data
from _kit import ENGINE, SPARK, Case, Suite, Way, judge, options, suite
from _workspace import PERIOD, dataset, engine_way, output, update, write_workspace
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

CHAIN = "chain"
CHAIN_BARS = {200: 0.2}
COLUMNS = ("line_id", "amount", "account")


def selector(number: int) -> str:
    """Returns the condition of a rule, as users write it."""
    centre, region = f'cost_centre = "CC-{number % 50}"', f'region = "{REGIONS[number % len(REGIONS)]}"'
    kinds = (
        f"{centre} AND {region}",
        f'{centre} AND channel IN ("{CHANNELS[number % 6]}", "{CHANNELS[(number + 1) % 6]}")',
        f'currency = "{CURRENCIES[number % 5]}" AND product = "P{number}"',
        f'{region} AND amount BETWEEN {number * 400} AND {number * 400 + 300} AND status = "active"',
    )
    return kinds[number % len(kinds)]


def condition(number: int) -> Column:
    """Returns the same condition in PySpark."""
    centre = F.col("cost_centre") == f"CC-{number % 50}"
    region = F.col("region") == REGIONS[number % len(REGIONS)]
    kinds = (
        centre & region,
        centre & F.col("channel").isin(CHANNELS[number % 6], CHANNELS[(number + 1) % 6]),
        (F.col("currency") == CURRENCIES[number % 5]) & (F.col("product") == f"P{number}"),
        region & F.col("amount").between(number * 400, number * 400 + 300) & (F.col("status") == "active"),
    )
    return kinds[number % len(kinds)]


def by_engine(suite: Suite, data: Path, count: int) -> Way:
    rules = [update(selector(number), account=f'"A{number}"') for number in range(count)]
    operations = [update(account='"none"'), *rules, output("result", COLUMNS)]
    folder = suite.new_folder("workspace")
    write_workspace(folder, data, [dataset("lines", LINES, monthly=True)], operations)
    return engine_way(folder, ["result"])


def as_case(spark: SparkSession, data: Path, target: Path, count: int) -> None:
    lines = read(spark, data / "lines" / PERIOD, LINES)
    account = F.when(condition(count - 1), f"A{count - 1}")
    for number in range(count - 2, -1, -1):
        account = account.when(condition(number), f"A{number}")
    write(lines.select("line_id", "amount", account.otherwise("none").alias("account")), target)


def as_chain(spark: SparkSession, data: Path, target: Path, count: int) -> None:
    working = read(spark, data / "lines" / PERIOD, LINES).withColumn("account", F.lit("none"))
    for number in range(count):
        account = F.when(condition(number), f"A{number}").otherwise(F.col("account"))
        working = working.withColumn("account", account)
    write(working.select(*COLUMNS), target)


def case(suite: Suite, rows: int, count: int) -> Case:
    spark, data = suite.session, lines_data(suite.session, suite.data, rows)
    one, many = suite.folder / "case", suite.folder / "chain"
    ways = {
        ENGINE: by_engine(suite, data, count),
        SPARK: Way(lambda: as_case(spark, data, one, count), (one,)),
        CHAIN: Way(lambda: as_chain(spark, data, many, count), (many,)),
    }
    return Case({"rows": rows, "rules": count}, ways)


def main() -> None:
    given = options(__doc__, rows=[200_000], long_rows=[2_000_000], counts=[20, 100, 200])
    with suite("rules", __doc__, given) as running:
        for rows in given.rows:
            for count in given.counts:
                result = running.measure(case(running, rows, count))
                if {"engine_ms", "chain_ms"} <= result.keys():
                    result["chain_ratio"] = round(result["engine_ms"] / result["chain_ms"], 3)
                    judge(result, "chain_ratio", CHAIN_BARS.get(count))


if __name__ == "__main__":
    main()
