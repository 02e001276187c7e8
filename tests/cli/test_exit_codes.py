"""Exit codes tell a scheduler whether a retry helps."""

from __future__ import annotations

import errno
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.documents.kit import schema_of
from tests.faults.test_store import locked
from tests.kit.workspaces import Books

from tallybook.cli.main import main
from tallybook.errors import PROBLEM_TYPES, Problem, RunError, Terminated, UsageError, ValidationError, exit_of, fail
from tallybook.exit_codes import (
    BUG,
    BUSY,
    EXIT_CODES,
    FINE,
    INTERRUPTED,
    TERMINATED,
    UNAVAILABLE,
    USAGE,
    WRONG,
    common_exit,
)
from tallybook.model.datasource import FileSource
from tallybook.model.location import Location
from tallybook.storage.failure import could_not_write
from tallybook.store import sqlite


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books.at(tmp_path / "books")


def events(file: Path) -> list[dict[str, Any]]:
    """The lines of a file of events, each checked against its schema."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        schema_of("event").validate(line)
    return lines


def test_the_codes_of_the_specification_mean_what_they_meant() -> None:
    assert [exit.code for exit in EXIT_CODES] == [0, 1, 2, 3, 4, 5, 130, 143]
    assert [exit.name for exit in EXIT_CODES if exit.retry] == ["busy", "unavailable"]
    assert {type.exit for type in PROBLEM_TYPES.values()} == {WRONG, BUSY, UNAVAILABLE}


@pytest.mark.parametrize(
    ("error", "exit"),
    [
        (None, FINE),
        (fail("CheckFailed", "x"), WRONG),
        (fail("DataNotFound", "x"), WRONG),
        (fail("ConcurrentRun", "x"), BUSY),
        (fail("SparkFailed", "x"), UNAVAILABLE),
        (fail("WriteFailed", "x"), WRONG),
        (fail("WriteFailed", "x", cause=BUSY), BUSY),
        (RunError([Problem("SparkFailed", "x"), Problem("CheckFailed", "x")]), WRONG),
        (ValidationError([]), WRONG),
        (UsageError("x"), USAGE),
        (KeyError("x"), BUG),
        (KeyboardInterrupt(), INTERRUPTED),
        (Terminated(), TERMINATED),
    ],
    ids=str,
)
def test_the_exit_code_of_an_error(error: BaseException | None, exit: object) -> None:
    assert exit_of(error) is exit


def test_several_failures_have_the_code_that_they_share() -> None:
    assert common_exit([]) is FINE
    assert common_exit([BUSY, BUSY]) is BUSY
    assert common_exit([BUSY, UNAVAILABLE]) is WRONG


def test_a_full_disk_is_not_the_users_mistake() -> None:
    source = FileSource.model_validate({"id": "files", "type": "csv", "options": {"path_prefix": "data"}})
    location = Location(source, "data/sales.csv")
    assert could_not_write(location, OSError(errno.ENOSPC, "No space left on device")).exit is UNAVAILABLE
    assert could_not_write(location, OSError(errno.EACCES, "Permission denied")).exit is WRONG


def refused(books: Books, code: int, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The event of a run that is refused with this exit code. Its log line and its JSON document say the same."""
    file = books.root.parent / "events.jsonl"
    args = ["run", "close", "--period", "2026-01", "--events", str(file), "--workspace", str(books.root)]
    assert main([*args, "--json", "--log-format", "json"]) == code
    shown = capsys.readouterr()
    schema_of("error").validate(json.loads(shown.out))
    lines = [json.loads(line) for line in shown.err.splitlines()]
    for line in lines:
        schema_of("log").validate(line)
    assert (lines[0]["event"], lines[0]["exit_code"]) == ("run.refused", code)
    event = events(file)[-1]
    assert (event["event"], event["exit_code"], event["retry"]) == ("run.refused", code, code in (4, 5))
    return event


def test_another_run_is_under_way(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    books.open().apply()
    with books.store() as store:
        store.create_run("close", 1, "2026-01", calendar_id="gregorian", as_of=date(2026, 1, 1))
    assert refused(books, 4, capsys)["problems"][0]["type"] == "ConcurrentRun"


def test_the_store_is_locked(books: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 100)
    books.open().apply()
    with locked(books.root / ".tallybook" / "store.sqlite3"):
        assert "is locked by another process" in refused(books, 4, capsys)["error"]["message"]


def test_the_store_cannot_be_reached(
    books: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TALLYBOOK_STORE", "postgresql://someone:sesame@127.0.0.1:9/books")
    event = refused(books, 5, capsys)
    assert "cannot be reached" in event["error"]["message"]
    assert "sesame" not in json.dumps(event)


def test_a_project_that_does_not_exist(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    books.edit("close.yaml", "id: close", "id: other")
    assert refused(books, 1, capsys)["problems"][0]["type"] == "ProjectNotFound"
