"""`--record` adds what came out, and touches nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scenarios.kit import rows, workspace

from tallybook.engine.local import LocalEngine
from tallybook.project.check import check
from tallybook.project.load import load_definitions
from tallybook.scenarios.check import read_cases
from tallybook.scenarios.record import record
from tallybook.scenarios.suite import judge_all

TWO = (
    "# the first\n"
    + rows('id: "007", amount: 10, paid: true', "id: 'a: b # c', amount: 0.5", expect="")
    + "\n# a comment between\n---\n# the second\n"
    + rows("id: B, sold_at: 2026-01-05T08:00:00Z, day: 2026-01-05", expect="").replace("One", "Two")
)
FIRST = """  expect:
    rows:
      - {id: "007", amount: 10, net: 8}
      - {id: "a: b # c", amount: 0.5, net: null}
"""
SECOND = """  expect:
    rows:
      - {id: B}
"""


def recorded(folder: Path, engine: LocalEngine) -> str:
    outcomes = list(judge_all(read_cases(check(load_definitions(folder))), engine))
    assert record(folder, outcomes) == []
    return (folder / "scenarios/one.yaml").read_bytes().decode()


def test_what_is_recorded_holds_and_the_rest_stays(tmp_path: Path, engine: LocalEngine) -> None:
    text = recorded(workspace(tmp_path, TWO), engine)
    assert text.replace(FIRST, "").replace(SECOND, "") == TWO
    again = list(judge_all(read_cases(check(load_definitions(tmp_path))), engine))
    assert [outcome.status for outcome in again] == ["passed", "passed"]


@pytest.mark.parametrize("points", [range(0x500), range(0x1FF0, 0x2070), [0x3000, 0xFEFF, 0xFFFF, 0x1F600, 0x10FFFF]])
def test_text_reads_back_whatever_characters_it_has(tmp_path: Path, engine: LocalEngine, points: list[int]) -> None:
    """One row for all of them: each stands between letters, where a line could be folded."""
    odd = "".join(f"a\\U{point:08x}z" for point in points)
    given = rows(f'id: "{odd}", amount: 1', 'id: "é\\u007f"', expect="")
    text = recorded(workspace(tmp_path, given), engine)
    assert '{id: "é\\U0000007f", amount: null' in text
    (again,) = judge_all(read_cases(check(load_definitions(tmp_path))), engine)
    assert again.status == "passed"


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_are_the_files_own(tmp_path: Path, engine: LocalEngine, end: str, last: bool) -> None:
    given = rows("id: A, amount: 1", expect="").replace("\n", end)
    folder = workspace(tmp_path)
    (folder / "scenarios/one.yaml").write_bytes((given if last else given.removesuffix(end)).encode())
    added = end.join(["  expect:", "    rows:", "      - {id: A, amount: 1}"])
    assert recorded(folder, engine) == given + added + (end if last else "")


def test_a_block_of_text_at_the_end_stays_whole(tmp_path: Path, engine: LocalEngine) -> None:
    given = (
        "scenario:\n  project: close\n  period: 2026-01\n  data: {sales: {sales: []}}\n  name: >-\n    Two\n    lines\n"
    )
    assert recorded(workspace(tmp_path, given), engine) == given + "  expect:\n    rows: []\n"


def test_a_scenario_in_braces_takes_nothing(tmp_path: Path, engine: LocalEngine) -> None:
    given = "scenario: {name: One, project: close, period: 2026-01, data: {sales: {sales: []}}}\n"
    folder = workspace(tmp_path, given)
    outcomes = list(judge_all(read_cases(check(load_definitions(folder))), engine))
    assert [problem.type for problem in record(folder, outcomes)] == ["InvalidArguments"]
    assert (folder / "scenarios/one.yaml").read_text() == given
