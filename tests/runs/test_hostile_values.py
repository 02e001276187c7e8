"""Hostile values and names in every command that shows what a run does, and in reports of scenarios."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.kit.workspaces import Books

from tallybook.cli.main import main
from tallybook.text import printable

HOSTILE = "\x1b]0;pwned\x07\b\x9b31m\u202etxt\u2028y [red]漢[/red]"
IN_YAML = json.dumps(HOSTILE + "\nforged")
SCENARIO = f"""\
scenario:
  name: {IN_YAML}
  project: close
  period: 2026-01
  data:
    sales: {{sales: [{{id: {IN_YAML}, region: {IN_YAML}, amount: 1}}]}}
    tiers: {{tiers: []}}
  expect:
    outputs: {{30: {{rows: [{{id: x, tier: {IN_YAML}}}]}}}}
"""


@pytest.fixture
def hostile(books: Books) -> Books:
    for name in ("Net", "Drop", "Ledger"):
        books.edit("close.yaml", f"name: {name}", f"name: {IN_YAML}")
    books.edit("places.yaml", "name: month", f"name: {IN_YAML}")
    books.edit("sales.yaml", "name: Sales", f"name: {IN_YAML}")
    data = books.root / "data" / "sales" / "2026-01.csv"
    data.write_text(f"id,region,amount\n{HOSTILE},EMEA,10\nb,APAC,20\n", encoding="utf-8")
    return books


@pytest.mark.usefixtures("spark")
def test_what_a_run_shows_commands_no_terminal(hostile: Books, capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*command: str, code: int = 0) -> str:
        assert main([*command, "--workspace", str(hostile.root)]) == code
        said = capsys.readouterr()
        assert all(line.isprintable() for line in (said.out + said.err).split("\n")), ascii(said)
        assert "\nforged" not in said.out + said.err
        return said.out

    assert printable(HOSTILE) in shown("plan", "close", "--period", "2026-01")
    ran = shown("run", "close", "--period", "2026-01", "--show", "5")
    cells = [line for line in ran.split("\n") if line.startswith(f'  "{printable(HOSTILE)}"')]
    assert len(cells) == 2 and all("  9.00" in line for line in cells)
    run = ran.partition("\n  run ")[2].split()[0]
    assert printable(HOSTILE) in shown("runs", run)
    shown("runs")
    (hostile.root / "data" / "sales" / "2026-01.csv").write_text(f"id,region,amount\n{HOSTILE}2,EMEA,10\n")
    assert f"  - id={printable(HOSTILE)}, " in shown("replay", run, code=1)
    shown("apply")
    (hostile.root / "data" / "sales" / "2026-01.csv").write_text(f"id,region,amount\na,EMEA,{HOSTILE}\n")
    assert main(["run", "close", "--period", "2026-01", "--workspace", str(hostile.root)]) == 1
    said = capsys.readouterr().err
    assert "DataLoadError" in said and printable(HOSTILE) in said
    assert all(line.isprintable() for line in said.split("\n")), ascii(said)


@pytest.mark.usefixtures("spark")
def test_a_report_of_scenarios_is_sound_xml(hostile: Books, capsys: pytest.CaptureFixture[str]) -> None:
    (hostile.root / "scenario.yaml").write_text(SCENARIO)
    report = hostile.root / "junit.xml"
    assert main(["test", "--junit", str(report), "--workspace", str(hostile.root)]) == 1
    said = capsys.readouterr().out
    assert all(line.isprintable() for line in said.split("\n")), ascii(said)
    suite = ElementTree.parse(report).getroot()
    assert suite[0].get("name") == printable(HOSTILE + "\nforged")
    assert printable(HOSTILE) in (suite[0][0].text or "")


def test_progress_stays_on_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tallybook.cli.screen import clear_progress, say_progress

    say_progress(f"{HOSTILE * 100}\n")
    clear_progress()
    line, rest = capsys.readouterr().err.removeprefix("\r\x1b[2K").split("\r\x1b[2K")
    assert line.isprintable() and len(line) < 81 and rest == ""
