"""A year of the example `month_close` by the commands of its README: killed, finished, restated, up to date again."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from python_calamine import CalamineWorkbook
from tests.conftest import TINY
from tests.kit.commands import Said
from tests.kit.month_close import copy_of_month_close

MONTHS = tuple(f"2026-{month:02}" for month in range(1, 13))
PROJECTS = ("journal-check", "month-close", "management-report")
YEAR = ("run", "--all", "--period", "2026-01..2026-12")
LATER_REPORTS = [("management-report", month) for month in MONTHS[1:]]
RESTATED = 1000
"""By how many EUR the restated January has more revenue."""
CHANGING = ("_row_id", "reported_on", "reported_at", "days_left", "Reported on")
"""Columns that differ from run to run."""
SECONDS = 1200
"""How long a command may take on a busy machine."""

Rows = list[dict[str, Any]]


@pytest.mark.long
def test_a_year_that_is_killed_and_then_restated(tmp_path: Path) -> None:
    """Shows that a killed year ends with the rows of an undisturbed year, and so does one whose January is restated."""
    root = copy_of_month_close(tmp_path / "close")
    make_journal(root)
    expected = undisturbed_year(root, tmp_path / "undisturbed")
    activate_all(root)
    january = rows_of_delta(root, "closed_ledger", "2026-01")

    kill_the_year_in_may(root)
    retried = completed(tally(root, "run", "--retry"))
    assert (len(retried), retried[0]) == (23, ("month-close", "2026-05"))
    once = {(project, month): 1 for project in PROJECTS for month in MONTHS}
    assert completed_runs(root) == Counter(once) + Counter([("month-close", "2026-01")]), "January ran before the year"
    assert rows_of_delta(root, "closed_ledger", "2026-01") == january
    for month in MONTHS[1:]:
        assert as_if_restated(results(root, month)) == expected[month], month
    assert stale_items(root) == []

    restate_january(root)
    assert completed(tally(root, "run", "--all", "--period", "2026-01")) == [(name, "2026-01") for name in PROJECTS]
    assert stale_items(root) == LATER_REPORTS
    (reason,) = tally(root, "plan", "management-report", "--period", "2026-02")["stale"]["written_anew"]
    assert reason.startswith("'closed-ledger' was written anew for 2026-01: version 14")
    assert completed(tally(root, *YEAR, "--stale")) == LATER_REPORTS
    for month in MONTHS:
        assert results(root, month) == expected[month], month
    assert stale_items(root) == []
    assert completed(tally(root, *YEAR, "--stale")) == []


def tally(root: Path, *args: str) -> Any:
    """Returns the document that a command prints in a process of its own. The command must succeed."""
    command = [sys.executable, "-m", "tallybook", *args, "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Said(args, done.returncode, done.stdout, done.stderr).json


def make_journal(root: Path) -> None:
    """Makes 300 lines for each month, as the README says, and lets the workspace use a small Spark."""
    command = [sys.executable, "generate.py", "--rows", "3600", "--months", "12"]
    subprocess.run(command, cwd=root, capture_output=True, timeout=SECONDS, check=True)
    with (root / "tallybook.yaml").open("a") as settings:
        settings.write(f"\nspark: {json.dumps({'master': 'local[2]', 'conf': TINY})}\n")


def activate_all(root: Path) -> None:
    """Activates the projects. The report needs a dataset that the close registers with its first run."""
    tally(root, "activate", "journal-check")
    tally(root, "activate", "month-close")
    tally(root, "run", "month-close", "--period", "2026-01")
    tally(root, "activate", "management-report")


def undisturbed_year(root: Path, copy: Path) -> dict[str, dict[str, Rows]]:
    """Returns the results of each month of a year that runs once, on a copy whose January is restated before."""
    shutil.copytree(root, copy)
    restate_january(copy)
    activate_all(copy)
    assert len(completed(tally(copy, *YEAR))) == len(PROJECTS) * len(MONTHS)
    return {month: results(copy, month) for month in MONTHS}


def restate_january(root: Path) -> None:
    """Delivers the journal of January again, with more revenue in a line that was booked in EUR."""
    folder = root / "data" / "journal_2026_01"
    journal = pq.read_table(folder)
    lines = journal.to_pylist()
    line = next(line for line in lines if (line["account_code"], line["currency"]) == ("4000", "EUR"))
    for column in ("amount_local", "amount_reporting"):
        line[column] -= RESTATED
    shutil.rmtree(folder)
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(lines, schema=journal.schema), folder / "lines.parquet")


def kill_the_year_in_may(root: Path) -> None:
    """Starts the year, and kills its processes when the close of May has written the audit trail but no ledger."""
    entry = root / "warehouse" / "audit_trail" / "_delta_log" / f"{5:020}.json"
    command = [sys.executable, "-m", "tallybook", *YEAR]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            deadline = time.monotonic() + SECONDS
            while not entry.exists():
                assert process.poll() is None and time.monotonic() < deadline, "the year did not come to May"
                time.sleep(0.02)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert len(rows_of_delta(root, "audit_trail", "2026-05")) == 300
    assert rows_of_delta(root, "closed_ledger", "2026-05") == []
    listed = tally(root, "runs")
    assert [run["period"] for run in listed["runs"] if run["id"] in listed["dead"]] == ["2026-05"]


def completed(batch: Any) -> list[tuple[str, str]]:
    """Returns the runs of a batch, which are all completed."""
    assert {item["status"] for item in batch["items"]} <= {"completed"}
    return [(item["project"], item["period"]) for item in batch["items"]]


def completed_runs(root: Path) -> Counter[tuple[str, str]]:
    """Returns how often each project is completed for each period."""
    listed = tally(root, "runs", "--status", "completed")["runs"]
    return Counter((run["project_id"], run["period"]) for run in listed)


def stale_items(root: Path) -> list[tuple[str, str]]:
    """Returns the project and period of each stale run, in the order of their periods."""
    listed = tally(root, "runs", "--limit", "100")
    stale = listed.get("stale", {})
    return sorted((run["project_id"], run["period"]) for run in listed["runs"] if run["id"] in stale)


def results(root: Path, month: str) -> dict[str, Rows]:
    """Returns the rows of a month in every table and report, without what differs from run to run."""
    reports = root / "reports" / month
    tables = {name: rows_of_delta(root, name, month) for name in ("closed_ledger", "audit_trail")}
    texts = {file.name: in_order(csv.DictReader(file.read_text().splitlines())) for file in reports.glob("*.csv")}
    assert len(texts) == 3
    head, *rows = CalamineWorkbook.from_path(reports / "management_report.xlsx").get_sheet_by_index(0).to_python()
    return tables | texts | {"workbook": in_order(dict(zip(head, row, strict=True)) for row in rows)}


def rows_of_delta(root: Path, table: str, month: str) -> Rows:
    """Returns the rows of a month in a table of the warehouse, read without Spark."""
    rows = DeltaTable(root / "warehouse" / table).to_pyarrow_table().to_pylist()
    return in_order(row for row in rows if row["_period"] == month)


def in_order(rows: Any) -> Rows:
    """Returns rows in an order that depends on their values only, without the columns that differ from run to run."""
    return sorted(({name: row[name] for name in row if name not in CHANGING} for row in rows), key=str)


def as_if_restated(month: dict[str, Rows]) -> dict[str, Rows]:
    """Returns the results of a later month with the year to date that it has after January was restated."""
    report = [
        row | ({"year_to_date": str(Decimal(row["year_to_date"]) + RESTATED)} if row["year_to_date"] else {})
        for row in month["management_report.csv"]
    ]
    return month | {"management_report.csv": report}
