"""The checker: runs an ordered tuple of checks and returns every problem of a workspace, in file order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from tallybook.errors import Problem, did_you_mean
from tallybook.model.period import GREGORIAN
from tallybook.project.bind import BoundProject
from tallybook.project.check_datasets import check_datasets, check_lookups
from tallybook.project.check_locations import check_datasources, check_resolvers
from tallybook.project.check_projects import check_projects
from tallybook.project.check_result import CheckResult
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.load import Definitions
from tallybook.project.unread import because


def check(
    definitions: Definitions,
    datasets: DatasetVersions | None = None,
    bound: Mapping[str, BoundProject] = MappingProxyType({}),
) -> CheckResult:
    """Runs every check. Adds `datasets` to those of the files, and does not bind the projects in `bound` again."""
    versions = replace(datasets or DatasetVersions(), unreadable=definitions.unreadable)
    versions = versions.with_datasets(*(entry.entity for entry in definitions.datasets.values()))
    result = CheckResult(definitions, versions, bound, definitions.problems)
    for one in CHECKS:
        result = one(result)
    return replace(result, problems=tuple(sorted(_once(result.problems), key=file_order)))


def _once(problems: Iterable[Problem]) -> list[Problem]:
    """Removes duplicates: a mistake in a selector that many operations use is one problem."""
    kept: dict[tuple[object, ...], Problem] = {}
    for problem in problems:
        same = (problem.type, problem.message, problem.place) if problem.place else (id(problem),)
        first = kept.setdefault(same, problem)
        if first.code is None and problem.code is not None:
            kept[same] = problem
    return list(kept.values())


def file_order(problem: Problem) -> tuple[str, int, int]:
    """Returns the sort key of a problem: its position."""
    place = problem.place
    return (place.file, place.line, place.column) if place else ("", 0, 0)


def check_settings(checked: CheckResult) -> Iterator[Problem]:
    """The default calendar exists."""
    settings, part = checked.definitions.settings, checked.definitions.settings_part
    if settings is None or part is None or checked.calendar is not None:
        return
    if not checked.knows("calendar", str(settings.calendar), checked.definitions.calendars):
        calendars = [*checked.definitions.calendars, GREGORIAN.id]
        message = f"there is no calendar '{settings.calendar}'"
        yield part.problem(("calendar",), "CalendarNotFound", message, did_you_mean(str(settings.calendar), calendars))


def missing_calendar(definitions: Definitions) -> list[Problem]:
    """Returns why the workspace has no calendar: a file that may define it, else that it does not exist."""
    id = str(definitions.settings.calendar) if definitions.settings else GREGORIAN.id
    maybe = [one for one in definitions.unread if one.may_define("calendar", id)]
    reason = f"calendar '{id}', the one of the workspace, may be defined here"
    broken = [because(problem, reason) for one in maybe for problem in one.problems]
    return broken or [*check_settings(CheckResult(definitions, DatasetVersions()))]


def _reporting(check: Callable[[CheckResult], Iterator[Problem]]) -> Callable[[CheckResult], CheckResult]:
    """Turns a check that yields problems into one that adds them to the result."""
    return lambda result: replace(result, problems=(*result.problems, *check(result)))


CHECKS: tuple[Callable[[CheckResult], CheckResult], ...] = (
    _reporting(check_settings),
    _reporting(check_datasources),
    _reporting(check_datasets),
    _reporting(check_resolvers),
    check_projects,
    _reporting(check_lookups),
)
"""In this order; each takes the result of the checks before it."""
