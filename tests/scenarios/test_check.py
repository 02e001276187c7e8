"""What is wrong with a scenario is told with its place, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scenarios.kit import HEAD, rows, workspace

from tallybook.errors import Problem
from tallybook.project.check import check
from tallybook.project.load import load_definitions
from tallybook.scenarios.check import check_scenarios, read_cases

INLINE = """scenario:
  name: One
  project:
    id: own
    name: Own
    input_dataset_id: sales
    operations:
      - {seq: 1, name: Bad, type: update, arguments: {assignments: [{column: x, expression: missing + 1}]}}
  period: 2026-01
  data: {sales: {sales: []}}
"""
BACKWARDS = "{identifier: X, level: month, start_date: 2026-02-01, end_date: 2026-01-01}"
TOO_EARLY = "0001-01-01T00:00:00+14:00"


def problems(folder: Path, scenario: str, **files: str) -> list[Problem]:
    return list(check_scenarios(check(load_definitions(workspace(folder, scenario, **files)))))


def told(problem: Problem) -> tuple[str, str]:
    """The type, and the text the caret stands under."""
    place = problem.place
    assert place is not None and place.file == "scenarios/one.yaml"
    return problem.type, place.text[place.column - 1 :][: place.length]


@pytest.mark.parametrize(
    ("scenario", "type", "at"),
    [
        (rows("id: A") + "  expects: 1\n", "UnknownKey", "expects"),
        (HEAD.replace("project: close", "project: clsoe") + "  data: {}\n", "ProjectNotFound", "clsoe"),
        (HEAD.replace("2026-01", "2026-13") + "  data: {sales: {sales: []}}\n", "PeriodNotFound", "2026-13"),
        (HEAD.replace("2026-01", BACKWARDS) + "  data: {sales: {sales: []}}\n", "InvalidArguments", "{identifier: X"),
        (HEAD + f"  run_timestamp: {TOO_EARLY}\n  data: {{sales: {{sales: []}}}}\n", "InvalidArguments", TOO_EARLY),
        (HEAD.replace("  period: 2026-01\n", "") + "  data: {sales: {sales: []}}\n", "InvalidArguments", "scenario"),
        (HEAD + "  data: {sales: {sales: []}, slaes: {sales: []}}\n", "DatasetNotFound", "slaes"),
        (HEAD + "  data: {sales: {sales: [], orders: []}}\n", "InvalidArguments", "orders"),
        (HEAD + "  data: {sales: {}}\n", "DataNotFound", "sales"),
        (HEAD + "  data: {}\n", "DataNotFound", "data"),
        (HEAD + "  data: {sales: {sales: 7}}\n", "InvalidArguments", "7"),
        (HEAD + "  data: {sales: {sales: {file: x.csv, as: csv}}}\n", "UnknownKey", "as"),
        (HEAD + "  data: {sales: {sales: {file: ../x.csv}}}\n", "InvalidArguments", "../x.csv"),
        (HEAD + "  data: {sales: {sales: {file: /tmp/x.csv}}}\n", "InvalidArguments", "/tmp/x.csv"),
        (HEAD + "  data: {sales: {sales: {file: x.xls}}}\n", "InvalidArguments", "x.xls"),
        (rows("id: A, amuont: 1"), "ColumnNotFound", "amuont"),
        (rows("id: A, amount: much"), "TypeMismatch", "much"),
        (rows('id: A, pieces: "1"'), "TypeMismatch", '"1"'),
        (rows("id: A, amount: 1.005"), "TypeMismatch", "1.005"),
        (rows("id: A, amount: 100000000"), "TypeMismatch", "100000000"),
        (rows("id: A, pieces: 1.5"), "TypeMismatch", "1.5"),
        (rows("id: A, day: 2026-1-5"), "TypeMismatch", "2026-1-5"),
        (rows("id: A, sold_at: noon"), "TypeMismatch", "noon"),
        (rows(f"id: A, sold_at: {TOO_EARLY}"), "TypeMismatch", TOO_EARLY),
        (rows("id: A, paid: yes"), "TypeMismatch", "yes"),
        (rows("id: null"), "TypeMismatch", "null"),
        (rows("id: [A]"), "InvalidArguments", "[A]"),
        (rows("id: A", expect="  expect: {rows: [{nett: 1}]}\n"), "ColumnNotFound", "nett"),
        (rows("id: A", expect="  expect: {rows: [{net: 'x'}]}\n"), "TypeMismatch", "'x'"),
        (rows("id: A", expect="  expect: {rows: [{paid: true}]}\n"), "ColumnNotFound", "paid"),
        (rows("id: A", expect="  expect: {working: {rows: [{gone: 1}]}}\n"), "ColumnNotFound", "gone"),
        (rows("id: A", expect="  expect: {columns: [id, gone]}\n"), "ColumnNotFound", "gone"),
        (rows("id: A", expect="  expect: {outputs: {20: {row_count: 1}}}\n"), "InvalidArguments", "20"),
        (rows("id: A", expect="  expect: {outputs: {last: {row_count: 1}}}\n"), "InvalidArguments", "last"),
        (rows("id: A", expect="  expect: {row_count: 1, error: {type: WriteFailed}}\n"), "InvalidArguments", "{row"),
        (rows("id: A", expect="  expect: {error: {type: Oops}}\n"), "InvalidArguments", "Oops"),
        (HEAD.replace("close", "[close]") + "  data: {}\n", "InvalidArguments", "[close]"),
        (INLINE + "  expect: {row_count: 0}\n", "ColumnNotFound", "missing"),
    ],
)
def test_a_mistake_is_told_at_its_place(tmp_path: Path, scenario: str, type: str, at: str) -> None:
    found = [told(problem) for problem in problems(tmp_path, scenario)]
    assert [each[0] for each in found] == [type]
    assert found[0][1].startswith(at)


COMPARE = """scenario:
  name: One
  project:
    id: own
    name: Own
    input_dataset_id: sales
    operations:
      - {seq: 1, name: Add, type: append, arguments: {source: {dataset_id: returns, period: prior}}}
  period: 2026-01
  datasets:
    - {id: returns, name: R, main_table: {name: returns, temporal_mode: period, columns: [{name: id, type: string}]}}
  data: {sales: {sales: []}, returns: {returns: [{id: A}, {id: B, _period: 2025-12}, {id: C, _period: 2024-01}]}}
  expect: {row_count: 1}
"""


def test_a_row_that_no_source_reads_needs_a_period(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, COMPARE)
    assert problem.message.startswith("the project reads 'returns' for 2025-12, but a row without `_period` belongs")
    assert told(problem)[1].startswith("{id: A}") and problem.hint == "add `_period: 2025-12`"
    assert problems(tmp_path, COMPARE.replace("{id: A}", "{id: A, _period: 2026-01}")) == []


@pytest.mark.parametrize(
    ("expect", "at"),
    [
        ("{}", "{}"),
        ("{match: subset}", "{match"),
        ("{rows: }", "{rows"),
        ("{row_count: null, columns: null}", "{row_count"),
        ("{error: }", "{error"),
        ("{outputs: {}}", "{outputs"),
        ("{outputs: {30: {}}}", "{}"),
        ("{row_count: 0, outputs: {30: {match: exact}}}", "{match"),
        ("{working: }", "{working"),
        ("{row_count: 0, working: {rows: null}}", "{rows"),
        ("", "expect"),
    ],
)
def test_an_expectation_says_something(tmp_path: Path, expect: str, at: str) -> None:
    (problem,) = problems(tmp_path, rows("id: A", expect=f"  expect: {expect}\n"))
    assert "write what is expected" in problem.message
    assert told(problem)[0] == "InvalidArguments"
    assert told(problem)[1].startswith(at)


def test_rows_that_are_always_there_are_no_expectation(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, rows("id: A", expect="  expect: {match: subset, rows: []}\n"))
    assert problem.message == "'expect': `match: subset` needs at least one row; add rows, or remove `match`"


@pytest.mark.parametrize("expect", ["{rows: []}", "{row_count: 0}", "{working: {rows: []}}", "{error: , rows: []}"])
def test_that_nothing_comes_out_is_an_expectation(tmp_path: Path, expect: str) -> None:
    assert problems(tmp_path, rows("id: A", expect=f"  expect: {expect}\n")) == []


def test_a_name_that_is_nearly_right_is_suggested(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, HEAD.replace("close", "clsoe") + "  data: {}\n")
    assert problem.hint == "did you mean 'close'?"


def test_a_column_that_an_output_renames_is_suggested_by_its_new_name(tmp_path: Path) -> None:
    output = """
      - seq: 2
        name: Out
        type: output
        arguments: {destination: {location: {path: out.xlsx}}, columns: [{id: "Order, id"}, {amount: Amount}]}
"""
    own = (
        INLINE.replace("expression: missing + 1", "expression: amount + 1")
        .rstrip("\n")
        .replace("\n  period:", output.rstrip("\n") + "\n  period:")
    )
    found = problems(tmp_path, own + "\n  expect: {rows: [{id: A, other: 1}]}\n")
    assert [problem.hint for problem in found] == ["the output writes it as 'Order, id'", "one of: Amount, 'Order, id'"]


def test_every_mistake_of_a_scenario_is_told(tmp_path: Path) -> None:
    found = problems(tmp_path, rows("id: A, amuont: 1", "id: B, day: soon", expect="  expect: {rows: [{nett: 1}]}\n"))
    assert [problem.type for problem in found] == ["ColumnNotFound", "TypeMismatch", "ColumnNotFound"]
    assert found[0].path == "scenario.data.sales.sales[0].amuont"


def test_what_is_wrong_with_an_own_project_is_no_problem_when_an_error_is_expected(tmp_path: Path) -> None:
    assert problems(tmp_path, INLINE + "  expect: {error: {type: ColumnNotFound}}\n") == []


def test_what_is_wrong_with_a_project_of_the_workspace_is_told_there_only(tmp_path: Path) -> None:
    broken = """
project:
  id: close
  name: Close
  input_dataset_id: sales
  operations:
    - {seq: 1, name: Bad, type: delete, selector: missing = 1}
"""
    assert problems(tmp_path, rows("id: A"), **{"project.yaml": broken}) == []


BROKEN = {
    "a project": {"project.yaml": "project:\n  id: close\n  name: a: b\n"},
    "a project without a key": {"project.yaml": "project: {id: close, name: Close, operations: []}\n"},
    "a dataset": {"sales.yaml": "dataset:\n  id: sales\n  name: Sales\n"},
    "a misspelt kind": {"sales.yaml": "datset:\n  id: sales\n  name: Sales\n"},
    "a dataset of a project": {
        "other.yaml": "project:\n  id: x\n  register_as_dataset: sales\n",
        "sales.yaml": "---\n",
    },
    "the calendar": {"tallybook.yaml": "name: sales\ncalendar: fiscal\n"},
    "a broken calendar": {
        "tallybook.yaml": "name: sales\ncalendar: fiscal\n",
        "calendar.yaml": "calendar:\n  id: fiscal\n  name: a: b\n",
    },
}


@pytest.mark.parametrize("files", BROKEN.values(), ids=BROKEN)
def test_what_is_broken_elsewhere_is_not_a_problem_of_each_scenario(tmp_path: Path, files: dict[str, str]) -> None:
    root = workspace(tmp_path, rows("id: A") + "---\n" + rows("id: B"), **files)
    checked = check(load_definitions(root))
    assert checked.problems and list(check_scenarios(checked)) == []
    assert all(case.problems or case.refused for case in read_cases(checked)), "it cannot run"


def test_a_row_of_a_bitemporal_table_says_when_it_is_valid(tmp_path: Path) -> None:
    scenario = rows("id: A").replace("  data:\n", "  data:\n    rates: {rates: [{code: USD, rate: 1}]}\n")
    (problem,) = problems(tmp_path, scenario)
    assert problem.type == "InvalidArguments"
    assert "_valid_from" in problem.message


def test_a_dataset_of_its_own_may_not_hide_one_of_the_workspace(tmp_path: Path) -> None:
    own = "  datasets: [{id: sales, name: S, main_table: {name: sales, columns: [{name: id, type: string}]}}]\n"
    found = problems(tmp_path, rows("id: A", head=HEAD + own, expect=""))
    assert "DuplicateId" in [problem.type for problem in found]
