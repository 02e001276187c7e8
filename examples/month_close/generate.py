"""Makes the journal of the month close: the legacy months as CSV, the months since the migration as Parquet.

    python generate.py                                     the few hundred rows the README speaks of
    python generate.py --rows 1200 --months 12             a whole year
    python generate.py --rows 50000000 --out /data/close   a ledger to measure with

Every cell is a hash of the seed, the journal and a word that says what it is for: the same arguments give the same
cells on every machine and under every parallelism. Amounts are whole cents until they become decimals.
"""

from __future__ import annotations

import argparse
import csv
import shutil
from calendar import monthrange
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tallybook.engine.session import get_session

HERE = Path(__file__).resolve().parent
LEGACY_MONTHS = ("2025-10", "2025-11", "2025-12")
NEW_MONTHS = tuple(f"2026-{month:02}" for month in range(1, 13))
SAMPLE_MONTHS = 3
LINES_PER_JOURNAL = 3
SAMPLE_ROWS = 300
SEED = 2032
ROWS_PER_FILE = 2_000_000


@dataclass(frozen=True)
class Document:
    """A kind of booking. Each line takes its share of a net amount and of a part of it, such as the tax."""

    prefix: str
    memo: str
    partner: bool
    weight: int
    part_percent: int
    lines: tuple[tuple[str, int, int], ...]
    """Account, net factor, part factor; the factors of a document add up to zero, so every journal balances."""


EXPENSE = "6x00"
DOCUMENTS = (
    Document("INV", "Sales invoice", True, 11, 19, (("1200", 1, 1), ("4000", -1, 0), ("2200", 0, -1))),
    Document("INV", "Service invoice", True, 5, 19, (("1200", 1, 1), ("4100", -1, 0), ("2200", 0, -1))),
    Document("BIL", "Supplier bill", True, 12, 19, ((EXPENSE, 1, 0), ("1400", 0, 1), ("2000", -1, -1))),
    Document("PRL", "Payroll", False, 5, 21, (("6000", 1, 0), ("6010", 0, 1), ("2100", -1, -1))),
    Document("PAY", "Customer payment", True, 4, 1, (("1000", 1, -1), ("6800", 0, 1), ("1200", -1, 0))),
    Document("ACC", "Month-end accrual", False, 2, 35, (("6300", 1, -1), ("6400", 0, 1), ("2300", -1, 0))),
    Document("RCL", "Clearing of closed accounts", False, 1, 40, (("6990", 1, 0), ("1980", -1, 1), ("2980", 0, -1))),
)
EXPENSE_ACCOUNTS = ("6100", "6200", "6300", "6400", "6500", "6100", "6200", "6300", "6400", "6500", "9999")
"""9999 is in no chart of accounts: somebody mistypes it now and then."""
BOOKED_AT = (
    ("CC-110", "EUR"),
    ("CC-110", "EUR"),
    ("CC-120", "GBP"),
    ("CC-130", "CHF"),
    ("CC-210", "USD"),
    ("CC-210", "USD"),
    ("CC-220", "CAD"),
    ("CC-310", "JPY"),
    ("CC-320", "USD"),
    ("CC-900", "EUR"),
    ("CC-110", "EUR"),
    ("CC-120", "GBP"),
    ("CC-210", "BRL"),
)
"""Where a journal is booked and in which currency. Nobody delivers a rate for BRL."""
PARTNERS = ("Aalto Interiors", "Bramble & Co", "Casa Lucía", "Delta Marine", "Edo Trading", "Fjord Outfitters")
MAGNITUDES = (7, 23, 61, 140)
YEN_PER_EURO = 180


def average_rates(month: str) -> dict[str, Decimal]:
    """The rates at which the sub-ledgers book in a month: those in force on its first day."""
    first = f"{month}-01"
    with (HERE / "data/reference/rates.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["rate_type"] == "average"]
    valid = [row for row in rows if row["_valid_from"] <= first and not "" < row["_valid_to"] <= first]
    in_force = {row["currency"]: Decimal(row["rate"]) for row in valid}
    return {"EUR": Decimal("1.000000"), **in_force}


def document_lines(spark: SparkSession) -> DataFrame:
    """One row per line of each kind of document, repeated by weight so that a pick finds frequent kinds more often."""
    urn = [document for document in DOCUMENTS for _ in range(document.weight)]
    return spark.createDataFrame(
        [
            (slot, number, document.prefix, document.memo, document.partner, document.part_percent, *line)
            for slot, document in enumerate(urn)
            for number, line in enumerate(document.lines, start=1)
        ],
        "document int, line_number long, prefix string, memo string, named boolean, percent long, "
        "account string, net_factor long, part_factor long",
    )


def bookings(spark: SparkSession, month: str) -> DataFrame:
    """Where journals are booked, with the rate of the month and the cents of the smallest unit paid in."""
    rates = average_rates(month)
    return spark.createDataFrame(
        [
            (slot, centre, currency, rates.get(currency), *((YEN_PER_EURO, 100) if currency == "JPY" else (1, 1)))
            for slot, (centre, currency) in enumerate(BOOKED_AT)
        ],
        "booking int, centre string, currency string, rate decimal(12,6), units long, smallest long",
    )


def journal(spark: SparkSession, month: str, rows: int, seed: int) -> DataFrame:
    """The lines of one month, whole journals only."""
    count = rows // LINES_PER_JOURNAL * LINES_PER_JOURNAL
    urn_size = sum(document.weight for document in DOCUMENTS)

    def pick(salt: str, choices: int) -> Column:
        return F.pmod(F.xxhash64(F.lit(seed), F.lit(month), "number", F.lit(salt)), F.lit(choices)).cast("int")

    def one_of(salt: str, values: tuple[object, ...]) -> Column:
        return F.array(*[F.lit(value) for value in values])[pick(salt, len(values))]

    picked = (
        spark.range(0, count, 1, max(1, count // ROWS_PER_FILE))
        .selectExpr(f"id div {LINES_PER_JOURNAL} + 1 as number", f"id % {LINES_PER_JOURNAL} + 1 as line_number")
        .withColumns(
            {
                "document": pick("document", urn_size),
                "booking": pick("booking", len(BOOKED_AT)),
                "cents": (pick("mantissa", 9000) + F.lit(1000)).cast("long") * one_of("magnitude", MAGNITUDES),
                "expense": one_of("expense", EXPENSE_ACCOUNTS),
                "partner": one_of("partner", PARTNERS),
                "silent": pick("memo", 25) == 0,
                "day": pick("day", monthrange(*map(int, month.split("-")))[1]),
            }
        )
        .join(F.broadcast(document_lines(spark)), ["document", "line_number"])
        .join(F.broadcast(bookings(spark, month)), "booking")
    )
    return as_journal(picked, month)


def as_journal(picked: DataFrame, month: str) -> DataFrame:
    """The columns of the dataset, in its order."""
    compact = month.replace("-", "")
    serial = F.lpad(F.col("number").cast("string"), 7, "0")
    net = F.expr("cents * units div smallest * smallest")
    part = F.expr("cents * units * percent div 100 div smallest * smallest")
    local = (net * F.col("net_factor") + part * F.col("part_factor")).cast("decimal(18,0)") * F.lit(Decimal("0.01"))
    account = F.when(F.col("account") == EXPENSE, F.col("expense")).otherwise(F.col("account"))
    memo = F.when(F.col("named"), F.concat_ws(" ", "memo", "partner")).otherwise(F.col("memo"))
    in_income_statement = account >= "4000"
    return picked.select(
        F.concat(F.lit(f"J{compact}-"), serial).alias("journal_id"),
        "line_number",
        F.date_add(F.lit(f"{month}-01").cast("date"), F.col("day")).alias("posting_date"),
        F.concat("prefix", F.lit(f"-{month[:4]}-"), serial).alias("document_ref"),
        F.when(~F.col("silent"), memo).alias("memo"),
        account.alias("account_code"),
        F.when(in_income_statement, F.col("centre")).alias("cost_centre"),
        "currency",
        local.cast("decimal(18,2)").alias("amount_local"),
        F.round(local * F.col("rate"), 2).cast("decimal(18,2)").alias("amount_reporting"),
    )


def legacy_spelling(lines: DataFrame) -> DataFrame:
    """How the old ledger wrote: a prefix on account codes, currencies in small letters, texts filled up with blanks."""
    return lines.withColumns(
        {
            "account_code": F.concat(F.lit("GL-"), "account_code"),
            "currency": F.lower("currency"),
            "memo": F.rpad("memo", 36, " "),
        }
    )


def write_csv(lines: DataFrame, path: Path) -> None:
    """One readable file, as the old ledger exported it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(lines.columns)
        writer.writerows(lines.collect())


def generate(
    spark: SparkSession, out: Path, rows: int = SAMPLE_ROWS, seed: int = SEED, months: int = SAMPLE_MONTHS
) -> None:
    """Fills a data folder: `rows` over the Parquet months, a fixed sample in the legacy ones, the rest copied. The
    months after the last budget have the same budget."""
    for month in LEGACY_MONTHS:
        lines = journal(spark, month, SAMPLE_ROWS // len(LEGACY_MONTHS), seed)
        write_csv(legacy_spelling(lines), out / "legacy" / f"journal_{month.replace('-', '_')}.csv")
    for month in NEW_MONTHS[:months]:
        lines = journal(spark, month, rows // months, seed)
        lines.write.mode("overwrite").parquet(str(out / f"journal_{month.replace('-', '_')}"))
    if out.resolve() != HERE / "data":
        for folder in ("reference", "budgets"):
            shutil.copytree(HERE / "data" / folder, out / folder, dirs_exist_ok=True)
    for month in NEW_MONTHS[SAMPLE_MONTHS:months]:
        shutil.copyfile(out / "budgets" / f"{NEW_MONTHS[SAMPLE_MONTHS - 1]}.csv", out / "budgets" / f"{month}.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the journal of the month close.")
    parser.add_argument("--rows", type=int, default=SAMPLE_ROWS, help="journal lines in the Parquet months together")
    parser.add_argument("--months", type=int, default=SAMPLE_MONTHS, choices=range(1, 13), help="Parquet months")
    parser.add_argument("--out", type=Path, default=HERE / "data", help="data folder to fill")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    spark = get_session()
    try:
        generate(spark, options.out, options.rows, options.seed, options.months)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
