"""`mode: replace_period`: one table for all periods, in which a run changes the rows of its own period only."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.kit.commands import Tally
from tests.kit.workspaces import FEBRUARY, JANUARY, Books, contents, delta_rows
from tests.runs.forks import Forks, Job

LEDGER = "columns: [id, tier, net, _period]"
RESTATED = [("a", "gold", Decimal("99.00"), "2026-01")]
QUARTER = """\
project:
  id: quarter
  name: The quarter
  input_dataset_id: sales
  operations:
    - {seq: 1, name: Without March, type: delete, selector: _period = "2026-03"}
    - seq: 2
      name: The columns of the ledger
      type: update
      arguments:
        assignments:
          - {column: tier, expression: '"q"'}
          - {column: net, expression: "ROUND(amount * 0.9, 2)"}
    - seq: 3
      name: Write
      type: output
      arguments:
        destination: {datasource_id: warehouse, table: ledger}
        mode: replace_period
        columns: [id, tier, net, _period]
"""


@pytest.fixture
def replacing(books: Books, spark: SparkSession) -> Books:
    """The close is active, replaces the rows of its period in the ledger and writes nothing else; nothing has run."""
    text = (books.root / "close.yaml").read_text()
    (books.root / "close.yaml").write_text(text[: text.index("    - seq: 40")])
    books.edit("close.yaml", LEDGER, f"mode: replace_period\n        {LEDGER}")
    books.open().activate("close")
    return books


def restate(books: Books) -> None:
    (books.root / "data/sales/2026-01.csv").write_text("id,region,amount\na,EMEA,110\n")


def test_january_again_after_february(replacing: Books, tally: Tally) -> None:
    """The reader of each month gets the rows of that month, as they are now; a replay those of then."""
    runs = [replacing.run(period=period) for period in ("2026-01", "2026-02")]
    replacing.open().activate("report")
    restate(replacing)
    runs.append(replacing.run(period="2026-01"))
    assert replacing.ledger() == sorted(RESTATED + FEBRUARY)
    assert replacing.ledger(version=1) == sorted(JANUARY + FEBRUARY)
    assert [result.outputs[0].rows_written for result in runs] == [2, 1, 1]
    assert runs[2].outputs[0].periods_replaced == ("2026-01",)
    assert "→ delta" in (shown := tally(replacing, "runs", runs[2].run.id).out) and "replaced 2026-01" in shown
    for period, rows in (("2026-01", "a,198.00\n"), ("2026-02", "d,9.00\n")):
        replacing.run("report", period)
        assert (replacing.root / f"texts/{period}.csv").read_text() == f"id,double\n{rows}"
    for result in runs[1:]:  # the input of the first has changed
        assert replacing.open().replay(result.run.id).identical
    first = next(iter(replacing.open().first_rows(runs[1], 5)))
    assert first[0] == 30 and len(first[1].rows) == 1, "only its own rows are shown"


def test_a_period_without_rows_is_emptied(replacing: Books) -> None:
    for period in ("2026-01", "2026-02"):
        replacing.run(period=period)
    (replacing.root / "data/sales/2026-01.csv").write_text("id,region,amount\n")
    replacing.run(period="2026-01")
    assert replacing.ledger() == FEBRUARY


def test_a_quarter_replaces_its_months(replacing: Books, tally: Tally) -> None:
    (replacing.root / "data/sales/2026-03.csv").write_text("id,region,amount\nm,EMEA,1\n")
    (replacing.root / "data/sales/2026-04.csv").write_text("id,region,amount\nx,EMEA,10\n")
    for period in ("2026-01", "2026-03", "2026-04"):
        replacing.run(period=period)
    (replacing.root / "quarter.yaml").write_text(QUARTER)
    assert tally(replacing, "validate").code == 0
    replacing.open().activate("quarter")
    assert (
        "(replace_period 2026-Q1, 2026-01, 2026-02, 2026-03)"
        in tally(replacing, "plan", "quarter", "-p", "2026-Q1").out
    )
    replacing.run("quarter", "2026-Q1")
    of_quarter = [(id, month) for id, tier, _net, month in replacing.ledger() if tier == "q"]
    assert of_quarter == [("a", "2026-01"), ("b", "2026-01"), ("c", "2026-01"), ("d", "2026-02")]
    assert [row[0] for row in replacing.ledger()] == ["a", "b", "c", "d", "x"], "March is empty, April stays"


PRIOR = """
- seq: 5
  name: Carry forward
  type: append
  arguments: {source: {dataset_id: sales, period: prior}}
"""
TOTAL = """
- seq: 5
  name: Total
  type: aggregate
  arguments: {group_by: [region], aggregations: [{column: amount, expression: SUM(amount)}]}
"""


@pytest.mark.parametrize(
    ("operation", "rows"),
    [(PRIOR, "rows of the period '2026-01'"), (TOTAL, "without a `_period`")],
    ids=["prior", "no period"],
)
def test_rows_of_other_periods_are_named(replacing: Books, operation: str, rows: str) -> None:
    """Also in the sandbox, so that the error does not wait for the activation."""
    replacing.run(period="2026-01")
    replacing.add_operation(operation)
    problem = replacing.fails(period="2026-02", draft=True)
    assert (problem.type, problem.seq) == ("WriteFailed", 30)
    assert rows in problem.message and "2026-02" in problem.message and "selector" in (problem.hint or "")
    replacing.open().activate("close")
    before = contents(replacing.root / "warehouse")
    assert rows in replacing.fails(period="2026-02").message
    assert contents(replacing.root / "warehouse") == before


@pytest.mark.long
def test_the_sandbox_and_a_table_that_was_written_as_a_whole(books: Books, spark: SparkSession) -> None:
    books.open().activate("close")
    books.run(period="2026-01")
    books.edit("close.yaml", LEDGER, f"mode: replace_period\n        {LEDGER}")
    assert books.run(period="2026-02", draft=True).outputs[0].periods_replaced == ()
    assert delta_rows(books.root / ".tallybook/sandbox/close/2026-02/30-ledger") == FEBRUARY
    books.open().activate("close")
    books.run(period="2026-02")
    assert books.ledger() == sorted(JANUARY + FEBRUARY)


def test_other_columns_are_refused_before_anything_changes(replacing: Books) -> None:
    replacing.run(period="2026-01")
    replacing.edit("close.yaml", "columns: [id, tier, net, _period]", "columns: [id, net, _period]")
    replacing.open().activate("close")
    problem = replacing.fails(period="2026-02")
    assert "tier string" in problem.message and "replace_period needs the same columns" in (problem.hint or "")
    assert replacing.ledger() == JANUARY


def test_a_bitemporal_input_with_its_own_name_for_the_period(books: Books, spark: SparkSession) -> None:
    """Rows of an input without periods belong to the period of the run, unless the data says otherwise."""
    (books.root / "rates.yaml").write_text(
        "dataset:\n  id: rates\n  name: Rates\n  main_table:\n    name: rates\n    temporal_mode: bitemporal\n"
        "    columns: [{name: rate, type: integer}]\n---\n"
        "project:\n  id: rates\n  name: Rates\n  input_dataset_id: rates\n  operations:\n"
        "    - {seq: 1, name: Write, type: output, arguments: {destination: {datasource_id: warehouse, table: rates},"
        " mode: replace_period, columns: [rate, _valid_from, _valid_to, _period]}}\n"
    )
    data = books.root / "data/rates.csv"
    data.write_text("rate,_valid_from,_valid_to\n1,2025-01-01,2026-02-01\n2,2026-02-01,\n")
    books.open().activate("rates")
    for period in ("2026-01", "2026-02", "2026-01"):
        books.run("rates", period)
    rows = delta_rows(books.root / "warehouse/rates", columns=["rate", "_period"])
    assert rows == [(1, "2026-01"), (2, "2026-02")]


@pytest.mark.long
def test_two_periods_at_once(replacing: Books, forks: Forks) -> None:
    """Both commit to one table that neither found there, and both survive."""
    jobs = [Job(str(replacing.root), period) for period in ("2026-01", "2026-02")]
    assert forks.run(*jobs) == ["completed"] * 2
    assert replacing.ledger() == sorted(JANUARY + FEBRUARY)


@pytest.mark.long
@pytest.mark.parametrize("dies", ["committing", "committed"])
def test_killed_and_retried(replacing: Books, forks: Forks, dies: str) -> None:
    replacing.run(period="2026-01")
    assert forks.run(Job(str(replacing.root), "2026-02", dies=dies)) == ["killed"]
    assert replacing.ledger() in (JANUARY, sorted(JANUARY + FEBRUARY))
    result = replacing.retry()
    assert (result.outputs[0].rows_written, result.outputs[0].periods_replaced) == (1, ("2026-02",))
    assert replacing.ledger() == sorted(JANUARY + FEBRUARY)


def wrong(root: Path, arguments: str) -> Sequence[tuple[str, str, str | None]]:
    """The problems of the ledger's output with these arguments."""
    books = Books.at(root)
    books.edit("close.yaml", f"{LEDGER}\n        register_as_dataset: ledger", arguments)
    problems = [problem for problem in books.open().validate(["close"]) if problem.seq == 30]
    return [(problem.type, problem.message, problem.hint) for problem in problems]


def test_what_the_checker_refuses(tmp_path: Path) -> None:
    [(type, message, hint)] = wrong(tmp_path / "a", "mode: replace_period\n        columns: [id, net]")
    assert type == "InvalidArguments" and "which the output does not write" in message
    assert hint == "add `_period` to `columns`, or use `mode: overwrite`"
    [(_, _, hint)] = wrong(tmp_path / "b", "mode: replace_period\n        exclude_columns: [_period]")
    assert hint == "remove `_period` from `exclude_columns`, or use `mode: overwrite`"
    books = Books.at(tmp_path / "c")
    books.edit(
        "close.yaml",
        'destination: {location: "reports/{{period}}"}',
        "destination: {location: all}\n        mode: replace_period",
    )
    [problem] = books.open().validate(["close"])
    assert problem.type == "InvalidDestination" and "`{{period}}` in the path" in (problem.hint or "")
    books = Books.at(tmp_path / "d")
    books.edit("close.yaml", LEDGER, f"mode: replace_period\n        {LEDGER}")
    books.add_operation(
        "- {seq: 60, name: More, type: output, arguments: {mode: append, columns: [id, tier, net, _period],"
        " destination: {datasource_id: warehouse, table: ledger}}}"
    )
    [problem] = books.open().validate(["close"])
    assert problem.seq == 60 and "write all rows of the period with one output" in (problem.hint or "")


@pytest.mark.long
def test_partitions(books: Books, tally: Tally, spark: SparkSession) -> None:
    """Partitioned outputs are read by other projects, replayed and shown like others."""
    text = (books.root / "close.yaml").read_text()
    (books.root / "close.yaml").write_text(
        text.replace(LEDGER, f"{LEDGER}\n        mode: replace_period\n        partition_by: [_period, tier]").replace(
            "exclude_columns: [_labels]", "exclude_columns: [_labels]\n        partition_by: [region]"
        )
    )
    books.open().activate("close")
    results = [books.run(period=period) for period in ("2026-01", "2026-02", "2026-01")]
    assert books.ledger() == sorted(JANUARY + FEBRUARY)
    assert {path.name for path in (books.root / "reports/2026-01").iterdir()} == {"region=EMEA", "region=APAC"}
    assert all(books.open().replay(result.run.id).identical for result in results[1:])
    assert "partitions  _period, tier" in tally(books, "plan", "close", "-p", "2026-01").out
    books.open().activate("report")
    books.run("report", "2026-02")
    assert (books.root / "texts/2026-02.csv").read_text() == "id,double\nd,9.00\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("partition_by: [region]", "the output does not write the column 'region'"),
        ("partition_by: [id, id]", "column 'id' is named twice"),
        ("partition_by: [id, tier, net, _period]", "the output is partitioned by all its columns"),
    ],
)
def test_partitions_that_the_checker_refuses(books: Books, arguments: str, message: str) -> None:
    books.edit("close.yaml", LEDGER, f"{LEDGER}\n        {arguments}")
    [problem] = books.open().validate(["close"])
    assert (problem.seq, problem.message) == (30, message) and problem.place is not None


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("reports/x.parquet", "'reports/x.parquet' is a single file"),
        ("{path: reports/x, format: csv}", "csv has no partitions"),
        ("{path: reports/x, format: orc}", "orc has no partitions"),
    ],
)
def test_formats_without_partitions(books: Books, location: str, message: str) -> None:
    books.edit(
        "close.yaml", '{location: "reports/{{period}}"}', f"{{location: {location}}}\n        partition_by: [region]"
    )
    [problem] = books.open().validate(["close"])
    assert problem.type == "InvalidDestination" and message in problem.message and problem.hint
