"""Chooses the resolver of a dataset and the rule of a resolver."""

from __future__ import annotations

from datetime import date

import pytest
from tests.resolve.kit import brief, located, path_rule, resolver

from tallybook.errors import RunError
from tallybook.model.period import GREGORIAN
from tallybook.resolve.match import WHEN_TYPES, pick_resolver, when_values

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
