"""The checker: an ordered tuple of checks over all definitions. Every problem of a workspace, in file order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tallybook.errors import Problem, did_you_mean
from tallybook.model.period import GREGORIAN
from tallybook.project.catalog import Catalog
from tallybook.project.check_datasets import check_datasets
from tallybook.project.check_projects import check_projects
from tallybook.project.check_resolvers import check_resolvers
from tallybook.project.checked import Checked
from tallybook.project.load import Definitions


def check(definitions: Definitions, catalog: Catalog | None = None) -> Checked:
    """Runs every check. `catalog` holds versions the store knows beyond the files."""
    checked = Checked(definitions, catalog or Catalog())
    for entry in definitions.datasets.values():
        checked.catalog.add(entry.entity)
    checked.problems += definitions.problems
    for one in CHECKS:
        checked.problems += one(checked)
    checked.problems.sort(key=file_order)
    return checked


def file_order(problem: Problem) -> tuple[str, int, int]:
    """Sorts problems as a reader meets them."""
    place = problem.place
    return (place.file, place.line, place.column) if place else ("", 0, 0)


def check_settings(checked: Checked) -> Iterator[Problem]:
    """The default calendar exists."""
    settings, part = checked.definitions.settings, checked.definitions.settings_part
    if settings is not None and part is not None and checked.calendar is None:
        calendars = [*checked.definitions.calendars, GREGORIAN.id]
        message = f"there is no calendar '{settings.calendar}'"
        yield part.problem(("calendar",), "CalendarNotFound", message, did_you_mean(str(settings.calendar), calendars))


CHECKS: tuple[Callable[[Checked], Iterator[Problem]], ...] = (
    check_settings,
    check_datasets,
    check_resolvers,
    check_projects,
)
"""In this order; each sees what the ones before it left in `Checked`."""
