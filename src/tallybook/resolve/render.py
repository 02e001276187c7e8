"""Fills in the template of a path or table name for one period. Resolvers and output destinations use it.

Date tokens are the calendar date of the period's first day, also in fiscal calendars, where `{{YYYY}}` is not the
fiscal year; `{{period}}` is the period's own name. A token finer than the period is refused, such as `{{MM}}` for a
quarter: every quarter has a first month, so a wrong `data_level` would read or overwrite the data of one month.

A value becomes one name in a path. A period called `../x` or a table called `a/b` would lead elsewhere, so a value that
is not a plain name is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from unicodedata import category

from tallybook.errors import Problem, RunError, did_you_mean
from tallybook.model.period import Period
from tallybook.model.template import Token, fill, tokens, variables
from tallybook.source import Place, SourceText

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
"""The most days of a period that a token can name: 14 weeks, 5 weeks, and a week named after its first day."""


def render(template: str, period: Period | None, table_name: str, dataset_id: str) -> str:
    """Returns the template filled in; `period` is None if all periods share one location."""
    names = {"table_name": table_name, "dataset_id": dataset_id}
    problems = check_template(template) or check_fit(template, period) or _check_names(template, names)
    if problems:
        raise RunError(problems)
    from_period = {name: value(period) for name, value in _FROM_PERIOD.items()} if period else {}
    return fill(template, {**from_period, **names})


def symbolic(template: str, table_name: str, dataset_id: str) -> str:
    """Returns the template with the period left open: templates that give the same text in every period are equal."""
    from_period = {name: f"{{{{{name}}}}}" for name in _FROM_PERIOD}
    names = {"identifier": from_period["period"], "table_name": table_name, "dataset_id": dataset_id}
    return fill(template, from_period | names)


def check_template(template: SourceText | str) -> list[Problem]:
    """Returns the problems that a template has in every period, with their places if the template is a SourceText."""
    text = template if isinstance(template, str) else template.text
    problems = []
    for token in tokens(text):
        if token.name is None:
            message, hint = f"unmatched '{token.text}' in '{text}'", "write a token as in {{YYYY}}"
        elif token.name not in TOKENS:
            message, hint = f"'{token.text}' in '{text}' is not a token", did_you_mean(token.name, TOKENS) or ""
        else:
            continue
        problems.append(Problem("UnknownToken", message, hint, _place(template, token)))
    return [*problems, *_check_variables(template)]


def _check_variables(template: SourceText | str) -> list[Problem]:
    text = template if isinstance(template, str) else template.text
    message = "is not replaced: variables of the environment are not read here"
    hint = "write the value itself, or a token such as {{period}}"
    return [
        Problem("UnknownToken", f"'{variable.text}' {message}", hint, _place(template, variable))
        for variable in variables(text)
    ]


def check_no_tokens(text: SourceText | str, hint: str) -> list[Problem]:
    """Returns a problem for each `{{token}}` and `${variable}` of a path that is not a template: nothing would replace
    them, and a folder would get their name."""
    plain = text if isinstance(text, str) else text.text
    return [
        Problem("UnknownToken", f"'{token.text}' is not replaced here", hint, _place(text, token))
        for token in (*tokens(plain), *variables(plain))
    ]


def _place(template: SourceText | str, token: Token) -> Place | None:
    return None if isinstance(template, str) else template.at(token.start, token.end)


def check_fit(template: SourceText | str, period: Period | None) -> list[Problem]:
    """Returns a problem for each token that has no value for a period like this one."""
    text = template if isinstance(template, str) else template.text
    used = {token.name: token for token in tokens(text) if token.name in TOKENS}
    if period is None:
        return [
            Problem(
                "UnknownToken",
                f"'{token.text}' in '{text}' has no value: with `data_level: any` all periods share one location",
                "name the level of period that has its own location, for example `data_level: month`",
                _place(template, token),
            )
            for name, token in used.items()
            if name in _FROM_PERIOD
        ]
    too_fine = [
        Problem(
            "UnknownToken",
            f"'{token.text}' in '{text}' is finer than a period of level '{period.level}', such as "
            f"'{period.identifier}'",
            "use {{period}}, or a finer level",
            _place(template, token),
        )
        for name, token in used.items()
        if period.days > _LONGEST.get(str(name), period.days)
    ]
    return too_fine + _check_names(template, dict.fromkeys(("period", "identifier"), period.identifier))


def _check_names(template: SourceText | str, values: Mapping[str, str]) -> list[Problem]:
    """Returns a problem for each token whose value is not exactly one name in a path."""
    text = template if isinstance(template, str) else template.text
    used = {token.name: token for token in tokens(text)}
    return [
        Problem(
            "InvalidArguments",
            f"'{used[name].text}' in '{text}' would be '{value}', which cannot be part of a path",
            "a value must be a plain name, without '/' and not '..'; use other tokens, such as {{YYYY}}/{{MM}}",
            _place(template, used[name]),
        )
        for name, value in values.items()
        if name in used and not _is_name(value)
    ]


def _is_name(value: str) -> bool:
    """True if a value is one segment of a path: it has no separator and does not lead upwards."""
    return bool(value.strip(". ")) and not any(letter in "/\\" or category(letter) == "Cc" for letter in value)


def _quarter(period: Period) -> int:
    return (period.start_date.month - 1) // 3 + 1
