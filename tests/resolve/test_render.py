"""Templates: what each token becomes, and which are refused."""

from __future__ import annotations

import pytest

from tallybook.errors import RunError
from tallybook.model.period import GREGORIAN, Period
from tallybook.resolve.render import TOKENS, check_template, render
from tallybook.source import SourceText

DAY = GREGORIAN.period("2026-05-07")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{YYYY}}/{{YY}}/{{MM}}/{{DD}}", "2026/26/05/07"),
        ("q{{Q}}-{{QQ}}", "q2-Q2"),
        ("{{period}}={{identifier}}", "2026-05-07=2026-05-07"),
        ("{{ table_name }}.{{dataset_id }}", "orders.sales"),
        ("part-{a,b}-$1\\1", "part-{a,b}-$1\\1"),
        ("", ""),
    ],
)
def test_tokens_become_values(template: str, text: str) -> None:
    assert render(template, DAY, "orders", "sales") == text


@pytest.mark.parametrize(
    ("template", "marked"),
    [
        ("{{YYYY}}/{{ period }}", []),
        ("x/{{yyyy}}/{{MON}}", [(3, 8), (12, 7)]),
        ("{{YYYY}}/{{MM", [(10, 2)]),
        ("{{YYYY}}/MM}}", [(12, 2)]),
        ("{{{YYYY}}}", [(1, 2), (8, 2)]),
        ("{{}}", [(1, 4)]),
    ],
)
def test_unknown_tokens_are_marked_where_they_stand(template: str, marked: list[tuple[int, int]]) -> None:
    places = [problem.place for problem in check_template(SourceText(template))]
    assert [(place.column, place.length) for place in places if place] == marked
    assert len(check_template(template)) == len(marked)


def test_an_unknown_token_gets_the_nearest_and_braces_a_partner() -> None:
    unknown, single = check_template("{{tablename}}/{{MM")
    assert (unknown.type, unknown.hint) == ("UnknownToken", "did you mean 'table_name'?")
    assert unknown.message == "'{{tablename}}' in '{{tablename}}/{{MM' is not a token"
    assert single.message == "unmatched '{{' in '{{tablename}}/{{MM'"


FITS = {"day": TOKENS, "month": set(TOKENS) - {"DD"}, "quarter": set(TOKENS) - {"DD", "MM"}}
FITS["year"] = FITS["quarter"] - {"Q", "QQ"}


@pytest.mark.parametrize("level", GREGORIAN.level_names)
@pytest.mark.parametrize("token", TOKENS)
def test_a_token_finer_than_the_period_is_refused(level: str, token: str) -> None:
    period = GREGORIAN.containing(DAY, level)
    if token in FITS[level]:
        assert "{" not in render(f"{{{{{token}}}}}", period, "orders", "sales")
    else:
        with pytest.raises(RunError, match=f"'{{{{{token}}}}}' .* is finer than a period of level '{level}'"):
            render(f"{{{{{token}}}}}", period, "orders", "sales")


def test_a_week_may_be_called_by_its_first_day() -> None:
    week = Period.model_validate(
        {"identifier": "W05", "level": "week", "start_date": "2026-01-26", "end_date": "2026-02-01"}
    )
    assert render("{{YYYY}}{{MM}}{{DD}}", week, "orders", "sales") == "20260126"


def test_one_location_for_all_periods_knows_no_period() -> None:
    assert render("{{dataset_id}}/{{table_name}}", None, "orders", "sales") == "sales/orders"
    with pytest.raises(RunError) as caught:
        render("{{YYYY}}/{{period}}", None, "orders", "sales")
    assert [problem.type for problem in caught.value.problems] == ["UnknownToken", "UnknownToken"]
    assert "`data_level: month`" in (caught.value.problem.hint or "")


@pytest.mark.parametrize("value", ["/abs", "..", ".", "a/b", "../x", "a\\b", "x\0", "", " ", "..."])
@pytest.mark.parametrize("token", ["period", "identifier", "table_name", "dataset_id"])
def test_a_value_is_one_name_of_a_path(value: str, token: str) -> None:
    period = Period.model_construct(identifier=value, level="day", start_date=DAY.start_date, end_date=DAY.end_date)
    template = f".{{{{{token}}}}}/x"
    values = {"table_name": "orders", "dataset_id": "sales"} | {token: value}
    with pytest.raises(RunError, match="cannot be part of a path"):
        render(template, period, values["table_name"], values["dataset_id"])
    assert render("x", period, values["table_name"], values["dataset_id"]) == "x"
