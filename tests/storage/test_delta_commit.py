"""Delta outputs: one commit each, never twice, and the files of an attempt that died stay invisible."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from tests.storage.kit import refusal

from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.storage.formats import delta_changes, delta_commit
from tallybook.storage.formats.delta_log import ADDED_ROWS

SCHEMA = "id bigint, amount decimal(18,6), note string, day date, at timestamp, paid boolean"


def test_round_trip(save, rows, locate, table, tmp_path):
    location = locate("delta", tmp_path / "a table")
    row = (1, Decimal("1.5"), "é", dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, 10, 0, 0, 123456), True)
    written = save([row, (None,) * 6], location, schema=SCHEMA)
    assert (written.rows, written.version) == (2, 0)
    columns = dict(zip(written.columns, ("integer", "decimal", "string", "date", "timestamp", "boolean"), strict=True))
    assert sorted(rows(location, table(**columns)), key=str) == [row, (None,) * 6]
    other = DeltaTable(tmp_path / "a table")
    assert other.to_pyarrow_table().schema.field("at").type == pa.timestamp("us", "UTC")
    assert other.count() == 2


def test_modes_and_versions(save, rows, locate, table, tmp_path):
    location = locate("delta", tmp_path / "t")
    assert save([(1,)], location, mode="error").version == 0
    assert save([(2,), (3,)], location, mode="append", run="run-2").version == 1
    assert "already exists" in refusal(save, [(4,)], location, mode="error", run="run-3")
    assert "note string" in refusal(save, [("x",)], location, mode="append", run="run-3", schema="note string")
    assert save([("x",)], location, run="run-3", schema="note string").version == 2
    assert rows(location, table(note="string")) == [("x",)]
    assert sorted(rows(locate("delta", tmp_path / "t", version=1), table(id="integer"))) == [(1,), (2,), (3,)]


def test_a_retry_reports_the_earlier_commit(save, rows, locate, table, tmp_path):
    location = locate("delta", tmp_path / "t")
    first = save([(1,)], location, mode="append")
    save([(2,)], location, mode="append", seq=6)
    save([(3,)], location, mode="append", run="run-2")
    assert save([(1,)], location, mode="append") == first
    assert sorted(rows(location, table(id="integer"))) == [(1,), (2,), (3,)]


def test_an_empty_result_is_a_typed_table(save, rows, locate, table, tmp_path):
    location = locate("delta", tmp_path / "t")
    written = save([], location, schema=SCHEMA)
    assert written.rows == 0 and DeltaTable(tmp_path / "t").file_uris() == []
    assert [field.name for field in DeltaTable(tmp_path / "t").schema().fields] == list(written.columns)
    save([(1,)], location, run="run-2")
    assert save([], location, run="run-3").version == 2
    assert rows(location, table(id="integer")) == []


def test_files_of_an_attempt_that_died_are_never_seen(monkeypatch, save, rows, locate, table, run_id, tmp_path):
    """Between staging and commit nothing is cleaned up by code, so an exception there is like a kill."""
    location = locate("delta", tmp_path / "t")
    save([(1,)], location)
    with monkeypatch.context() as patch:
        patch.setattr(delta_commit, "_commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            save([(2,), (3,)], location, mode="append", run="run-2")
    orphans = set((tmp_path / "t" / f"{run_id('run-2')}-5").rglob("*.parquet"))
    assert orphans
    assert rows(location, table(id="integer")) == [(1,)]
    save([(2,)], location, mode="append", run="run-2")
    assert sorted(rows(location, table(id="integer"))) == [(1,), (2,)]
    assert not orphans & set((tmp_path / "t" / f"{run_id('run-2')}-5").rglob("*"))


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_another_commit_in_between(monkeypatch, save, rows, locate, table, tmp_path, mode):
    location = locate("delta", tmp_path / "t")
    save([(1,)], location)
    real, others = delta_changes.stage, [2]

    def stage(*arguments, **options):
        parts = real(*arguments, **options)
        write_deltalake(tmp_path / "t", pa.table({"id": others}), mode="append")
        return parts

    monkeypatch.setattr(delta_changes, "stage", stage)
    assert save([(3,)], location, mode=mode, run="run-2").version == 2
    expected = [(3,)] if mode == "overwrite" else [(1,), (2,), (3,)]
    assert sorted(rows(location, table(id="integer"))) == expected


def test_another_run_creates_the_table_in_between(monkeypatch, save, rows, locate, table, tmp_path):
    location = locate("delta", tmp_path / "t")
    real = delta_changes.stage

    def stage(*arguments, **options):
        write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
        return real(*arguments, **options)

    monkeypatch.setattr(delta_changes, "stage", stage)
    assert "already exists" in refusal(save, [(2,)], location, mode="error")
    assert rows(location, table(id="integer")) == [(1,)]


def test_tables_with_needs_of_their_own_are_refused(save, locate, tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"id": [1], "region": ["a"]}), partition_by=["region"])
    assert "is partitioned by region" in refusal(save, [(1,)], locate("delta", tmp_path / "t"))
    DeltaTable.create(
        tmp_path / "u", pa.schema([("id", pa.int64())]), configuration={"delta.enableChangeDataFeed": "true"}
    )
    assert "cannot be written yet" in refusal(save, [(1,)], locate("delta", tmp_path / "u"))


def test_a_place_that_cannot_be_made_is_told_in_a_line(save, locate, tmp_path):
    message = refusal(save, [(1,)], locate("delta", "/proc/tallybook"))
    assert message.startswith("delta /proc/tallybook could not be written: Mkdirs failed to create file:/proc/")
    assert "\n" not in message
    (tmp_path / "file").touch()
    assert "Not a directory" in refusal(save, [(1,)], locate("delta", tmp_path / "file" / "t"))


@pytest.mark.parametrize("name", ["50% Anteil", "Größe é", "a+b&c=d;e"])
def test_odd_names_that_work(save, rows, locate, table, tmp_path, name):
    location = locate("delta", tmp_path / name / "t")
    assert save([(1,)], location).version == 0
    assert save([(1,)], location).version == 0, "a retry"
    assert rows(location, table(id="integer")) == [(1,)]


@pytest.mark.parametrize(("name", "misread"), [("a#b", "#"), ("a?b", "?"), ("my%20project", "%20"), ("a\\b", "\\")])
def test_names_the_log_would_not_be_found_by_are_refused_before_anything_is_written(
    save, locate, tmp_path, name, misread
):
    message = refusal(save, [(1,)], locate("delta", tmp_path / name / "t"))
    assert f"'{misread}' in its path" in message
    assert list(tmp_path.iterdir()) == []


def committed_by(path: Path, run_id: str, seq: int = 5) -> None:
    facts = {delta_changes.RUN: run_id, delta_changes.OPERATION: seq, ADDED_ROWS: 1}
    properties = CommitProperties(custom_metadata=facts, app_transactions=[Transaction(run_id, seq)])
    write_deltalake(path, pa.table({"id": [run_id]}), mode="overwrite", commit_properties=properties)


@pytest.mark.parametrize("mine", [0, 1, 4])
@pytest.mark.parametrize("later", [0, 3])
def test_commits_of_others_do_not_shift_the_version(tmp_path: Path, mine: int, later: int) -> None:
    path = tmp_path / "t"
    for number in range(mine):
        committed_by(path, f"before-{number}")
    committed_by(path, "mine", seq=5)
    for number in range(later):
        committed_by(path, f"between-{number}")
    loaded = DeltaTable(path)
    for number in range(4):
        committed_by(path, f"after-{number}")
    location = Location(FileSource(id="w", type="delta", options=FileOptions(path_prefix=".")), str(path))
    written = delta_commit._committed(location, loaded, ("id",), "mine", 5)
    assert written is not None and written.version == mine
    assert DeltaTable(path, version=written.version).to_pyarrow_table().to_pylist() == [{"id": "mine"}]
    assert delta_commit._committed(location, loaded, ("id",), "mine", 6) is None
