"""From a dataset, a table and a period to locations: the resolver, its rule, the parts of the period, the paths."""

from __future__ import annotations

from datetime import date

import pytest
from tests.resolve.kit import SOURCES, brief, located, path_rule, resolver, table_rule

from tallybook.errors import RunError
from tallybook.model.location import Location
from tallybook.model.period import GREGORIAN
from tallybook.resolve.resolve import WHEN_TYPES, pick_resolver, when_values

NEVER, UNKNOWN = "1 > 2", "NULL = 1"
RESOLVERS = {
    "own": resolver(id="own"),
    "override": resolver(id="override"),
    "off": resolver(id="off", status="disabled", is_default=True),
    "main": resolver(id="main", is_default=True),
}


@pytest.mark.parametrize(
    ("own", "overrides", "picked"),
    [
        ("own", {"sales": "override"}, "override"),
        (None, {"sales": "override"}, "override"),
        ("own", {"other": "override"}, "own"),
        (None, {}, "main"),
    ],
)
def test_override_then_dataset_then_default(own: str | None, overrides: dict[str, str], picked: str) -> None:
    assert pick_resolver("sales", own, overrides, RESOLVERS).id == picked


@pytest.mark.parametrize(
    ("own", "overrides", "left", "message"),
    [
        ("own", {"sales": "overide"}, "own override main", "no resolver 'overide', named in `resolver_overrides`"),
        ("own", {"sales": "off"}, "own off main", "resolver 'off', named in `resolver_overrides` .* is disabled"),
        ("owm", {}, "own main", "no resolver 'owm', named in `resolver_id` of dataset 'sales'"),
        ("off", {}, "off main", "resolver 'off', named in `resolver_id` of dataset 'sales', is disabled"),
        (None, {}, "own", "'sales' names no resolver and none is the default"),
        (None, {}, "own off", "'sales' names no resolver and the default one, 'off', is disabled"),
    ],
)
def test_a_named_resolver_is_never_passed_over(
    own: str | None, overrides: dict[str, str], left: str, message: str
) -> None:
    resolvers = {name: RESOLVERS[name] for name in left.split()}
    with pytest.raises(RunError, match=rf"ResolverNotFound\n.*{message}"):
        pick_resolver("sales", own, overrides, resolvers)


def test_two_defaults_are_an_error() -> None:
    resolvers = {**RESOLVERS, "also": resolver(id="also", is_default=True)}
    with pytest.raises(RunError, match="more than one is the default: also, main"):
        pick_resolver("sales", None, {}, resolvers)


def test_the_first_rule_that_is_true_wins() -> None:
    rules = (
        path_rule("n", name="never", when=NEVER),
        path_rule("y", name="years", when="period.level = 'year'", data_level="year"),
        path_rule("m", name="rest"),
        path_rule("z", name="too late"),
    )
    assert [location.rule for location in located("2026", *rules)] == ["years"]
    assert [location.rule for location in located("2026-01", *rules)] == ["rest"]


def test_when_no_rule_fits_each_says_why() -> None:
    with pytest.raises(RunError) as caught:
        located("2026-01", path_rule(name="a", when=NEVER), path_rule(name="b", when=UNKNOWN))
    problem = caught.value.problem
    assert problem.type == "NoRuleMatched"
    assert problem.message.splitlines() == [
        "no rule of resolver 'r' fits table 'orders' of dataset 'sales' in month '2026-01'",
        "    rule 'a': 1 > 2 is false",
        "    rule 'b': NULL = 1 is unknown (NULL)",
    ]


def test_a_condition_reads_its_names_and_the_time_of_the_run() -> None:
    when = "table.name = 'orders' AND dataset.id LIKE 's%' AND period.end_date < TODAY() AND PERIOD() = '2026-01'"
    assert brief("2026-01", path_rule("past", when=when)) == [("/ws/data/past", "2026-01")]


def test_a_condition_without_a_value_names_its_rule() -> None:
    with pytest.raises(RunError) as caught:
        located("2026-01", path_rule(name="a", when="TO_INTEGER(table.name) > 1"))
    problem = caught.value.problem
    assert (problem.type, problem.message) == (
        "EvaluationError",
        "`when` of rule 'a' of resolver 'r': TO_INTEGER(table.name) cannot be computed: 'orders' is not an integer",
    )


def test_values_have_the_types_that_a_condition_is_checked_with() -> None:
    values = when_values(GREGORIAN.period("2026-01"), "orders", "sales")
    assert values.keys() == WHEN_TYPES.keys()
    kinds = {str: "string", date: "date"}
    assert {name: kinds[type(value)] for name, value in values.items()} == {n: str(t) for n, t in WHEN_TYPES.items()}


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
