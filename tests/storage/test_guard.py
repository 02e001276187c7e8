"""The last question before rows become visible, and the fence that keeps a dead run's commit out."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from tallybook.errors import RunError, fail
from tallybook.storage import write
from tallybook.storage.output import Guard
from tallybook.storage.write import has_written

OLD, NEW = [(1,)], [(2,)]


@pytest.fixture
def save(spark, run_id):
    def run(rows, location, mode="overwrite", run="run-1", check=lambda: None, claim=1, rivals=()):
        frame = spark.createDataFrame(rows, "id bigint").coalesce(1)
        guard = Guard(check, "p:2026-01:5", claim, tuple(map(run_id, rivals)))
        return write(spark, frame, location, mode=mode, run_id=run_id(run), seq=5, guard=guard)

    return run


def refuse():
    raise fail("PeriodNotOpen", "period 2026-01 is locked")


@pytest.mark.parametrize(
    ("format", "name", "mode"),
    [
        ("csv", "out.csv", "overwrite"),
        ("parquet", "out", "overwrite"),
        ("parquet", "out", "append"),
        ("delta", "out", "overwrite"),
        ("delta", "out", "append"),
    ],
)
def test_nothing_is_published_when_the_answer_is_no(save, rows, locate, table, tmp_path, format, name, mode):
    location = locate(format, tmp_path / name)
    with pytest.raises(RunError, match="locked"):
        save(NEW, location, mode, check=refuse)
    assert format == "delta" or list(tmp_path.iterdir()) == []
    save(OLD, location)
    with pytest.raises(RunError, match="locked"):
        save(NEW, location, mode, "run-2", refuse)
    assert rows(location, table(id="integer")) == OLD
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_run_with_an_earlier_claim_commits_no_more(save, rows, locate, table, tmp_path, mode):
    location = locate("delta", tmp_path / "t")
    save(NEW, location, mode, "run-8", claim=8)
    with pytest.raises(RunError) as caught:
        save(OLD, location, mode, "run-7", claim=7)
    assert caught.value.problem.type == "RunSuperseded"
    assert rows(location, table(id="integer")) == NEW
    save(NEW, location, "overwrite", "run-9", claim=9)
    assert DeltaTable(tmp_path / "t").transaction_version("p:2026-01:5") == 9


@pytest.mark.parametrize("there_before", [False, True])
def test_a_successor_that_commits_after_the_question_wins(save, rows, locate, table, tmp_path, there_before):
    """The earlier run has its permission, then stands still while its successor begins and commits."""
    location = locate("delta", tmp_path / "t")
    if there_before:
        save([], location, claim=1)
    overtaken: list[object] = []

    def overtake():
        assert not overtaken, "asked again, though the fence must have refused before"
        overtaken.append(save(NEW, location, "append", "run-8", claim=8))

    with pytest.raises(RunError) as caught:
        save(OLD, location, "append", "run-7", overtake, claim=7)
    assert caught.value.problem.type == "RunSuperseded"
    assert rows(location, table(id="integer")) == NEW


@pytest.mark.parametrize("format", ["delta", "parquet"])
def test_nothing_is_appended_beside_the_rows_of_a_rival(save, rows, locate, table, run_id, tmp_path, format):
    location = locate(format, tmp_path / "t")
    save(OLD, location, "append", "run-7", claim=7)
    with pytest.raises(RunError) as caught:
        save(NEW, location, "append", "run-8", claim=8, rivals=("run-3", "run-7"))
    assert caught.value.problem.type == "AlreadyAppended" and f"run {run_id('run-7')}" in caught.value.problem.message
    assert rows(location, table(id="integer")) == OLD
    save(NEW, location, "append", "run-8", claim=8, rivals=("run-3",))
    assert sorted(rows(location, table(id="integer"))) == OLD + NEW
    assert has_written(location, run_id("run-7"), 5) and not has_written(location, run_id("run-7"), 6)
    assert not has_written(location, run_id("run-3"), 5)
    assert not has_written(locate(format, tmp_path / "nowhere"), run_id("run-7"), 5)


def test_a_destination_that_cannot_be_asked(locate, run_id, tmp_path):
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("not a log")
    assert has_written(locate("delta", tmp_path / "t"), run_id("run-1"), 5) is None
    assert has_written(locate("parquet", "s3a://bucket/t"), run_id("run-1"), 5) is None
