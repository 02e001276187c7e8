"""What a user, a program and a build server read about a scenario that does not hold."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from tests.scenarios.kit import cases, rows

from tallybook.documents.base import as_json
from tallybook.documents.scenarios import TestReport
from tallybook.engine.local import LocalEngine
from tallybook.project.check import check
from tallybook.project.load import load_definitions
from tallybook.scenarios.check import read_cases
from tallybook.scenarios.report import failure_text, junit
from tallybook.scenarios.suite import Outcome, judge

ORDERS = Path(__file__).parents[2] / "examples" / "orders"
Golden = Callable[[str, str], None]


def outcome_of(folder: Path, engine: LocalEngine, expect: str, *lines: str) -> Outcome:
    (case,) = cases(folder, rows(*lines, expect=f"  expect:\n{expect}"))
    return judge(case, engine)


def test_a_broken_rule_is_told_with_the_row_the_cell_and_the_operation(
    tmp_path: Path, engine: LocalEngine, golden: Golden
) -> None:
    workspace = tmp_path / "orders"
    shutil.copytree(ORDERS, workspace)
    project = workspace / "projects" / "order-close.yaml"
    text = project.read_text(encoding="utf-8")
    assert text.count("0.9") == 1
    project.write_text(text.replace("0.9", "0.8"), encoding="utf-8")
    case = read_cases(check(load_definitions(workspace)))[0]
    outcome = judge(case, engine)
    assert outcome.status == "failed"
    golden("scenarios/broken-rule.txt", failure_text(outcome) + "\n")


def test_rows_that_are_missing_or_that_nobody_expects(tmp_path: Path, engine: LocalEngine, golden: Golden) -> None:
    outcome = outcome_of(
        tmp_path,
        engine,
        "    rows:\n      - {id: A, amount: 1}\n      - {id: B, amount: 2}\n      - {id: C, amount: 3}\n"
        "    columns: [id, net, amount]\n    row_count: 3\n    working: {rows: []}\n",
        "id: A, amount: 1",
        "id: X, amount: 9",
    )
    golden("scenarios/missing-rows.txt", failure_text(outcome) + "\n")


def test_a_wide_row_shows_what_differs(tmp_path: Path, engine: LocalEngine, golden: Golden) -> None:
    long = "a title that goes on and on so that not every column has room on the screen"
    outcome = outcome_of(
        tmp_path,
        engine,
        "    working:\n      match: subset\n      rows:\n"
        f"        - {{id: {long}, _labels: {long}, _source_table: sales, _deleted: true}}\n",
        f"id: {long}, _labels: {long}",
    )
    golden("scenarios/wide-row.txt", failure_text(outcome) + "\n")


def test_the_json_form(tmp_path: Path, engine: LocalEngine) -> None:
    failed = outcome_of(tmp_path, engine, "    rows: [{id: A, net: 9.5}]\n", "id: A, amount: 10, paid: true")
    told = as_json(TestReport.of([failed]))
    assert (told["passed"], told["failed"], told["errors"]) == (0, 1, 0)
    (scenario,) = told["scenarios"]
    assert (scenario["name"], scenario["file"], scenario["status"]) == ("One", "scenarios/one.yaml", "failed")
    (difference,) = scenario["differences"]
    assert difference["rows"] == [
        {
            "line": 10,
            "expected": {"id": "A", "net": "9.5"},
            "actual": {"id": "A", "amount": 10, "net": 8, "_operation_seq": 0},
            "cells": [{"column": "net", "expected": "9.5", "actual": 8, "seq": 10, "operation": "Take tax off"}],
        }
    ]


def test_the_junit_form(tmp_path: Path, engine: LocalEngine) -> None:
    failed = outcome_of(tmp_path, engine, "    row_count: 7\n", "id: A")
    passed = outcome_of(tmp_path, engine, "    row_count: 1\n", "id: A")
    suite = ElementTree.fromstring(junit([failed, passed], "sales"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    failure = suite[0].find("failure")
    assert failure is not None
    assert failure.get("message") == "output 30 'Write' has 1 row, but the scenario expects 7"
    assert suite[1].find("failure") is None
