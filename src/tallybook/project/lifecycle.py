"""The rules of project, period and run states: which status can follow which, what can run, and which change of a
project makes it a draft again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from tallybook.errors import StoreError, fail
from tallybook.model.nested_period import NestedPeriod
from tallybook.model.period import PeriodStatus
from tallybook.model.run import RunStatus
from tallybook.model.state import Json, ProjectState, ProjectStatus
from tallybook.model.template import token_names

PROJECT_MOVES: Mapping[ProjectStatus, tuple[ProjectStatus, ...]] = {
    "draft": ("active",),
    "active": ("active", "inactive", "draft", "conflict"),
    "inactive": ("draft",),
    "conflict": ("active", "inactive", "draft", "conflict"),
}
"""Active → active pins the input dataset anew; conflict → conflict lists what broke meanwhile."""

RUN_MOVES: Mapping[RunStatus, tuple[RunStatus, ...]] = {
    "queued": ("running", "failed", "cancelled"),
    "running": ("completed", "failed", "cancelled"),
    "completed": (),
    "failed": ("running",),
    "cancelled": ("running",),
}
"""Failed or cancelled → running is a retry."""

PERIOD_MOVES: Mapping[PeriodStatus, tuple[PeriodStatus, ...]] = {
    "open": ("closed",),
    "closed": ("locked",),
    "locked": (),
}

_Status = TypeVar("_Status", bound=str)


def check_move(
    what: str, moves: Mapping[_Status, tuple[_Status, ...]], old: _Status, new: _Status, hint: str | None = None
) -> None:
    """Raises a StoreError for a change of status that is not allowed, by default with those that are."""
    if new in moves[old]:
        return
    others = [choice for choice in moves[old] if choice != old]
    allowed = f"from {old} it can become: {', '.join(others)}" if others else f"{old} is final"
    message = f"{what} is already {old}" if new == old else f"{what} is {old} and cannot become {new}"
    raise StoreError(message, hint or allowed)


def check_project_runs(state: ProjectState, *, draft: bool = False) -> None:
    """Refuses a run of a project that is inactive or in conflict. A draft runs into the sandbox; one that was active
    before needs `draft`, so that an edit does not turn a run of production into one of the sandbox."""
    project = state.project_id
    if state.status == "draft" and state.active_version is not None and not draft:
        raise fail(
            "ProjectNotRunnable",
            f"project '{project}' has changed since its version {state.active_version} was activated",
            hint=f"activate it with `tallybook activate {project}`, or run it in the sandbox with --draft",
            project=project,
        )
    if state.status == "inactive":
        hint = f"activate it with `tallybook activate {project}`"
        raise fail("ProjectNotRunnable", f"project '{project}' is inactive", hint=hint, project=project)
    if state.status == "conflict":
        broken = "; ".join(str(conflict) for conflict in state.conflicts)
        raise fail(
            "ProjectNotRunnable",
            f"project '{project}' is in conflict with a dataset it uses{': ' if broken else ''}{broken}",
            hint=f"change the project and activate it, or run `tallybook activate {project} --stay-pinned` to stay on "
            "the pinned version of its input dataset",
            project=project,
        )


def check_period_runs(period: str, status: PeriodStatus, reopen_reason: str | None, of: str | None = None) -> None:
    """Refuses a run for a locked period, and for a closed one without a reason. `of` is the period that has the status,
    if it is one around or inside the period."""
    what = f"period {period} is {status}"
    if of not in (None, period):
        what = f"period {period} cannot run, because period {of} is {status}"
    if status == "locked":
        raise fail("PeriodNotOpen", what, hint="a locked period cannot run again")
    if status == "closed" and not (reopen_reason or "").strip():
        raise fail("PeriodNotOpen", what, hint="run it with --reopen-reason TEXT")


def check_open(
    period: str, nested: NestedPeriod | None, changed: Mapping[str, PeriodStatus], reopen_reason: str | None
) -> PeriodStatus:
    """Returns the status that counts for a run of a period. Raises `PeriodNotOpen` if it may not run. `changed` are the
    statuses that were set; without `nested` only that of the period itself counts."""
    status, of = (changed.get(period, "open"), period) if nested is None else nested.status_for_runs(changed)
    check_period_runs(period, status, reopen_reason, of)
    return status


UNPINNED: Mapping[str, Any] = {"input_dataset_version": None, "reviewed_dataset_version": None, "conflicts": ()}
"""The state that a project loses when it stops being active."""


def is_structural_change(old: Json, new: Json) -> bool:
    """True if two versions of a project can compute different numbers: they differ in more than names, descriptions
    and unused selectors."""
    return _structure(old) != _structure(new)


_LABELS = ("name", "description")


def _structure(project: Json) -> Json:
    operations = sorted(project.get("operations", ()), key=lambda operation: operation["seq"])
    used = used_selectors(project)
    kept = {key: value for key, value in project.items() if key not in (*_LABELS, "operations", "selectors")}
    parameters = project.get("parameters") or {}
    return kept | {
        "parameters": {name: _without_labels(parameter) for name, parameter in parameters.items()},
        "operations": [_without_labels(operation) for operation in operations],
        "selectors": {name: text for name, text in (project.get("selectors") or {}).items() if name in used},
    }


def _without_labels(body: Json) -> Json:
    return {key: value for key, value in body.items() if key not in _LABELS}


def used_selectors(project: Json) -> frozenset[str]:
    """The named selectors the operations use, directly or through other selectors."""
    selectors = project.get("selectors") or {}
    used: set[str] = set()
    texts = list(_selector_texts(project.get("operations", ())))
    while texts:
        names = token_names(texts.pop()) - used
        used |= names
        texts += [str(selectors[name]) for name in names if name in selectors]
    return frozenset(used)


def _selector_texts(value: Any) -> Iterator[str]:
    """Every `selector` and `source_selector` below a value; other text may use `{{…}}` for path templates."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in ("selector", "source_selector") and isinstance(inner, str):
                yield inner
            else:
                yield from _selector_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _selector_texts(inner)
