"""What a shell offers to complete a word: projects, periods, runs and more of the workspace.

`tallybook --install-completion` makes a shell ask. Nothing here starts Spark or writes. A workspace that cannot be read
has nothing to offer: a shell has no place for its problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, get_args

import typer

from tallybook.errors import TallybookError

if TYPE_CHECKING:
    from tallybook.workspace import Workspace

Offer = tuple[str, str]
"""A word and its explanation."""
_BEFORE, _AFTER = timedelta(days=400), timedelta(days=31)
_RUNS = 50


def _offered(offers: Callable[[Workspace], Iterator[Offer]]) -> Callable[[typer.Context, str], list[Offer]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[Offer]:
        from tallybook.workspace import Workspace

        try:
            found = list(offers(Workspace.open(ctx.params.get("workspace"))))
        except TallybookError:
            return []
        return [offer for offer in found if offer[0].startswith(incomplete)]

    return complete


@_offered
def projects(opened: Workspace) -> Iterator[Offer]:
    """The projects, each with its name."""
    for id, project in opened.definitions.projects.items():
        yield id, project.head.name


@_offered
def periods(opened: Workspace) -> Iterator[Offer]:
    """The periods of about a year up to now, newest first, finest level last. Days are too many."""
    calendar, today = opened.calendar, datetime.now(UTC).date()
    for level in calendar.level_names:
        found = calendar.between(level, today - _BEFORE, today + _AFTER)
        if level != "day":
            yield from ((period.identifier, level) for period in reversed(found))


@_offered
def runs(opened: Workspace) -> Iterator[Offer]:
    """The newest runs, each with its project, period and status."""
    for run in opened.runs(limit=_RUNS).runs:
        yield run.id, f"{run.project_id} {run.period} {run.status}"


@_offered
def unfinished_runs(opened: Workspace) -> Iterator[Offer]:
    """The newest runs that can be continued."""
    for run in opened.runs(statuses=("failed", "cancelled"), limit=_RUNS).runs:
        yield run.id, f"{run.project_id} {run.period} {run.status}"


@_offered
def datasets(opened: Workspace) -> Iterator[Offer]:
    """The datasets of the files and those that runs registered, each with its name or its origin."""
    named = {id: dataset.entity.name for id, dataset in opened.definitions.datasets.items()}
    recorded = {version.definition.id: "recorded" for version in opened.datasets()}
    yield from (recorded | named).items()


@_offered
def datasources(opened: Workspace) -> Iterator[Offer]:
    """The datasources, each with its type."""
    for source in opened.datasources():
        yield source.id, source.type


@_offered
def statuses(_opened: Workspace) -> Iterator[Offer]:
    """The statuses of runs."""
    from tallybook.model.run import RunStatus

    yield from ((status, "") for status in get_args(RunStatus))
