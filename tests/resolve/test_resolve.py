"""From table and period to locations, and what a rule is told before any run."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from tallybook.errors import RunError
from tallybook.model.datasource import DatabaseSource, DataSource, FileSource
from tallybook.model.location import Location
from tallybook.model.period import GREGORIAN
from tallybook.model.resolver import Resolver, Rule
from tallybook.resolve.check import check_rule
from tallybook.resolve.match import FACT_TYPES, facts
from tallybook.resolve.pick import pick_resolver
from tallybook.resolve.resolve import resolve

ROOT = Path("/ws")
SOURCES: dict[str, DataSource] = {
    "lake": FileSource.model_validate({"id": "lake", "type": "parquet", "options": {"path_prefix": "data"}}),
    "old": FileSource.model_validate(
        {"id": "old", "type": "csv", "status": "disabled", "options": {"path_prefix": "old"}}
    ),
    "db": DatabaseSource.model_validate(
        {"id": "db", "type": "database", "options": {"url": "postgresql://h/d", "schema": "fin"}}
    ),
}
NOW = datetime(2026, 2, 1, tzinfo=UTC)
NEVER, UNKNOWN = "1 > 2", "NULL = 1"


def path_rule(path: str = "{{table_name}}/{{period}}", **changes: object) -> dict[str, object]:
    strategy = {"type": "path", "datasource_id": "lake", "path": path}
    return {"name": "files", "data_level": "month", "strategy": strategy, **changes}


def table_rule(table: str, schema: str | None = None, **changes: object) -> dict[str, object]:
    strategy = {"type": "table", "datasource_id": "db", "table": table, "schema": schema}
    return {"name": "tables", "strategy": strategy, **changes}


def resolver(*rules: dict[str, object], **changes: object) -> Resolver:
    return Resolver.model_validate({"id": "r", "rules": rules or (path_rule(),), **changes})


def located(period: str, *rules: dict[str, object]) -> tuple[Location, ...]:
    return resolve(
        "orders",
        "sales",
        GREGORIAN.period(period),
        calendar=GREGORIAN,
        resolver=resolver(*rules),
        datasources=SOURCES,
        timestamp=NOW,
        root=ROOT,
    )


def brief(period: str, *rules: dict[str, object]) -> list[tuple[str, str | None]]:
    return [(location.target, location.period) for location in located(period, *rules)]


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


def test_any_level_is_one_place_for_all_periods() -> None:
    assert brief("2026-Q1", path_rule("{{dataset_id}}", data_level="any")) == [("/ws/data/sales", None)]


def test_tables_are_rendered_and_qualified() -> None:
    assert brief("2026-01", table_rule("{{table_name}}_{{YYYY}}{{MM}}", data_level="month")) == [
        ("fin.orders_202601", "2026-01")
    ]
    assert brief("2026-01", table_rule("orders", "s_{{dataset_id}}")) == [("s_sales.orders", None)]


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


def test_a_condition_reads_the_facts_and_the_time_of_the_run() -> None:
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


def test_facts_are_typed() -> None:
    known = facts(GREGORIAN.period("2026-01"), "orders", "sales")
    assert known.keys() == FACT_TYPES.keys()
    kinds = {str: "string", date: "date"}
    assert {name: kinds[type(value)] for name, value in known.items()} == {n: str(t) for n, t in FACT_TYPES.items()}


@pytest.mark.parametrize("path", ["orders", "{{YYYY}}/orders"])
def test_two_periods_never_read_one_place_twice(path: str) -> None:
    assert len(located("2026-01", path_rule(path))) == 1
    with pytest.raises(RunError, match=r"gives '2026-01' and '2026-02' the same place, /ws/data/\S+: its rows"):
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


@pytest.mark.parametrize(
    ("rule", "found"),
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
def test_a_rule_is_checked_without_a_run(rule: dict[str, object], found: list[tuple[str, str]]) -> None:
    problems = check_rule(Rule.model_validate(rule), GREGORIAN, SOURCES)
    assert [(problem.type, problem.path) for problem in problems] == found


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
