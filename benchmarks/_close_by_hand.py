"""The month close of examples/month_close, written by hand in PySpark."""

from __future__ import annotations

import shutil
from datetime import date
from functools import reduce
from pathlib import Path

from _by_hand import ID_PREFIX
from _workspace import PERIOD
from deltalake import convert_to_deltalake
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

AS_OF = date(2026, 1, 1)
MONEY = "decimal(18,2)"
JOURNAL = (
    "journal_id string, line_number bigint, posting_date date, document_ref string, memo string, account_code string, "
    f"cost_centre string, currency string, amount_local {MONEY}, amount_reporting {MONEY}"
)
AUDIT_TRAIL = (
    *("journal_id", "line_number", "account_code", "currency", "amount_local", "amount_reporting", "closing_rate"),
    *("amount_closing", "close_status", "_labels", "_deleted", "_period", "_row_id"),
)
LEDGER = (
    *("close_period", "row_kind", "journal_id", "line_number", "posting_date", "document_kind", "memo", "account_code"),
    *("account_type", "statement", "cost_centre", "region", "currency", "amount_local", "amount_reporting"),
    *("amount_closing", "revaluation", "close_status", "line_count", "budget_amount", "variance", "variance_percent"),
    *("verdict", "_period"),
)
REPORT = (
    *("account_code", "cost_centre", "account_type", "region", "amount_closing", "budget_amount", "variance"),
    *("variance_percent", "verdict"),
)
STATEMENTS = {
    "asset": "balance sheet",
    "liability": "balance sheet",
    "equity": "balance sheet",
    "revenue": "income statement",
    "expense": "income statement",
}
DOCUMENTS = {
    "INV": "sales invoice",
    "BIL": "supplier bill",
    "PRL": "payroll",
    "PAY": "payment",
    "ACC": "accrual",
    "RCL": "reclassification",
}


def by_spark(
    spark: SparkSession, data: Path, audit_trail: Path, ledger: Path, report: Path, *, half: bool = False
) -> None:
    """Writes the audit trail, the closed ledger and the report; with `half` only the audit trail."""
    accounts = csv(spark, data / "reference/accounts.csv", "code string, title string, type string, is_active boolean")
    centres = csv(
        spark, data / "reference/cost_centres.csv", "code string, title string, region string, manager string"
    )
    classes = accounts.select(F.col("code").alias("account_code"), F.col("type").alias("account_type"), "is_active")
    regions = centres.select(F.col("code").alias("cost_centre"), "region")
    lines = judged(
        converted(
            cleaned(spark, data).join(classes, "account_code", "left").join(regions, "cost_centre", "left"), spark, data
        )
    )
    write_delta(lines.withColumn("_row_id", row_id()).select(*AUDIT_TRAIL), audit_trail)
    if half:
        return

    kept = lines.where(~F.col("_deleted"))
    by_type = totals(kept, "account_type").withColumn("row_kind", F.lit("total by account type"))
    by_region = totals(kept, "region").withColumn("row_kind", F.lit("total by region"))
    budgets = (
        budget(spark, data).join(classes.drop("is_active"), "account_code", "left").join(regions, "cost_centre", "left")
    )
    comparison = compared(kept, budgets)
    parts = [kept.withColumn("row_kind", F.lit("line")), by_type, by_region, comparison]
    together = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
    periods = {"close_period": F.lit(PERIOD), "_period": F.lit(PERIOD)}
    write_delta(together.withColumns(periods).select(*LEDGER), ledger)
    comparison.select(*REPORT).coalesce(1).write.mode("overwrite").csv(str(report), header=True)


def cleaned(spark: SparkSession, data: Path) -> DataFrame:
    journal = spark.read.schema(JOURNAL).parquet(str(data / f"journal_{PERIOD.replace('-', '_')}"))
    reference = F.concat(F.lit("Document "), F.replace("document_ref", F.lit("-"), F.lit(" ")))
    return journal.withColumns(
        {
            "account_code": F.right(F.trim("account_code"), F.lit(4)),
            "currency": F.upper(F.trim("currency")),
            "memo": F.coalesce(F.trim("memo"), reference),
            "document_kind": chosen(F.left("document_ref", F.lit(3)), DOCUMENTS, "other"),
            "_period": F.lit(PERIOD),
        }
    )


def converted(lines: DataFrame, spark: SparkSession, data: Path) -> DataFrame:
    """Adds the amounts at the closing rate. A line that the sub-ledger could not book gets the average rate."""
    columns = "currency string, rate_type string, rate decimal(12,6), _valid_from date, _valid_to date"
    rates = csv(spark, data / "reference/rates.csv", columns)
    valid = rates.where((F.col("_valid_from") <= AS_OF) & (F.col("_valid_to").isNull() | (F.col("_valid_to") > AS_OF)))
    for kind in ("closing", "average"):
        rate = valid.where(F.col("rate_type") == kind).select("currency", F.col("rate").alias(f"{kind}_rate"))
        lines = lines.join(rate, "currency", "left")
    in_euro = F.col("currency") == "EUR"
    local = F.col("amount_local")

    def at(rate: str) -> Column:
        return F.when(in_euro, local).otherwise(F.round(local * F.col(rate), 2))

    return lines.withColumns(
        {
            "closing_rate": F.when(in_euro, F.lit(1)).otherwise(F.col("closing_rate")),
            "amount_closing": at("closing_rate"),
            "amount_reporting": F.coalesce("amount_reporting", at("average_rate")).cast(MONEY),
        }
    ).withColumn("revaluation", F.col("amount_closing") - F.col("amount_reporting"))


def judged(lines: DataFrame) -> DataFrame:
    """Adds status, labels and statement, and marks lines of inactive accounts as deleted."""
    no_rate = (F.col("currency") != "EUR") & F.col("closing_rate").isNull()
    unknown = F.col("account_type").isNull()
    inactive = F.coalesce(~F.col("is_active"), F.lit(False))
    labels = {"{rate:missing}": no_rate, "{account:unknown}": unknown, "{account:inactive}": inactive}
    status = F.when(inactive, "inactive account").when(unknown, "unknown account").when(no_rate, "rate missing")
    return lines.withColumns(
        {
            "statement": chosen(F.col("account_type"), STATEMENTS, "unknown"),
            "close_status": status.otherwise("open"),
            "_labels": F.concat(*(F.when(test, label).otherwise("") for label, test in labels.items())),
            "_deleted": inactive,
        }
    )


def totals(lines: DataFrame, key: str) -> DataFrame:
    return lines.groupBy(key).agg(
        F.sum("amount_closing").alias("amount_closing"),
        F.sum("revaluation").alias("revaluation"),
        F.count("*").alias("line_count"),
    )


def budget(spark: SparkSession, data: Path) -> DataFrame:
    columns = f"account_code string, cost_centre string, initiative string, amount {MONEY}"
    rows = csv(spark, data / "budgets" / f"{PERIOD}.csv", columns).where(F.col("amount") != 0)
    return rows.groupBy("account_code", "cost_centre").agg(F.sum("amount").cast(MONEY).alias("budget_amount"))


def compared(lines: DataFrame, budgets: DataFrame) -> DataFrame:
    """Holds the actuals against the budget, for each account and cost centre that has either."""
    columns = ("account_code", "cost_centre", "account_type", "region", "amount_closing", "budget_amount")
    actual = lines.withColumn("budget_amount", F.lit(None).cast(MONEY)).select(*columns)
    planned = budgets.withColumn("amount_closing", F.lit(None).cast(MONEY)).select(*columns)
    sides = actual.unionByName(planned).where(F.col("account_type").isin("revenue", "expense"))
    summed = sides.groupBy(*columns[:4]).agg(
        F.sum("amount_closing").alias("amount_closing"), F.sum("budget_amount").alias("budget_amount")
    )
    variance = F.coalesce("amount_closing", F.lit(0)) - F.coalesce("budget_amount", F.lit(0))
    budget_size = F.abs("budget_amount")
    verdict = (
        F.when(F.col("budget_amount").isNull(), "not budgeted")
        .when(F.abs("variance") <= budget_size * F.lit("0.05").cast("decimal(2,2)"), "on budget")
        .when(F.col("variance") > 0, "unfavourable")
        .otherwise("favourable")
    )
    percent = F.when(budget_size != 0, F.round(F.col("variance") / budget_size * 100, 1))
    return summed.withColumn("variance", variance).withColumns(
        {"variance_percent": percent, "verdict": verdict, "row_kind": F.lit("budget against actual")}
    )


def chosen(subject: Column, values: dict[str, str], default: str) -> Column:
    whens = [(subject == key, value) for key, value in values.items()]
    (first, value), *others = whens
    return reduce(lambda column, when: column.when(*when), others, F.when(first, value)).otherwise(default)


def csv(spark: SparkSession, path: Path, columns: str) -> DataFrame:
    return spark.read.schema(columns).csv(str(path), header=True)


def row_id() -> Column:
    return F.concat(F.lit(ID_PREFIX), F.lpad(F.lower(F.hex(F.monotonically_increasing_id())), 12, "0"))


def write_delta(frame: DataFrame, folder: Path) -> None:
    frame.write.mode("overwrite").parquet(str(folder))
    shutil.rmtree(folder / "_delta_log", ignore_errors=True)
    convert_to_deltalake(str(folder))
