"""A completed run: what it wrote, what it says of it, what the store keeps."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.kit.workspaces import JANUARY, Books, delta_rows, parquet_rows
from tests.rules.kit import rule

from tallybook.errors import RunError
from tallybook.runs.runner import RunResult

Closed = tuple[Books, RunResult]


@rule("V-006")
def test_outputs_hold_exactly_the_columns_named_in_their_order(closed: Closed) -> None:
    books, result = closed
    assert books.ledger() == JANUARY
    assert result.outputs[0].columns_written == ("id", "tier", "net", "_period")


def test_a_column_is_written_under_the_name_the_output_calls_it_by(active: Books) -> None:
    active.edit("close.yaml", "columns: [id, tier, net, _period]", "columns: [sales.id, _source_dataset, _period]")
    active.edit("close.yaml", "exclude_columns: [_labels]", "exclude_columns: [_labels, _source_dataset]")
    active.open().activate("close")
    run = active.run().run
    table = DeltaTable(active.root / "warehouse" / "ledger").to_pyarrow_table()
    assert table.column_names == ["id", "_source_dataset", "_period"]
    assert table.column("_source_dataset").to_pylist() == ["sales", "sales"]
    report = pq.read_table(active.root / "reports" / "2026-01").column_names
    assert not {"_source_dataset", "_source_dataset_id"} & {*report}
    assert active.open().replay(run.id).identical


@rule("V-007")
def test_the_rows_written_are_counted_and_timed(closed: Closed) -> None:
    _books, result = closed
    assert [(output.seq, output.rows_written, output.committed) for output in result.outputs] == [
        (30, 2, True),
        (50, 5, True),
    ]
    assert all(output.write_duration_ms is not None and output.write_duration_ms > 0 for output in result.outputs)


@rule("BR-008c")
def test_deleted_rows_are_written_only_where_asked_for(closed: Closed) -> None:
    books, _result = closed
    rows = parquet_rows(books.root / "reports" / "2026-01", "id", "_deleted", "total")
    assert rows == sorted(
        [
            ("a", False, None),
            ("b", False, None),
            ("c", True, None),
            (None, False, Decimal("9.00")),
            (None, False, Decimal("18.00")),
        ],
        key=str,
    )


def test_columns_left_out_are_not_written(closed: Closed) -> None:
    columns = closed[1].outputs[1].columns_written
    assert "_labels" not in columns and columns[:4] == ("id", "region", "amount", "net")


def test_the_store_keeps_operations_outputs_and_events(closed: Closed) -> None:
    books, result = closed
    with books.store() as store:
        run = store.run(result.run.id)
        operations = store.operation_results(run.id)
        events = [event.event for event in store.run_events(run.id)]
        outputs = store.output_results(run.id)
    assert (run.status, run.last_completed_operation, run.sandbox) == ("completed", 50, False)
    assert [(each.seq, each.type, each.duration_ms is not None) for each in operations] == [
        (10, "update", False),
        (20, "delete", False),
        (30, "output", True),
        (40, "aggregate", False),
        (50, "output", True),
    ]
    assert events == ["queued", "running", "completed"]
    assert outputs == tuple(result.outputs)


@rule("BR-012")
def test_the_snapshot_has_all_that_is_needed_to_repeat_the_run(closed: Closed) -> None:
    books, result = closed
    with books.store() as store:
        snapshot = store.snapshot(result.run.id)
    written = books.open().definitions.projects["close"].project
    assert written is not None
    assert [each["name"] for each in snapshot.project["operations"]] == [each.name for each in written.operations]
    assert snapshot.project["operations"][1]["selector"] == "amount = 0"
    assert (snapshot.project_version, snapshot.project["input_dataset_version"]) == (1, 1)
    assert (snapshot.period["identifier"], snapshot.as_of) == ("2026-01", date(2026, 1, 1))
    assert snapshot.run_timestamp == result.run.run_timestamp
    assert {(use.dataset_id, use.dataset_version) for use in snapshot.datasets} == {("sales", 1), ("tiers", 1)}
    sales = next(each for each in snapshot.resolver_snapshots if each.dataset_id == "sales")
    assert (sales.resolver_id, sales.resolver_version, sales.rule) == ("by-month", 1, "month")
    assert [location["target"] for location in sales.locations] == [str(books.root / "data" / "sales" / "2026-01.csv")]
    assert snapshot.destinations["50"]["target"] == str(books.root / "reports" / "2026-01")
    assert "pyspark" in snapshot.engine_version


@rule("BR-013")
def test_a_registered_output_is_version_one_and_says_who_made_it(closed: Closed) -> None:
    books, result = closed
    assert (result.outputs[0].dataset_id, result.outputs[0].dataset_version) == ("ledger", 1)
    with books.store() as store:
        made = store.registration("ledger", 1)
        body = store.versions("dataset", "ledger")[0].body
    assert made is not None and (made.run_id, made.seq) == (result.run.id, 30)
    assert body["main_table"]["temporal_mode"] == "period"
    assert [(each["name"], each["type"]) for each in body["main_table"]["columns"]] == [
        ("id", "string"),
        ("tier", "string"),
        ("net", "decimal(12,2)"),
    ]


def test_registered_rows_that_no_run_would_find_are_told(active: Books) -> None:
    active.add_operation("""
        - seq: 60
          name: Lost
          type: output
          arguments: {destination: {location: lost.delta}, columns: [total, _period], register_as_dataset: lost}
        - seq: 70
          name: Found
          type: output
          arguments: {destination: {location: found.delta}, columns: [total], register_as_dataset: found}
        """)
    active.open().activate("close")
    assert active.run().warnings == [
        "2 rows of output 60 have no _period, so no run that reads 'lost' finds them; "
        "group by _period, or leave it out of `columns`"
    ]


def test_modes_and_an_empty_result(active: Books) -> None:
    active.add_operation("""
        - seq: 60
          name: Added
          type: output
          arguments: {destination: {location: more.delta}, mode: append, columns: [id]}
        - seq: 70
          name: Nothing
          type: output
          selector: "FALSE"
          arguments: {destination: {location: none.delta}, columns: [net, id]}
        - seq: 80
          name: Once
          type: output
          arguments: {destination: {location: "once/{{YYYY}}{{MM}}.csv"}, mode: error, columns: [id]}
        """)
    active.open().activate("close")
    first = active.run()
    assert [output.rows_written for output in first.outputs][2:] == [4, 0, 4]
    assert delta_rows(active.root / "none.delta") == []
    assert [(field.name, str(field.type)) for field in DeltaTable(active.root / "none.delta").schema().fields] == [
        ("net", 'PrimitiveType("decimal(12,2)")'),
        ("id", 'PrimitiveType("string")'),
    ]
    assert (active.root / "once" / "202601.csv").read_text().splitlines()[0] == "id"
    with pytest.raises(RunError, match="already exists") as failed:
        active.run(again=True)
    assert failed.value.problem.type == "WriteFailed" and failed.value.problem.seq == 80
    assert len(delta_rows(active.root / "more.delta")) == 4, "nothing is written if an output has no location"


def test_rows_have_ids_and_times_although_no_output_writes_them(active: Books) -> None:
    active.edit("close.yaml", "exclude_columns: [_labels]", "columns: [id, total]")
    active.edit("close.yaml", "columns: [id, tier, net, _period]", "columns: [id, tier, net]")
    active.open().activate("close")
    working = active.run().frame
    assert working.count() == 5
    assert working.select("_row_id").distinct().count() == 5
    assert working.filter("_created_at IS NULL OR _updated_at IS NULL OR _operation_seq IS NULL").count() == 0
