"""`mode: replace_period` on Delta tables: the rows of the run's periods change in one commit, all others stay."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.storage.kit import refusal

from tallybook.errors import RunError
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.period import GREGORIAN
from tallybook.model.replaced_periods import ReplacedPeriods
from tallybook.storage.formats import delta_changes, delta_commit

SCHEMA = "id bigint, _period string"


def periods(name, *read) -> ReplacedPeriods:
    """What the run of a period replaces that reads rows of other periods."""
    return ReplacedPeriods.of_run(NestedPeriod.of(GREGORIAN, name), read)


@pytest.fixture
def replace_period(save):
    """`replace_period(location, "2026-01", 1, 2, run="run-2")`: replaces the rows of a period."""

    def write_ids(location, period, *ids, **options):
        rows = [(id, period) for id in ids]
        options = {"periods": periods(period), "schema": SCHEMA, **options}
        return save(rows, location, mode="replace_period", **options)

    return write_ids


def ids(path, version=None) -> list[tuple[str, int]]:
    """The rows of a table, read by delta-rs alone."""
    rows = DeltaTable(path, version=version).to_pyarrow_table().to_pylist()
    return sorted((row["_period"] or "", row["id"]) for row in rows)


def commit_of(path, version) -> tuple[int, int]:
    """How many files a commit adds and removes."""
    before, after = (set(DeltaTable(path, version=number).file_uris()) for number in (version - 1, version))
    return len(after - before), len(before - after)


class TestPeriods:
    def test_a_quarter_replaces_the_levels_that_its_rows_or_its_input_have(self):
        months = ("2026-01", "2026-02", "2026-03")
        assert periods("2026-Q1").given({"2026-Q1"}) == ("2026-Q1",)
        assert periods("2026-Q1").given({"2026-02"}) == ("2026-Q1", *months)
        assert periods("2026-Q1", "2026-01").given(()) == ("2026-Q1", *months)
        assert periods("2026-Q1", "2025-12").planned == ("2026-Q1",)
        assert len(periods("2026-Q1").given({"2026-01-31"})) == 1 + 90

    @pytest.mark.parametrize("name", ["2026-04", "2026", None])
    def test_a_row_of_another_period_is_refused(self, name):
        with pytest.raises(RunError) as caught:
            periods("2026-Q1").given({"2026-Q1", name})
        assert (name or "without a `_period`") in caught.value.problem.message and caught.value.problem.hint


def test_a_month_is_replaced_after_a_later_one(replace_period, locate, tmp_path):
    location = locate("delta", tmp_path / "t")
    assert replace_period(location, "2026-01", 1).periods == ("2026-01",)
    replace_period(location, "2026-02", 3, run="run-2")
    again = replace_period(location, "2026-01", 4, run="run-3")
    assert (again.rows, again.version, commit_of(tmp_path / "t", 2)) == (1, 2, (1, 1))
    assert ids(tmp_path / "t") == [("2026-01", 4), ("2026-02", 3)]
    assert ids(tmp_path / "t", 1) == [("2026-01", 1), ("2026-02", 3)]
    assert replace_period(location, "2026-01", 4, run="run-3") == again, "a retry writes nothing"
    assert DeltaTable(tmp_path / "t").version() == 2


def test_no_rows_empty_the_period(replace_period, locate, rows, table, tmp_path):
    location = locate("delta", tmp_path / "t")
    replace_period(location, "2026-01", 1)
    replace_period(location, "2026-02", 2, run="run-2")
    assert replace_period(location, "2026-01", run="run-3").rows == 0
    assert ids(tmp_path / "t") == [("2026-02", 2)]
    assert replace_period(location, "2026-01", run="run-4").rows == 0, "it is empty already"
    assert rows(location, table(id="integer")) == [(2, "2026-02")]


def test_a_quarter_replaces_its_months(save, replace_period, locate, tmp_path):
    location = locate("delta", tmp_path / "t")
    for number, month in enumerate(("2025-12", "2026-01", "2026-02", "2026-04")):
        replace_period(location, month, number, run=f"run-{number}")
    quarter = periods("2026-Q1", "2026-01")
    written = save([(9, "2026-03")], location, mode="replace_period", run="run-7", schema=SCHEMA, periods=quarter)
    assert written.periods == ("2026-Q1", "2026-01", "2026-02", "2026-03")
    assert ids(tmp_path / "t") == [("2025-12", 0), ("2026-03", 9), ("2026-04", 3)]
    replace_period(location, "2026-Q1", 10, run="run-8")
    assert ids(tmp_path / "t") == [("2025-12", 0), ("2026-03", 9), ("2026-04", 3), ("2026-Q1", 10)]


def test_only_files_with_rows_of_the_period_are_written_anew(spark, save, replace_period, locate, tmp_path):
    """A table that was written as a whole has files with rows of several periods, and rows without one."""
    location, path = locate("delta", tmp_path / "t"), tmp_path / "t"
    save([(1, "2026-01"), (2, "2026-02"), (3, None)], location, schema=SCHEMA)
    save([(4, "2026-03"), (5, "2026-04")], location, mode="append", run="run-2", schema=SCHEMA)
    untouched = set(DeltaTable(path, version=1).file_uris()) - set(DeltaTable(path, version=0).file_uris())
    replace_period(location, "2026-01", 9, run="run-3")
    assert ids(path) == [("", 3), ("2026-01", 9), ("2026-02", 2), ("2026-03", 4), ("2026-04", 5)]
    assert untouched <= set(DeltaTable(path).file_uris())
    assert ids(path, 1) == [("", 3), ("2026-01", 1), ("2026-02", 2), ("2026-03", 4), ("2026-04", 5)]


def test_a_table_of_another_program(replace_period, locate, tmp_path):
    """Its log has no statistics, and names of files that are encoded in it."""
    location, path = locate("delta", tmp_path / "a table"), tmp_path / "a table"
    rows = pa.table({"id": [1, 2, 3], "_period": ["2026-01", "2026-02", None]})
    write_deltalake(path, rows, configuration={"delta.dataSkippingNumIndexedCols": "0"})
    replace_period(location, "2026-02", 9)
    assert ids(path) == [("", 3), ("2026-01", 1), ("2026-02", 9)]


def test_a_file_name_that_cannot_be_removed_is_refused(replace_period, locate, tmp_path):
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1], "_period": ["2026-01"]}))
    log = path / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text().replace('"path":"', '"path":"%2e/'))
    message = refusal(replace_period, locate("delta", path), "2026-01", 2)
    assert "encoded in an unusual way" in message


def test_other_columns_are_refused(save, replace_period, locate, tmp_path):
    location = locate("delta", tmp_path / "t")
    replace_period(location, "2026-01", 1)
    options = {"mode": "replace_period", "run": "run-2", "periods": periods("2026-02")}
    assert "note string" in refusal(
        save, [(2, "2026-02", "x")], location, schema="id bigint, _period string, note string", **options
    )
    assert ids(tmp_path / "t") == [("2026-01", 1)]


def test_a_row_of_another_period_leaves_the_table_as_it_was(save, replace_period, locate, tmp_path):
    location = locate("delta", tmp_path / "t")
    replace_period(location, "2026-01", 1)
    rows = [(2, "2026-02"), (3, "2025-12")]
    options = {"mode": "replace_period", "run": "run-2", "schema": SCHEMA, "periods": periods("2026-02")}
    assert "rows of the period '2025-12'" in refusal(save, rows, location, **options)
    assert ids(tmp_path / "t") == [("2026-01", 1)] and len(list((tmp_path / "t").iterdir())) == 2


@pytest.mark.parametrize("kept", [True, False])
def test_another_period_is_committed_in_between(monkeypatch, save, replace_period, locate, tmp_path, kept):
    """Both survive, also if this run has to write other rows anew and the file with them is replaced meanwhile."""
    location, path = locate("delta", tmp_path / "t"), tmp_path / "t"
    save([(1, "2026-01"), (2, "2026-02"), (3, "2026-03")], location, schema=SCHEMA)
    real, others = delta_commit._commit, iter(["2026-02"])

    def commit(*arguments):
        for period in others:
            if kept:
                replace_period(location, period, 20, run="run-7")
            else:
                save([(20, period), (3, "2026-03")], location, run="run-7", schema=SCHEMA)
        return real(*arguments)

    monkeypatch.setattr(delta_commit, "_commit", commit)
    replace_period(location, "2026-01", 10, run="run-8")
    assert ids(path) == [("2026-01", 10), ("2026-02", 20), ("2026-03", 3)]


def test_an_attempt_that_died_between_writing_and_commit(monkeypatch, save, replace_period, locate, tmp_path):
    location = locate("delta", tmp_path / "t")
    save([(1, "2026-01"), (2, "2026-02")], location, schema=SCHEMA)
    with monkeypatch.context() as patch:
        patch.setattr(delta_commit, "_commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            replace_period(location, "2026-01", 3, run="run-2")
    assert ids(tmp_path / "t") == [("2026-01", 1), ("2026-02", 2)]
    replace_period(location, "2026-01", 4, run="run-2")
    assert ids(tmp_path / "t") == [("2026-01", 4), ("2026-02", 2)]


def test_committed_files_stay_if_the_table_cannot_be_opened_afterwards(monkeypatch, replace_period, locate, tmp_path):
    location = locate("delta", tmp_path / "t")
    replace_period(location, "2026-01", 1)
    real = delta_commit._commit

    def commit(*arguments):
        conflict = real(*arguments)
        monkeypatch.setattr(delta_commit, "_committed", lambda *_: (_ for _ in ()).throw(RunError([])))
        return conflict

    monkeypatch.setattr(delta_commit, "_commit", commit)
    with pytest.raises(RunError):
        replace_period(location, "2026-01", 2, run="run-2")
    assert ids(tmp_path / "t") == [("2026-01", 2)]


def test_statistics_save_reading_the_files(monkeypatch, replace_period, locate, tmp_path):
    """The log says which periods a file has, so no other file is opened."""
    location = locate("delta", tmp_path / "t")
    for number, month in enumerate(("2026-01", "2026-02", "2026-03")):
        replace_period(location, month, number, run=f"run-{number}")
    monkeypatch.setattr(delta_changes, "other_rows", None)
    monkeypatch.setattr("tallybook.storage.formats.delta_periods.open_files", None)
    replace_period(location, "2026-02", 9, run="run-7")
    assert ids(tmp_path / "t") == [("2026-01", 0), ("2026-02", 9), ("2026-03", 2)]
