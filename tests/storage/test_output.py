"""An output touches its own earlier files and nothing else: not in its folder, and not next to it."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.kit.workspaces import contents

from tallybook.errors import Problem, RunError
from tallybook.storage import file_writer, publish, write
from tallybook.storage.publish import clear, link_into, locked, sibling

FOREIGN = [".git/HEAD", ".env", "README.txt", "my-budget-2019.csv", "y=2025/thesis.docx", "_SUCCESS", ".DS_Store"]


@pytest.fixture
def save(spark, run_id):
    def save(location, mode="overwrite", run="run-1", seq=5):
        return write(spark, spark.range(2).coalesce(1), location, mode=mode, run_id=run_id(run), seq=seq)

    return save


def refusal(save, *arguments, **options) -> Problem:
    with pytest.raises(RunError) as caught:
        save(*arguments, **options)
    assert caught.value.problem.type == "WriteFailed"
    return caught.value.problem


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"mine: {name}")


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc", "delta"])
@pytest.mark.parametrize("mode", ["overwrite", "append", "error"])
def test_a_folder_with_anything_else_in_it_is_refused(save, locate, tmp_path, format, mode):
    put(tmp_path / "out", *FOREIGN)
    before = contents(tmp_path)
    problem = refusal(save, locate(format, tmp_path / "out"), mode=mode)
    for name in FOREIGN:
        assert f"'{name.split('/')[0]}" in problem.message
    assert "which this product did not write" in problem.message and "move these" in problem.hint
    assert contents(tmp_path) == before


def test_one_foreign_entry_among_own_files_is_enough(save, rows, locate, table, run_id, tmp_path):
    location = locate("csv", tmp_path / "out")
    save(location)
    [own] = (tmp_path / "out").iterdir()
    lookalikes = [own.name.upper(), f"{own.stem} - copy.csv", f"x{own.name}", f"{own.name}.bak", own.name[10:]]
    for name in ("sales-2026-01-00001.csv", *lookalikes):
        put(tmp_path / "out", name)
        assert f"'{name}'" in refusal(save, location, run="run-2").message
        (tmp_path / "out" / name).unlink()
    as_link = tmp_path / "out" / own.name.replace("-5-", "-6-")
    as_link.symlink_to(own)
    assert as_link.name in refusal(save, location, run="run-2").message
    as_link.unlink()
    (tmp_path / "out" / own.name.replace("-5-", "-7-")).mkdir()
    assert "-7-" in refusal(save, location, run="run-2").message
    assert own.read_text() == "id\n0\n1\n"


def test_what_appears_while_rows_are_computed_is_kept(monkeypatch, save, rows, locate, table, tmp_path):
    location = locate("csv", tmp_path / "out")
    save(location)
    before = contents(tmp_path)
    real = file_writer.stage
    with monkeypatch.context() as patch:
        patch.setattr(file_writer, "stage", lambda *a, **k: (real(*a, **k), put(tmp_path / "out", "late.txt"))[0])
        assert "'late.txt'" in refusal(save, location, run="run-2").message
    assert contents(tmp_path) == before | {"out/late.txt": b"mine: late.txt"}


@pytest.mark.parametrize("exchange", [True, False])
def test_what_appears_at_the_very_last_moment_is_kept(monkeypatch, save, locate, tmp_path, exchange):
    location = locate("csv", tmp_path / "out")
    save(location)
    real = publish._exchange

    def late(one, other):
        put(tmp_path / "out", "late.txt")
        return real(one, other) if exchange else False

    monkeypatch.setattr(publish, "_exchange", late)
    save(location, run="run-2")
    found = contents(tmp_path)
    assert found.pop("out/late.txt") == b"mine: late.txt"
    [written] = found
    assert "000000000002-5-" in written


def test_append_carries_over_own_files_only(save, locate, run_id, tmp_path):
    save(locate("csv", tmp_path / "out"))
    put(tmp_path / "out", "notes.txt")
    (tmp_path / "new").mkdir()
    link_into(tmp_path / "out", tmp_path / "new", run_id("run-2"))
    [own] = (tmp_path / "new").iterdir()
    assert own.name.startswith(run_id("run-1"))
    assert "cannot be added" in refusal(save, locate("json", tmp_path / "new"), mode="append", run="run-2").message


def test_a_format_may_follow_another(save, rows, locate, table, tmp_path):
    save(locate("csv", tmp_path / "out"))
    save(locate("parquet", tmp_path / "out"), run="run-2")
    assert sorted(rows(locate("parquet", tmp_path / "out"), table(id="integer"))) == [(0,), (1,)]


def test_one_file_replaces_one_file_and_nothing_else(save, locate, tmp_path):
    (tmp_path / "report.csv").write_text("by hand")
    save(locate("csv", tmp_path / "report.csv"))
    assert (tmp_path / "report.csv").read_text() == "id\n0\n1\n"

    put(tmp_path / "folder.csv", "part-00000.csv")
    assert (
        "is a folder, and the output would be a file" in refusal(save, locate("csv", tmp_path / "folder.csv")).message
    )
    (tmp_path / "book").write_text("mine")
    assert "is a file, and the output would be a folder" in refusal(save, locate("csv", tmp_path / "book")).message
    assert "is a file" in refusal(save, locate("delta", tmp_path / "book")).message
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is a special file" in refusal(save, locate("csv", tmp_path / "pipe.csv")).message
    assert (tmp_path / "pipe.csv").is_fifo() and (tmp_path / "book").read_text() == "mine"


@pytest.mark.parametrize("format", ["csv", "delta"])
def test_a_link_made_after_the_plan_is_not_followed(save, locate, tmp_path, format):
    put(tmp_path / "elsewhere", "mine.txt")
    (tmp_path / "out").symlink_to("elsewhere")
    for target in ("out", "out/deeper"):
        assert "through a link" in refusal(save, locate(format, tmp_path / target)).message
    assert list(contents(tmp_path / "elsewhere")) == ["mine.txt"]


def test_plain_files_do_not_replace_a_delta_table_nor_the_reverse(save, rows, locate, table, tmp_path):
    save(locate("delta", tmp_path / "t"))
    assert "'_delta_log/'" in refusal(save, locate("parquet", tmp_path / "t"), run="run-2").message
    assert sorted(rows(locate("delta", tmp_path / "t"), table(id="integer"))) == [(0,), (1,)]
    save(locate("parquet", tmp_path / "p"))
    assert "did not write" in refusal(save, locate("delta", tmp_path / "p"), run="run-2").message


def test_a_delta_table_may_have_neighbours_that_stay(save, locate, tmp_path):
    write_deltalake(tmp_path / "t", pa.table({"id": [7]}))
    put(tmp_path / "t", "README.md", "notes/a.txt")
    before = contents(tmp_path / "t")
    save(locate("delta", tmp_path / "t"))
    assert before.items() <= contents(tmp_path / "t").items(), "a commit removes and changes no file"


def test_files_of_a_killed_first_attempt_do_not_block_a_delta_table(save, locate, run_id, tmp_path):
    put(tmp_path / "t" / f"{run_id('run-1')}-5" / "0123", "part-0.parquet")
    assert save(locate("delta", tmp_path / "t")).version == 0


NEIGHBOURS = [
    ".out.tallybook-notes",
    ".out.tallybook-aside",
    ".out.tallybook-aside/diary.txt",
    ".out.tallybook-lock",
    ".out.tallybook-2026-01-00001/budget.xlsx",
    ".out.tallybook-01a1de71-7cee-7fee-adb1-000000000001-5-0123456789abcdef0123456789abcdef/thesis.docx",
    ".out.tallybook-01a1de71-7cee-7fee-adb1-000000000001-5-0123456789abcdef0123456789abcdef-old/thesis.docx",
]


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
def test_neighbours_that_look_like_ours_are_kept(tmp_path, neighbour):
    put(tmp_path, neighbour)
    (tmp_path / "out").mkdir()
    before = contents(tmp_path)
    with locked(tmp_path / "out"):
        assert sibling(tmp_path / "out", "lock").exists()
    assert contents(tmp_path) == before


def test_a_lock_that_cannot_be_one(tmp_path, save, locate):
    lock = tmp_path / ".out.tallybook-lock"
    lock.symlink_to(tmp_path / "victim")
    assert "could not be written" in refusal(save, locate("csv", tmp_path / "out")).message
    assert not (tmp_path / "victim").exists()
    lock.unlink()
    os.mkfifo(lock)
    assert "special file" in refusal(save, locate("csv", tmp_path / "out")).message
    assert lock.is_fifo()


def test_clearing_follows_no_link(tmp_path):
    put(tmp_path / "precious", "part-00000-x.csv")
    staged = tmp_path / "staged"
    put(staged, "part-00000-x.csv", "_temporary/0/part-00000-x.csv")
    (staged / "part-00001-x.csv").symlink_to(tmp_path / "precious")
    assert [entry.name for entry in clear(staged)] == ["part-00001-x.csv"]
    assert list(contents(tmp_path / "precious")) == ["part-00000-x.csv"]
    (tmp_path / "link").symlink_to("precious")
    assert clear(tmp_path / "link") == []
    assert list(contents(tmp_path / "precious")) == ["part-00000-x.csv"]


def test_a_killed_run_whose_spark_still_works_does_not_block_the_next(tmp_path):
    left = tmp_path / ".out.tallybook-01a1de71-7cee-7fee-adb1-000000000001-5-0123456789abcdef0123456789abcdef"
    put(left, "_temporary/0/part-00000-x.csv")
    deadline = time.monotonic() + 0.5

    def spark_outlives_its_run():
        while time.monotonic() < deadline:
            with suppress(FileNotFoundError):
                attempt = left / "_temporary" / "0"
                for folder in (attempt.parent, attempt):
                    folder.mkdir(exist_ok=True)
                (attempt / "part-00000-x.csv").touch()
                (attempt / "part-00000-x.csv").rename(left / "part-00000-x.csv")
                attempt.rmdir()

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(spark_outlives_its_run)
        with locked(tmp_path / "out"):
            pass
        working.result()
    assert list(tmp_path.iterdir()) == []
