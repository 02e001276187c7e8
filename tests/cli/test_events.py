"""Events as JSON lines and log lines: what a run tells, in order, without secrets, and also if nobody can write."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.documents.kit import schema_of
from tests.kit.workspaces import Books

from tallybook.cli.main import main


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books.at(tmp_path / "books")


def lines(text: str, schema: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        schema_of(schema).validate(line)
    return found


CHECK = """\
- seq: 25
  name: Few rows
  type: check
  arguments: {assert: "amount < 15", on_failure: warn}
"""


def test_a_run_tells_its_events_and_a_failure(
    books: Books, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    books.add_operation(CHECK)
    file = tmp_path / "events.jsonl"
    run = ["run", "close", "-w", str(books.root), "--events", str(file), "--log-format", "json"]
    assert main([*run, "--period", "2026-01"]) == 0
    shown = capsys.readouterr()
    assert "completed" in shown.out, "people read the same as before on standard output"
    told = lines(file.read_text(), "event")
    names = [(event["event"], event.get("operation", {}).get("seq")) for event in told]
    assert names == [
        ("run.started", None),
        ("operation.started", 10),
        ("operation.planned", 10),
        ("operation.started", 20),
        ("operation.planned", 20),
        ("operation.started", 25),
        ("operation.planned", 25),
        ("operation.started", 30),
        ("check.tested", 25),
        ("run.warning", None),
        ("run.warning", None),
        ("output.written", 30),
        ("operation.started", 40),
        ("operation.planned", 40),
        ("operation.started", 50),
        ("output.written", 50),
        ("run.ended", None),
    ]
    by_name = {event["event"]: event for event in told}
    assert by_name["run.started"]["sandbox"] is True
    check = by_name["check.tested"]
    assert (check["passed"], check["tested"], check["failed"], check["on_failure"]) == (False, 2, 1, "warn")
    assert [event["output"]["rows_written"] for event in told if event["event"] == "output.written"] == [2, 5]
    ended = told[-1]
    assert (ended["status"], ended["exit_code"], ended["retry"], ended["problems"]) == ("completed", 0, False, [])
    assert len({event["run_id"] for event in told}) == 1
    logged = lines(shown.err, "log")
    assert [line["event"] for line in logged] == [event["event"] for event in told]
    assert [line["level"] for line in logged if line["level"] != "info"] == ["warning", "warning", "warning"]
    assert logged[-2]["message"].startswith("output 50 wrote 5 rows to ")

    assert main([*run, "--period", "2026-03"]) == 1
    problem = lines(capsys.readouterr().err, "log")[-2]
    both = lines(file.read_text(), "event")
    assert both[: len(told)] == told, "events are appended"
    assert (both[-1]["event"], both[-1]["status"], both[-1]["exit_code"]) == ("run.ended", "failed", 1)
    assert both[-1]["problems"][0]["type"] == problem["problem"]["type"] == "DataNotFound"


def test_a_full_disk_under_the_events_is_a_warning(
    books: Books, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "close", "-p", "2026-02", "-w", str(books.root), "--events", "/dev/full"]) == 0
    assert capsys.readouterr().err == "warning: events are no longer written to '/dev/full': No space left on device\n"


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("-", "--events needs a file: standard output has the results"),
        (".", "--events: '.' cannot be written: Is a directory"),
        ("nowhere/events", "--events: 'nowhere/events' cannot be written: No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    books: Books, file: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(books.root)
    assert main(["run", "close", "-p", "2026-01", "--events", file]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}\n")
    assert not (books.root / ".tallybook").exists()


@pytest.mark.parametrize("where", ["before", "after", "equals", "variable"])
def test_the_log_format_is_valid_everywhere(
    books: Books, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["expr", "1 +", "-w", str(books.root)]
    if where == "variable":
        monkeypatch.setenv("TALLYBOOK_LOG_FORMAT", "json")
    given = {
        "before": ["--log-format", "json", *command],
        "after": [*command, "--log-format", "json"],
        "equals": [*command, "--log-format=json"],
        "variable": command,
    }
    assert main(given[where]) == 1
    [line] = lines(capsys.readouterr().err, "log")
    assert (line["level"], line["event"], line["problem"]["type"]) == ("error", "problem", "ExpressionParseError")
    monkeypatch.delenv("TALLYBOOK_LOG_FORMAT", raising=False)
    assert main(command) == 1
    assert not capsys.readouterr().err.startswith("{"), "the next command is not affected"


@pytest.mark.parametrize("given", [["--log-format", "xml"], ["--log-format"], ["--log-format="]])
def test_another_format_is_wrong_usage(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", *given]) == 2
    assert "hint: --log-format takes text or json" in capsys.readouterr().err


def test_a_value_that_looks_like_the_option_is_a_value(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["expr", "-w", str(books.root), "--", "--log-format"]) == 0
    assert capsys.readouterr().out.startswith("expression  --log - format\n")


def test_text_of_users_cannot_forge_a_log_line(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    forged = 'x"\n{"level": "info"}\n\x1b[31m'
    assert main(["runs", forged, "-w", str(books.root), "--log-format", "json"]) == 1
    [line] = lines(capsys.readouterr().err, "log")
    assert "\\x1b" in line["message"] and os.linesep not in line["message"]
