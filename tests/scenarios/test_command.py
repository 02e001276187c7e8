"""`tallybook test` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from pyspark.sql import SparkSession
from tests.scenarios.kit import rows, workspace

from tallybook.cli.main import main

GOOD = rows("id: A, amount: 10, paid: true", expect="  expect: {rows: [{id: A, net: 8}]}\n").replace("One", "Good")
BAD = rows("id: A, amount: 10, paid: true", expect="  expect: {rows: [{id: A, net: 9}]}\n").replace("One", "Bad")
OPEN = rows("id: A, amount: 10, paid: true", expect="").replace("One", "Open")
WRONG = rows("id: A, amuont: 10").replace("One", "Wrong")

pytestmark = pytest.mark.usefixtures("spark")


def test_all_that_hold_is_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "-w", str(workspace(tmp_path, GOOD))]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "passed  scenarios/one.yaml:1  Good"
    assert said[-1].startswith("1 scenario: 1 passed, in ")


def test_one_that_fails_is_the_users_to_mend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "-w", str(workspace(tmp_path, f"{GOOD}---\n{BAD}---\n{WRONG}"))]) == 1
    said = capsys.readouterr().out
    assert "net is 8, not 9; last set by operation 10 'Take tax off' (project.yaml:" in said
    assert "did you mean 'amount'?" in said
    assert "3 scenarios: 1 passed, 1 failed, 1 with errors, in " in said


def test_json_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--json", "-w", str(workspace(tmp_path, f"{GOOD}---\n{BAD}---\n{WRONG}"))]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [scenario["status"] for scenario in told["scenarios"]] == ["passed", "failed", "error"]
    assert (told["passed"], told["failed"], told["errors"]) == (1, 1, 1)
    assert told["scenarios"][2]["problem"]["type"] == "ColumnNotFound"


def test_a_text_or_a_path_chooses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = workspace(tmp_path, f"{GOOD}---\n{BAD}", **{"scenarios/more/two.yaml": GOOD.replace("Good", "Deep")})
    assert main(["test", "-k", "GOOD", "-w", str(folder)]) == 0
    assert main(["test", str(folder / "scenarios" / "more"), "-w", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "Bad" not in said and "Deep" in said
    assert main(["test", "-k", "nothing", "-w", str(folder)]) == 2
    assert main(["test", str(folder / "nowhere"), "-w", str(folder)]) == 2
    assert main(["test", str(folder / "sales.yaml"), "-w", str(folder)]) == 2


@pytest.mark.parametrize("path", ["../scenarios/one.yaml", "../scenarios", "..", "../../elsewhere/one.yaml"])
def test_a_path_is_taken_from_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    folder = workspace(tmp_path / "w", GOOD, **{"projects/x.csv": "a"})
    (tmp_path / "elsewhere").symlink_to(folder / "scenarios")
    monkeypatch.chdir(folder / "projects")
    assert main(["test", path]) == 0
    assert main(["test", path, "-w", ".."]) == 0
    assert main(["test", ".", "-w", "../../w/projects/.."]) == 2


def test_a_file_that_cannot_be_read_might_hold_scenarios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = workspace(tmp_path, GOOD, **{"scenarios/two.yaml": "scenario: {name: [}\n"})
    assert main(["test", "-w", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "scenarios/two.yaml:1  a file that cannot be read" in out and "1 passed, 1 with errors" in out
    assert main(["test", str(folder / "scenarios" / "one.yaml"), "-w", str(folder)]) == 0


def test_a_workspace_without_scenarios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "-w", str(workspace(tmp_path))]) == 0
    assert capsys.readouterr().out.startswith("0 scenarios: none, in ")


def test_a_report_for_the_build_server(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    assert main(["test", "--junit", str(report), "-w", str(workspace(tmp_path / "w", f"{GOOD}---\n{BAD}"))]) == 1
    assert [len(test) for test in ElementTree.parse(report).getroot()] == [0, 1]


def test_a_report_that_cannot_be_written_is_told_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "nowhere" / "report.xml"
    assert main(["test", "--junit", str(report), "-w", str(workspace(tmp_path, GOOD))]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"error: '{report}' cannot be written: No such file or directory\n")


def test_record_then_review_then_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: SparkSession) -> None:
    folder = workspace(tmp_path, f"{OPEN}---\n{GOOD}")
    assert main(["test", "-w", str(folder)]) == 1
    assert "--record" in capsys.readouterr().out
    assert main(["test", "--record", "-w", str(folder)]) == 0
    assert "recorded scenarios/one.yaml  Open: review the expected rows" in capsys.readouterr().out
    assert main(["test", "-w", str(folder)]) == 0
    assert not (folder / ".tallybook").exists()
