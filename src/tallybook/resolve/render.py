"""Third step: a template of a path or table name, filled for one period. Output destinations use it too.

The date tokens are the calendar date of the period's first day, in fiscal calendars as well: `{{YYYY}}` is then not
the fiscal year; `{{period}}` is the period's own name. A token finer than the period is refused, `{{MM}}` for a
quarter: every quarter has some first month, so a wrong `data_level` would read or overwrite one month's place.
"""

from __future__ import annotations

from collections.abc import Callable

from tallybook.errors import Problem, RunError, did_you_mean
from tallybook.model.period import Period
from tallybook.model.template import fill, token_names, tokens

_FROM_PERIOD: dict[str, Callable[[Period], str]] = {
    "YYYY": lambda period: f"{period.start_date.year:04d}",
    "YY": lambda period: f"{period.start_date.year % 100:02d}",
    "MM": lambda period: f"{period.start_date.month:02d}",
    "DD": lambda period: f"{period.start_date.day:02d}",
    "Q": lambda period: str(_quarter(period)),
    "QQ": lambda period: f"Q{_quarter(period)}",
    "period": lambda period: period.identifier,
    "identifier": lambda period: period.identifier,
}
TOKENS = (*_FROM_PERIOD, "table_name", "dataset_id")

_LONGEST = {"Q": 98, "QQ": 98, "MM": 35, "DD": 7}
"""Days a period may have for a token to name it: 14 weeks, 5 weeks, and a week called by its first day."""


def render(template: str, period: Period | None, table_name: str, dataset_id: str) -> str:
    """The template filled in; `period` is None where one place serves all periods."""
    problems = check_template(template) or check_fit(template, period)
    if problems:
        raise RunError(problems)
    from_period = {name: value(period) for name, value in _FROM_PERIOD.items()} if period else {}
    return fill(template, {**from_period, "table_name": table_name, "dataset_id": dataset_id})


def unknown_tokens(template: str) -> list[tuple[str, int]]:
    """Tokens that do not exist, and braces that do not pair up, each with its offset in the template."""
    return [
        (token.text if token.name is None else token.name, token.start)
        for token in tokens(template)
        if token.name not in TOKENS
    ]


def check_template(template: str) -> list[Problem]:
    """What is wrong with a template whatever the period."""
    problems = []
    for name, _ in unknown_tokens(template):
        if name in ("{{", "}}"):
            message, hint = f"'{name}' in '{template}' has no partner", "a token is written {{YYYY}}"
        else:
            message, hint = f"'{{{{{name}}}}}' in '{template}' is not a token", did_you_mean(name, TOKENS) or ""
        problems.append(Problem("UnknownToken", message, hint=hint))
    return problems


def check_fit(template: str, period: Period | None) -> list[Problem]:
    """The tokens that have no value for such a period."""
    used = [name for name in TOKENS if name in token_names(template)]
    if period is None:
        return [
            Problem(
                "UnknownToken",
                f"'{{{{{name}}}}}' in '{template}' has no value: with `data_level: any` one place serves all periods",
                hint="say which periods have a place of their own, for example `data_level: month`",
            )
            for name in used
            if name in _FROM_PERIOD
        ]
    return [
        Problem(
            "UnknownToken",
            f"'{{{{{name}}}}}' in '{template}' is finer than a period of level '{period.level}', such as "
            f"'{period.identifier}'",
            hint="use {{period}}, or a finer level",
        )
        for name in used
        if period.days > _LONGEST.get(name, period.days)
    ]


def _quarter(period: Period) -> int:
    return (period.start_date.month - 1) // 3 + 1
