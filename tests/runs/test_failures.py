"""Runs that fail, are cancelled or retried."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.kit.commands import Tally
from tests.kit.workspaces import JANUARY, Books, delta_rows, parquet_rows
from tests.rules.kit import rule

from tallybook.errors import Problem, ProblemError, RunError, StoreError
from tallybook.model.period import GREGORIAN
from tallybook.model.run import Run
from tallybook.runs import outputs, runner
from tallybook.runs.snapshot import calendar_then
from tallybook.store.store import Store

BROKEN = """
    - seq: 45
      name: Number
      type: update
      arguments: {assignments: [{column: n, expression: TO_INTEGER(id)}]}
    """


def last_run(books: Books) -> Run:
    with books.store() as store:
        return store.runs(limit=1)[0]


@rule("BR-011")
def test_a_failing_operation_is_named_and_what_was_written_stays(active: Books) -> None:
    active.add_operation(BROKEN)
    active.open().activate("close")
    with pytest.raises(RunError) as failed:
        active.run()
    problem = failed.value.problem
    assert (problem.type, problem.seq, problem.operation) == ("EvaluationError", 45, "Number")
    assert "'a' is not a valid integer" in problem.message
    run = last_run(active)
    assert failed.value.run_id == run.id
    assert (run.status, run.last_completed_operation) == ("failed", 40)
    assert run.problem is not None and run.problem["seq"] == 45
    assert active.ledger() == JANUARY, "outputs already written stay"
    assert not (active.root / "reports" / "2026-01").exists()
    with active.store() as store:
        assert [each.seq for each in store.operation_results(run.id)] == [10, 20, 30, 40]
        assert [(each.seq, each.committed) for each in store.output_results(run.id)] == [(30, True), (50, False)]


@rule("APPEND_008")
def test_a_bad_value_is_named_with_its_file_and_column(active: Books) -> None:
    append = "- {seq: 5, name: More, type: append, arguments: {source: {dataset_id: extra}}}"
    (active.root / "extra.yaml").write_text(
        "dataset: {id: extra, name: E, main_table: {name: extra, columns: [{name: amount, type: integer}]}}\n"
    )
    (active.root / "data" / "extra.csv").write_text("amount\n1\nmany\n")
    active.edit("close.yaml", "    - seq: 10", f"    {append}\n    - seq: 10")
    active.open().activate("close")
    with pytest.raises(RunError) as failed:
        active.run()
    problem = failed.value.problem
    assert (problem.type, problem.code, problem.seq, problem.operation) == ("DataLoadError", "APPEND_008", 5, "More")
    assert "extra.csv" in problem.message and "amount" in problem.message and "many" in problem.message
    assert last_run(active).status == "failed"


def test_a_missing_place_fails_the_run_with_its_id(active: Books) -> None:
    with pytest.raises(RunError) as failed:
        active.run(period="2026-03")
    assert failed.value.problem.type == "DataNotFound"
    run = last_run(active)
    assert (failed.value.run_id, run.status, run.last_completed_operation) == (run.id, "failed", None)


def test_a_file_gone_while_it_was_read_is_told_in_a_line(active: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    real = outputs.write

    def write(*args: object, **options: object) -> object:
        (active.root / "data/sales/2026-01.csv").unlink()
        return real(*args, **options)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(outputs, "write", write)
    with pytest.raises(RunError) as failed:
        active.run()
    problem = failed.value.problem
    assert (problem.type, problem.seq) == ("DataLoadError", 30)
    assert "data/sales/2026-01.csv is gone" in problem.message and "\n" not in problem.message


def test_a_store_spark_does_not_know_is_told_in_a_line(active: Books) -> None:
    """It fails while the inputs are looked at, before there is any operation to explain."""
    active.edit("places.yaml", "path_prefix: data", 'path_prefix: "nowhere://bucket"')
    with pytest.raises(RunError) as failed:
        active.run()
    assert failed.value.problem.message.endswith('No FileSystem for scheme "nowhere"')
    assert "\n" not in failed.value.problem.message


def half_done(books: Books, monkeypatch: pytest.MonkeyPatch, period: str = "2026-01") -> Run:
    """A run whose second output could not be written."""
    real = outputs.write

    def no_reports(*args: object, **options: object) -> object:
        if options["seq"] == 50:
            raise RunError([Problem("WriteFailed", "the disk is full")])
        return real(*args, **options)  # type: ignore[arg-type]  # passed on as they came

    with monkeypatch.context() as patch, pytest.raises(RunError, match="the disk is full"):
        patch.setattr(outputs, "write", no_reports)
        books.run(period=period)
    return last_run(books)


def test_a_retry_goes_on_where_the_run_failed(active: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = half_done(active, monkeypatch)
    assert (failed.status, failed.last_completed_operation) == ("failed", 40)
    active.edit("close.yaml", "exclude_columns: [_labels]", "exclude_columns: [_labels, tier]")
    done = active.open().retry(failed.id)
    assert (done.run.id, done.run.attempt, done.run.status) == (failed.id, 2, "completed")
    assert active.ledger() == JANUARY
    assert delta_versions(active) == 1, "the finished output was not written again"
    assert "tier" in done.outputs[1].columns_written, "the snapshot counts, not the files as they are now"
    assert len(parquet_rows(active.root / "reports" / "2026-01", "id")) == 5
    with pytest.raises(StoreError, match="completed"):
        active.open().retry(failed.id)


def test_a_retry_reads_what_the_run_read(active: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = half_done(active, monkeypatch)
    active.edit("data/sales/2026-01.csv", "a,EMEA,10", "a,EMEA,70")
    with pytest.raises(ProblemError, match=r"RunNotRepeatable(.|\n)*its input has changed: .*2026-01\.csv was changed"):
        active.open().retry(failed.id)
    assert last_run(active) == failed, "it is as it was"


def test_a_pattern_that_finds_nothing(active: Books) -> None:
    active.edit("places.yaml", '"{{table_name}}/{{period}}.csv"', '"{{table_name}}/{{period}}*.csv"')
    active.open().activate("close")
    with pytest.raises(RunError) as failed:
        active.run(period="2026-03")
    assert failed.value.problem.type == "DataNotFound"
    assert active.run().run.status == "completed"
    run = last_run(active)
    with active.store() as store:
        locations = [location for kept in store.snapshot(run.id).resolver_snapshots for location in kept.locations]
    assert [Path(file["file"]).name for location in locations for file in location["files"]] == [
        "2026-01.csv",
        "tiers.csv",
    ]
    assert active.open().replay(run.id).changed_inputs == []


def delta_versions(books: Books) -> int:
    return len(list((books.root / "warehouse" / "ledger" / "_delta_log").glob("*.json")))


def test_a_run_overtaken_by_a_later_one_is_not_retried(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    with books.store() as store:
        books.open().apply()
        overtaken = begin(store)
        store.fail_run(overtaken, Problem("WriteFailed", "the disk is full"))
        later = begin(store)
        with store._write() as connection:
            connection.exec_driver_sql(f"UPDATE runs SET status = 'completed' WHERE id = '{later.id}'")
    with pytest.raises(
        ProblemError, match=f"RunSuperseded(.|\n)*run {later.id} of the same project and period has completed since"
    ):
        books.open().retry(overtaken.id)


def test_a_run_is_not_retried_beside_outputs_of_a_later_one(active: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither has completed, but the first output is the later run's by now."""
    first = half_done(active, monkeypatch)
    later = half_done(active, monkeypatch)
    words = f"run {later.id} of the same project and period has written output 30 since"
    with pytest.raises(ProblemError, match=words):
        active.open().retry(first.id)
    assert active.open().retry(later.id).run.status == "completed"


@pytest.mark.long
def test_a_retry_reads_no_delta_table_that_the_run_did_not_find(active: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run found no table, so its retry and its replay find none either, whatever is there now."""
    active.edit(
        "places.yaml",
        '{name: all, data_level: any, strategy: {type: path, datasource_id: files, path: "{{table_name}}.csv"}}',
        "{name: all, data_level: any, on_missing: empty, strategy: {type: table, datasource_id: warehouse, table: t}}",
    )
    failed = half_done(active, monkeypatch)
    completed = active.run(period="2026-02").run
    write_deltalake(active.root / "warehouse" / "t", pa.table({"region": ["EMEA"], "tier": ["gold"]}))
    done = active.open().retry(failed.id)
    assert done.run.status == "completed"
    assert {row[0] for row in delta_rows(active.root / "warehouse/ledger", columns=["tier"])} == {None}
    assert {row[0] for row in parquet_rows(active.root / "reports/2026-01", "tier")} == {None}
    replay = active.open().replay(completed.id)
    assert replay.changed_inputs == [] and replay.identical


@pytest.mark.long
def test_a_run_is_repeated_by_the_calendar_it_had(active: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """The months of its quarter need not be periods of the calendar of today."""
    (active.root / "data" / "sales" / "2026-03.csv").write_text("id,region,amount\ne,APAC,7\n")
    failed = half_done(active, monkeypatch, "2026-Q1")
    (active.root / "fy.yaml").write_text(
        "calendar: {id: fy, fiscal_year_start: '04', levels: [{name: year, identifier: 'FY{{YYYY}}'}]}\n"
    )
    active.edit("tallybook.yaml", "name: tiny", "name: tiny\ncalendar: fy")
    active.edit("places.yaml", "data_level: month", "data_level: year")
    done = active.open().retry(failed.id)
    assert [output.rows_written for output in done.outputs] == [4, 7]
    assert active.open().replay(failed.id).identical
    with active.store() as store:
        snapshot = store.snapshot(failed.id)
    assert calendar_then(snapshot, GREGORIAN) == GREGORIAN
    older = snapshot.model_copy(update={"calendar": None})
    assert calendar_then(older, GREGORIAN) is GREGORIAN, "older versions did not keep it"


def begin(store: Store) -> Run:
    from datetime import date

    return store.create_run("close", 1, "2026-01", calendar_id="gregorian", as_of=date(2026, 1, 1))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError, StoreError])
def test_no_run_stays_active_when_planning_stops(
    books: Books, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """In a notebook the process lives on: a run left queued would stand in the way until it ends."""

    def stop(*_: object) -> None:
        raise kind("stopped")

    monkeypatch.setattr(runner, "take_snapshot", stop)
    with pytest.raises(RunError if kind is RuntimeError else kind):
        books.run()
    assert last_run(books).status == ("cancelled" if kind is KeyboardInterrupt else "failed")


def test_a_failed_registration_is_a_warning(active: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("the store is full")

    monkeypatch.setattr(Store, "register_dataset", refuse)
    result = active.run()
    expected = "output 30 was written but not registered as 'ledger': the store is full"
    assert (result.run.status, list(result.warnings)) == ("completed", [expected])
    assert active.ledger() == JANUARY
    with active.store() as store:
        assert [event.detail for event in store.run_events(result.run.id) if event.event == "warning"] == [
            {"message": expected}
        ]
        assert store.output_results(result.run.id)[0].dataset_version is None


def test_a_bug_is_an_internal_error_of_the_operation(active: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: object, **_options: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("tallybook.runs.outputs.write", broken)
    with pytest.raises(RunError) as caught:
        active.run()
    problem = caught.value.problem
    assert (problem.type, problem.message, problem.seq) == ("InternalError", "ZeroDivisionError: a bug", 30)
    with active.store() as store:
        run = store.runs(limit=1)[0]
        assert (run.status, run.last_completed_operation) == ("failed", 20)


def test_all_bad_values_are_listed_on_the_terminal_and_in_json(books: Books, tally: Tally, spark: object) -> None:
    (books.root / "data/sales/2026-01.csv").write_text("id,region,amount\na,EMEA,x\nb,APAC,2.345\nc,EMEA,0\n")
    (books.root / "sales.yaml").write_text(
        (books.root / "sales.yaml").read_text().replace("region, type: string", "region, type: integer")
    )
    (books.root / "close.yaml").write_text(BAD_VALUES)
    said = tally(books, "run", "close", "--period", "2026-01", "--json")
    [problem] = said.json["problems"]
    assert said.code == 1
    assert problem["message"] == "table 'sales' cannot be read because of 5 values:"
    assert [(bad["row"], bad["column"], bad["value"]) for bad in problem["bad_values"]] == [
        (1, "region", "EMEA"),
        (1, "amount", "x"),
        (2, "region", "APAC"),
        (2, "amount", "2.345"),
        (3, "region", "EMEA"),
    ]
    shown = tally(books, "run", "close", "--period", "2026-01").err
    file = books.root / "data/sales/2026-01.csv"
    assert f"    {file} row 2: column 'amount' is decimal(10,2) and cannot hold '2.345'\n" in shown


BAD_VALUES = """
project:
  id: close
  name: Close
  input_dataset_id: sales
  operations:
    - {seq: 1, name: All, type: output, arguments: {destination: {location: out.csv}}}
"""
