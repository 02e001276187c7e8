"""replay: the same rows again, or the rows and inputs that are not the same."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import Books

from tallybook.errors import ProblemError
from tallybook.runs.runner import RunResult

EXAMPLE = Path(__file__).parents[2] / "examples" / "month_close"


def test_a_run_repeats_itself_and_leaves_nothing_behind(closed: tuple[Books, RunResult]) -> None:
    books, result = closed
    before = books.report_files()
    replay = books.open().replay(result.run.id)
    assert [(each.seq, each.rows, each.identical) for each in replay.outputs] == [(30, 2, True), (50, 5, True)]
    assert replay.identical and replay.changed_inputs == []
    assert books.report_files() == before
    assert list((books.root / ".tallybook" / "scratch").iterdir()) == []


def test_a_changed_cell_is_found_with_its_file(active: Books) -> None:
    first = active.run()
    active.edit("data/sales/2026-01.csv", "a,EMEA,10", "a,EMEA,70")
    replay = active.open().replay(first.run.id)
    ledger, report = replay.outputs
    assert not replay.identical
    assert [(row["id"], str(row["net"])) for row in ledger.only_then] == [("a", "9.00")]
    assert [(row["id"], str(row["net"])) for row in ledger.only_now] == [("a", "63.00")]
    assert len(report.only_then) == len(report.only_now) == 2, "the row and its total"
    assert [Path(text.split()[0]).name for text in replay.changed_inputs] == ["2026-01.csv"]

    second = active.run()
    replay = active.open().replay(first.run.id)
    assert replay.outputs[0].only_then, "the Delta table still has the version of the first run"
    assert replay.outputs[1].unknown == f"run {second.run.id} has written there since"
    assert active.open().replay(second.run.id).identical


def test_delta_inputs_are_read_at_the_version_of_the_run(active: Books) -> None:
    active.run()
    active.open().activate("report")
    report = active.run("report")
    active.edit("data/sales/2026-01.csv", "a,EMEA,10", "a,EMEA,70")
    active.run()
    assert active.open().replay(report.run.id).identical


RATES = """\
dataset:
  id: rates
  name: Rates
  main_table:
    name: rates
    temporal_mode: bitemporal
    columns: [{name: currency, type: string}, {name: rate, type: decimal}]
---
project:
  id: list-rates
  name: List the rates
  input_dataset_id: rates
  operations:
    - {seq: 1, name: All, type: output, arguments: {destination: {location: rates-out.csv}}}
    - seq: 2
      name: Ids
      type: output
      arguments: {destination: {location: {path: ids, format: json}}, columns: [_row_id, _valid_to]}
"""


@pytest.mark.long
def test_text_and_validity_repeat_themselves(books: Books, spark: SparkSession) -> None:
    """CSV cannot tell the empty `_labels` from NULL, in neither of the two."""
    (books.root / "rates.yaml").write_text(RATES)
    lines = "currency,rate,_valid_from,_valid_to\nUSD,1.1,2025-01-01,\nGBP,0.9,2025-01-01,2026-06-01\n"
    (books.root / "data" / "rates.csv").write_text(lines)
    books.open().activate("list-rates")
    run = books.run("list-rates").run
    replay = books.open().replay(run.id)
    assert [(each.rows, each.identical, each.unknown) for each in replay.outputs] == [(2, True, None)] * 2


def test_only_a_completed_run_is_replayed(books: Books) -> None:
    with pytest.raises(ProblemError, match="no run has the id nope"):
        books.open().replay("nope")


@pytest.mark.long
def test_differing_moments_are_told_in_utc(books: Books, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    (books.root / "rates.yaml").write_text(RATES)
    lines = "currency,rate,_valid_from,_valid_to,_created_at\nUSD,1.1,0001-01-01,,0001-01-01T00:00:00Z\n"
    (books.root / "data" / "rates.csv").write_text(lines)
    books.open().activate("list-rates")
    run = books.run("list-rates").run
    (books.root / "data" / "rates.csv").write_text(lines.replace("1.1", "1.2"))
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        output = books.open().replay(run.id).outputs[0]
    time.tzset()
    assert [row["_created_at"] for row in (*output.only_then, *output.only_now)] == ["0001-01-01 00:00:00"] * 2


@pytest.mark.long
def test_the_month_close_repeats_itself(tmp_path: Path, spark: SparkSession) -> None:
    ignored = shutil.ignore_patterns(".tallybook", "warehouse", "reports")
    books = Books(Path(shutil.copytree(EXAMPLE, tmp_path / "month_close", ignore=ignored)))
    books.open().activate("month-close")
    run = books.run("month-close", "2025-12").run
    replay = books.open().replay(run.id)
    assert replay.identical and replay.changed_inputs == []
    journal = books.root / "data" / "legacy" / "journal_2025_12.csv"
    lines = journal.read_text().splitlines()
    header, cells = lines[0].split(","), lines[1].split(",")
    cells[header.index("amount_local")] = "123.45"
    journal.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n")
    replay = books.open().replay(run.id)
    assert any(each.only_then and each.only_now for each in replay.outputs)
    assert replay.changed_inputs == [f"{journal} was changed"]
