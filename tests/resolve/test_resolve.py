"""Finds the locations of a table for a period."""

from __future__ import annotations

import pytest
from tests.resolve.kit import SOURCES, brief, located, path_rule, table_rule

from tallybook.errors import RunError
from tallybook.model.location import Location


def test_a_location_says_where_it_comes_from() -> None:
    rule = path_rule(on_missing="empty")
    expected = Location(SOURCES["lake"], "/ws/data/orders/2026-01", "2026-01", "r", "files", "empty")
    assert located("2026-01", rule) == (expected,)


def test_finer_data_is_one_location_for_each_part_of_the_period() -> None:
    months = ["2026-01", "2026-02", "2026-03"]
    assert brief("2026-Q1", path_rule()) == [(f"/ws/data/orders/{month}", month) for month in months]
    days = brief("2024-02", path_rule(data_level="day"))
    assert (days[0][1], days[-1][1], len(days)) == ("2024-02-01", "2024-02-29", 29)


def test_coarser_data_is_the_location_of_the_period_around() -> None:
    assert brief("2026-05", path_rule("{{YYYY}}", data_level="year")) == [("/ws/data/2026", "2026")]
    assert brief("2026-05-07", path_rule("{{YYYY}}{{QQ}}", data_level="quarter")) == [("/ws/data/2026Q2", "2026-Q2")]


def test_any_level_is_one_location_for_all_periods() -> None:
    assert brief("2026-Q1", path_rule("{{dataset_id}}", data_level="any")) == [("/ws/data/sales", None)]


def test_tables_are_rendered_and_qualified() -> None:
    assert brief("2026-01", table_rule("{{table_name}}_{{YYYY}}{{MM}}", data_level="month")) == [
        ("fin.orders_202601", "2026-01")
    ]
    assert brief("2026-01", table_rule("orders", "s_{{dataset_id}}")) == [("s_sales.orders", None)]


@pytest.mark.parametrize("path", ["orders", "{{YYYY}}/orders"])
def test_two_periods_never_read_one_location_twice(path: str) -> None:
    assert len(located("2026-01", path_rule(path))) == 1
    with pytest.raises(RunError, match=r"gives '2026-01' and '2026-02' the same location, /ws/data/\S+: its rows"):
        located("2026-Q1", path_rule(path))


@pytest.mark.parametrize(
    ("rule", "type", "message"),
    [
        (
            path_rule(strategy={"type": "path", "datasource_id": "old", "path": "x"}),
            "DataSourceNotFound",
            "is disabled",
        ),
        (path_rule(strategy={"type": "path", "datasource_id": "db", "path": "x"}), "InvalidArguments", "not paths"),
        (path_rule("../../{{period}}"), "InvalidArguments", "leads outside"),
        (path_rule(data_level="week"), "CalendarNotFound", "no level 'week'"),
        (path_rule("{{DD}}"), "UnknownToken", "finer than a period of level 'month'"),
    ],
)
def test_a_wrong_rule_fails_the_run(rule: dict[str, object], type: str, message: str) -> None:
    with pytest.raises(RunError) as caught:
        located("2026-01", rule)
    assert caught.value.problem.type == type
    assert message in caught.value.problem.message
