"""Sources of other periods in whole runs: resolved, filtered, planned, kept in the snapshot and replayed."""

from __future__ import annotations

import shutil
from decimal import Decimal

import pytest
from tests.kit.workspaces import Books, parquet_rows

from tallybook.cli.plan import plan_lines
from tallybook.documents.plan import PlanDocument
from tallybook.errors import RunError
from tallybook.text import unstyled

COMPARE = """\
project:
  id: compare
  name: Compare
  input_dataset_id: sales
  operations:
    - seq: 10
      name: Other months
      type: update
      arguments:
        joins:
          - alias: before
            dataset_id: sales
            period: prior
            aggregation: &totals {group_by: [region], aggregations: [{column: total, expression: SUM(amount)}]}
            on: sales.region = before.region
          - {alias: last_year, dataset_id: sales, period: same_last_year, aggregation: *totals,
             on: sales.region = last_year.region}
          - {alias: so_far, dataset_id: sales, period: year_to_date, aggregation: *totals,
             on: sales.region = so_far.region}
        assignments:
          - {column: before, expression: before.total}
          - {column: last_year, expression: last_year.total}
          - {column: so_far, expression: so_far.total}
          - {column: booked, expression: PERIOD_START() + 9}
    - seq: 20
      name: Rates
      type: update
      arguments:
        joins:
          - {alias: opening, dataset_id: rates, on: sales.region = opening.region}
          - {alias: closing, dataset_id: rates, as_of: period_end, on: sales.region = closing.region}
          - {alias: earlier, dataset_id: rates, period: prior, on: sales.region = earlier.region}
          - {alias: dated, dataset_id: rates, as_of: booked, on: sales.region = dated.region}
        assignments:
          - {column: rates, expression: 'CONCAT(opening.rate, closing.rate, earlier.rate, dated.rate)'}
    - seq: 30
      name: Two months ago
      type: append
      arguments: {source: {dataset_id: sales, period: {offset: -2}}}
    - seq: 40
      name: Out
      type: output
      arguments: {destination: {location: out}}
"""
RATES = """\
dataset:
  id: rates
  name: Rates
  main_table:
    name: rates
    temporal_mode: bitemporal
    columns: [{name: region, type: string}, {name: rate, type: string}]
"""
VALID = """\
region,rate,_valid_from,_valid_to
EMEA,a,2025-12-01,2026-01-15
EMEA,b,2026-01-15,2026-02-01
EMEA,c,2026-02-01,2026-02-10
EMEA,d,2026-02-10,2026-02-28
EMEA,e,2026-02-28,
"""


@pytest.fixture
def compared(books: Books) -> Books:
    files = {
        "compare.yaml": COMPARE,
        "rates.yaml": RATES,
        "data/rates.csv": VALID,
        "data/sales/2025-02.csv": "id,region,amount\nx,EMEA,7\n",
        "data/sales/2025-12.csv": "id,region,amount\ny,EMEA,3\n",
    }
    for name, text in files.items():
        (books.root / name).write_text(text)
    return books


def test_a_run_reads_one_dataset_for_several_periods_and_is_replayed(compared: Books) -> None:
    compared.open().activate("compare")
    result = compared.run("compare", "2026-02")
    columns = ("id", "_period", "before", "last_year", "so_far", "rates", "_operation_seq")
    assert parquet_rows(compared.root / "out", *columns) == [
        ("d", "2026-02", Decimal("10.00"), Decimal("7.00"), Decimal("15.00"), "cead", 0),
        ("y", "2025-12", None, None, None, None, 30),
    ]
    with compared.store() as store:
        kept = store.snapshot(result.run.id).resolver_snapshots
    assert [(each.dataset_id, each.source_period, each.source_as_of) for each in kept] == [
        ("sales", None, None),
        ("sales", "prior", None),
        ("sales", "same_last_year", None),
        ("sales", "year_to_date", None),
        ("rates", None, None),
        ("rates", None, "period_end"),
        ("rates", "prior", None),
        ("rates", None, "row"),
        ("sales", "offset -2", None),
    ]
    assert compared.open().replay(result.run.id).identical


def test_a_plan_shows_the_periods_and_dates_of_every_source(compared: Books) -> None:
    plan = compared.open().plan("compare", "2026-02")
    lines = [unstyled(line).strip() for line in plan_lines(PlanDocument.of(plan, None))]
    shown = lines[lines.index("reads") + 1 : lines.index("", lines.index("reads"))]
    assert [line for line in shown if line.startswith(("sales", "rates"))] == [
        "sales v1, table sales: rows of the period",
        "sales v1, table sales: rows of 2026-01 (prior)",
        "sales v1, table sales: rows of 2025-02 (same_last_year)",
        "sales v1, table sales: rows of 2026-01, 2026-02 (year_to_date)",
        "rates v1, table rates: rows valid as of 2026-02-01",
        "rates v1, table rates: rows valid as of 2026-02-28",
        "rates v1, table rates: rows valid as of 2026-01-01 (prior)",
        "rates v1, table rates: rows valid as of a date of each working row",
        "sales v1, table sales: rows of 2025-12 (offset -2)",
    ]
    files = [line.split("/sales/")[1].split()[0] for line in shown if "/sales/" in line]
    assert files == [f"{month}.csv" for month in ["2026-02", "2026-01", "2025-02", "2026-01", "2026-02", "2025-12"]]
    uses = lines[lines.index("10. update: Other months") :]
    assert uses[2:6] == [
        "join        sales v1, table sales, period prior, as before",
        "group by  region",
        "get       total = SUM(amount)",
        "on        sales.region = before.region",
    ]


@pytest.mark.long
def test_a_quarter_reads_the_months_of_the_quarter_before(compared: Books) -> None:
    for month in ("2025-10", "2025-11"):
        (compared.root / f"data/sales/{month}.csv").write_text(f"id,region,amount\n{month},EMEA,1\n")
    shutil.copy(compared.root / "data/sales/2026-01.csv", compared.root / "data/sales/2026-03.csv")
    compared.edit("compare.yaml", "period: same_last_year", "period: {offset: 0}")
    compared.edit("compare.yaml", "{offset: -2}", "prior")
    compared.edit("compare.yaml", "PERIOD_START() + 9", "PERIOD_END(-1)")
    compared.open().activate("compare")
    compared.run("compare", "2026-Q1")
    rows = parquet_rows(compared.root / "out", "id", "before", "last_year", "so_far", "rates", "_period")
    emea = {row[1:4] for row in rows if row[5] == "2026-02"}
    assert emea == {(Decimal("5.00"), Decimal("25.00"), Decimal("25.00"))}
    assert {row[0] for row in rows if row[5] < "2026"} == {"2025-10", "2025-11", "y"}


def test_a_period_that_the_calendar_lacks_is_a_problem_of_the_operation(compared: Books) -> None:
    (compared.root / "calendar.yaml").write_text("""\
calendar:
  id: listed
  periods:
    - {identifier: "2026-01", level: month, start_date: 2026-01-01, end_date: 2026-01-31}
    - {identifier: "2026-02", level: month, start_date: 2026-02-01, end_date: 2026-02-28}
""")
    compared.edit("tallybook.yaml", "name: tiny\n", "name: tiny\ncalendar: listed\n")
    with pytest.raises(RunError) as caught:
        compared.open().plan("compare", "2026-01")
    problem = caught.value.problem
    assert (problem.type, problem.seq, problem.operation) == ("PeriodNotFound", 10, "Other months")
    assert problem.message == "calendar 'listed' has no month before '2026-01'"
    text = (compared.root / "compare.yaml").read_text()
    (compared.root / "compare.yaml").write_text(text.split("    - seq: 10")[0] + text[text.index("    - seq: 20") :])
    compared.edit("compare.yaml", "as_of: booked", "as_of: period_end")
    with pytest.raises(RunError) as caught:
        compared.open().plan("compare", "2026-01")
    assert (caught.value.problem.type, caught.value.problem.seq) == ("PeriodNotFound", 20)
