"""The checker: an ordered tuple of checks over all definitions. Every problem of a workspace, in file order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tallybook.errors import Problem, did_you_mean
from tallybook.model.period import GREGORIAN
from tallybook.project.catalog import Catalog
from tallybook.project.check_datasets import check_datasets, check_lookups
from tallybook.project.check_datasources import check_datasources
from tallybook.project.check_projects import check_projects
from tallybook.project.check_resolvers import check_resolvers
from tallybook.project.checked import Checked
from tallybook.project.load import Definitions


def check(definitions: Definitions, catalog: Catalog | None = None) -> Checked:
    """Runs every check. `catalog` holds versions the store knows beyond the files."""
    checked = Checked(definitions, catalog or Catalog())
    checked.catalog.unreadable |= definitions.unreadable
    for entry in definitions.datasets.values():
        checked.catalog.add(entry.entity)
    found = [*definitions.problems, *(problem for one in CHECKS for problem in one(checked))]
    checked.problems += sorted(_once(found), key=file_order)
    return checked


def _once(problems: Iterable[Problem]) -> list[Problem]:
    """The same mistake met from several places, such as a selector many operations use, is one problem."""
    kept: dict[tuple[object, ...], Problem] = {}
    for problem in problems:
        same = (problem.type, problem.message, problem.place) if problem.place else (id(problem),)
        known = kept.setdefault(same, problem)
        if known.code is None and problem.code is not None:
            kept[same] = problem
    return list(kept.values())


def file_order(problem: Problem) -> tuple[str, int, int]:
    """Sorts problems as a reader meets them."""
    place = problem.place
    return (place.file, place.line, place.column) if place else ("", 0, 0)


def check_settings(checked: Checked) -> Iterator[Problem]:
    """The default calendar exists."""
    settings, part = checked.definitions.settings, checked.definitions.settings_part
    if settings is None or part is None or settings.calendar in checked.definitions.unreadable:
        return
    if checked.calendar is None:
        calendars = [*checked.definitions.calendars, GREGORIAN.id]
        message = f"there is no calendar '{settings.calendar}'"
        yield part.problem(("calendar",), "CalendarNotFound", message, did_you_mean(str(settings.calendar), calendars))


CHECKS: tuple[Callable[[Checked], Iterator[Problem]], ...] = (
    check_settings,
    check_datasources,
    check_datasets,
    check_resolvers,
    check_projects,
    check_lookups,
)
"""In this order; each sees what the ones before it left in `Checked`."""
