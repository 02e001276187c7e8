"""Checks rules before any run."""

from __future__ import annotations

import pytest
from tests.resolve.kit import SOURCES, path_rule, table_rule

from tallybook.model.period import GREGORIAN
from tallybook.model.resolver import Rule
from tallybook.resolve.check import check_rule


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (path_rule(), []),
        (path_rule("{{YYYY}}/{{MM}}"), []),
        (path_rule(strategy={"type": "path", "datasource_id": "old", "path": "x"}), []),
        (table_rule("t_{{MM}}", "s_{{YYYY}}", data_level="month"), []),
        (path_rule("{{YYYY}}/{{MM}}", data_level="year"), [("UnknownToken", "strategy.path")]),
        (path_rule("{{YYYY}}", data_level="any"), [("UnknownToken", "strategy.path")]),
        (
            path_rule("{{yyy}}", data_level="wek"),
            [("CalendarNotFound", "data_level"), ("UnknownToken", "strategy.path")],
        ),
        (table_rule("t{{", "s_{{X}}"), [("UnknownToken", "strategy.table"), ("UnknownToken", "strategy.schema")]),
        (
            path_rule(strategy={"type": "path", "datasource_id": "lak", "path": "x"}),
            [("DataSourceNotFound", "strategy.datasource_id")],
        ),
        (
            path_rule(strategy={"type": "path", "datasource_id": "db", "path": "x"}),
            [("InvalidArguments", "strategy.type")],
        ),
    ],
)
def test_a_rule_is_checked_without_a_run(rule: dict[str, object], expected: list[tuple[str, str]]) -> None:
    problems = check_rule(Rule.model_validate(rule), GREGORIAN, SOURCES)
    assert [(problem.type, problem.path) for problem in problems] == expected
