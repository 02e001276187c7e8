"""Checks of a run: what they stop, what they leave, and where their results are found."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from tests.kit.commands import Tally
from tests.kit.workspaces import JANUARY, Books

from tallybook.engine.events import CheckTested, Event


def add(books: Books, seq: int, text: str, **arguments: str) -> None:
    given = "".join(f", {key}: {value}" for key, value in arguments.items())
    books.add_operation(f"- {{seq: {seq}, name: Check {seq}, type: check, arguments: {{assert: '{text}'{given}}}}}")


def test_a_failing_check_stops_later_outputs_and_keeps_earlier_ones(active: Books, tally: Tally) -> None:
    add(active, 35, "amount < 15")
    add(active, 36, "SUM(amount) > 0", group_by="[region]")
    add(active, 37, "COUNT(*) = 99")
    active.open().activate("close")
    problem = active.fails()
    assert (problem.type, problem.seq, problem.place and problem.place.file) == ("CheckFailed", 35, "close.yaml")
    assert problem.message.startswith("1 of 2 rows failed: amount < 15; _row_id = ")
    assert problem.message.endswith(", amount = 20")
    assert active.ledger() == JANUARY, "the output before the check"
    assert active.report_files() == set(), "the output after it"
    run = active.newest()
    assert run.last_completed_operation == 30
    with active.store() as store:
        results = [(result.seq, result.unit, result.tested, result.failed) for result in store.check_results(run.id)]
    assert results == [(35, "row", 2, 1), (36, "group", 2, 0), (37, "group", 1, 1)]

    shown = tally(active, "runs", run.id)
    assert "Check 35  1 of 2 rows failed\n" in shown.out and "  check 35 failed: _row_id = " in shown.out
    assert "  36  check      Check 36  2 groups tested\n" in shown.out
    details = json.loads(tally(active, "runs", run.id, "--json").out)
    assert [(check["seq"], check["failed"]) for check in details["checks"]] == [(35, 1), (36, 0), (37, 1)]
    assert details["checks"][2]["examples"] == [{"COUNT(*)": 2}]

    active.edit("close.yaml", "amount < 15", "amount < 25")
    active.edit("close.yaml", "COUNT(*) = 99", "COUNT(*) = 2")
    active.open().activate("close")
    again = active.run()
    assert [(result.seq, result.passed) for result in again.checks] == [(35, True), (36, True), (37, True)]
    assert active.report_files() != set()


def test_a_warning_is_kept_and_shown(books: Books, tally: Tally, spark: SparkSession) -> None:
    books.edit("sales.yaml", "  main_table:", "  natural_key_columns: [id]\n  main_table:")
    add(books, 5, "amount > 0", on_failure="warn")
    add(books, 15, 'tier = "gold" OR tier = "silver"', on_failure="warn")
    add(books, 60, 'region = "LATAM"', on_failure="warn")
    said = tally(books, "run", "close", "--period", "2026-01")
    assert said.code == 0
    assert "check      Check 5     1 of 3 rows failed\n" in said.out
    assert "check      Check 15    3 rows tested\n" in said.out
    assert "  warning: check 5 'Check 5': 1 of 3 rows failed: id = c, amount = 0\n" in said.out
    run = books.newest()
    details = books.open().run_details(run.id)
    assert [(check.seq, check.failed, check.on_failure) for check in details.checks] == [
        (5, 1, "warn"),
        (15, 0, "warn"),
        (60, 4, "warn"),
    ]
    assert [dict(check.examples[0]) for check in details.checks[:1]] == [{"id": "c", "amount": 0}]
    assert [event.event for event in details.events].count("warning") == 3, "two checks, and the sandbox"

    replay = json.loads(tally(books, "replay", run.id, "--json").out)
    assert [(check["seq"], check["identical"]) for check in replay["checks"]] == [(5, True), (15, True), (60, True)]
    books.edit("data/sales/2026-01.csv", "c,EMEA,0", "c,EMEA,1")
    said = tally(books, "replay", run.id)
    assert "check 5 (3 rows tested): different, in the run: 1 of 3 rows failed\n" in said.out and said.code == 1


def test_checks_between_two_outputs_are_computed_together_before_the_second(books: Books, spark: SparkSession) -> None:
    add(books, 5, "amount >= 0")
    add(books, 6, "COUNT(*) = 3")
    add(books, 60, "COUNT(*) = 4")
    seen: list[str] = []

    def watch(event: Event) -> None:
        seen.append(f"{event.step.seq} tested" if isinstance(event, CheckTested) else event.__class__.__name__)

    assert books.run(observers=(watch,)).run.status == "completed"
    outputs = [index for index, name in enumerate(seen) if name == "OutputWritten"]
    tested = {name: index for index, name in enumerate(seen) if name.endswith("tested")}
    assert tested["5 tested"] < tested["6 tested"] < outputs[0] < outputs[1] < tested["60 tested"]


def test_a_failure_inside_a_check_names_it(books: Books, spark: SparkSession) -> None:
    add(books, 5, "amount >= 0")
    add(books, 6, "TO_INTEGER(region) > 0")
    add(books, 7, "COUNT(*) > 0")
    books.edit("close.yaml", "name: Check 6,", "name: Check 6, selector: amount > 0,")
    problem = books.fails()
    assert (problem.type, problem.seq, problem.path) == ("EvaluationError", 6, "arguments.assert")
    assert "'EMEA' is not a valid integer" in problem.message or "'APAC' is not a valid integer" in problem.message


def test_an_input_with_too_few_rows_fails_before_anything_is_written(books: Books, tally: Tally, spark: object) -> None:
    books.edit("close.yaml", "  operations:", "  input: {min_rows: 2}\n  operations:")
    books.open().activate("close")
    problem = books.fails(period="2026-02")
    assert (problem.type, problem.seq) == ("CheckFailed", None)
    assert problem.message == (
        "the input sales v1, table sales has 1 row for 2026-02, but the project needs at least 2"
    )
    assert not (books.root / "warehouse").exists()
    assert books.run().run.status == "completed"


def test_several_projects_at_once_show_their_warnings(books: Books, tally: Tally, spark: SparkSession) -> None:
    add(books, 5, "amount > 0", on_failure="warn")
    said = tally(books, "run", "close", "report", "--period", "2026-01")
    assert said.code == 0
    close = said.out.partition("1 of 2: close 2026-01 completed, 7 rows\n")[2]
    assert close.startswith("  warning: check 5 'Check 5': 1 of 3 rows failed: ")


def test_an_input_without_rows_is_a_warning(active: Books, tally: Tally) -> None:
    (active.root / "data" / "sales" / "2026-01.csv").write_text("id,region,amount\n")
    said = tally(active, "run", "close", "--period", "2026-01")
    warning = "the input sales v1, table sales has no rows for 2026-01"
    assert said.code == 0 and f"  warning: {warning}\n" in said.out
    details = active.open().run_details(active.newest().id)
    assert [event.detail for event in details.events if event.event == "warning"] == [{"message": warning}]
    assert active.run(period="2026-02").warnings == []


def test_a_minimum_is_not_negative(books: Books) -> None:
    books.edit("close.yaml", "  operations:", "  input: {min_rows: -1}\n  operations:")
    problem, *_ = books.open().validate()
    assert (problem.type, problem.path) == ("InvalidArguments", "project.input.min_rows")


@pytest.mark.parametrize("selector", ['region = "EMEA"', 'region = "LATAM"'])
def test_the_plan_shows_what_is_tested(books: Books, tally: Tally, selector: str) -> None:
    add(books, 5, "amount >= 0")
    books.edit("close.yaml", "name: Check 5,", f"name: Check 5, selector: '{selector}',")
    planned = tally(books, "plan", "close", "--period", "2026-01")
    assert (
        f"5. check: Check 5\n   rows        {selector}\n   on failure  fail\n   test        amount >= 0\n"
        in planned.out
    )
