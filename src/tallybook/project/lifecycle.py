"""The rules of project, period and run states: which status can follow which, what can run, and which change of a
project makes it a draft again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tallybook.errors import StoreError, fail
from tallybook.model.period import PeriodStatus
from tallybook.model.run import RunStatus
from tallybook.model.state import Conflict, Json, ProjectStatus
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


def check_move(what: str, moves: Mapping[_Status, tuple[_Status, ...]], old: _Status, new: _Status) -> None:
    """Raises a StoreError for a change of status that is not allowed, with those that are."""
    if new in moves[old]:
        return
    others = [choice for choice in moves[old] if choice != old]
    hint = f"from {old} it can become: {', '.join(others)}" if others else f"{old} is final"
    raise StoreError(f"{what} is {old} and cannot become {new}", hint)


def check_project_runs(project: str, status: ProjectStatus, conflicts: Sequence[Conflict] = ()) -> None:
    """Refuses a run of a project that is inactive or in conflict; a draft runs, into the sandbox."""
    if status == "inactive":
        hint = f"activate it with `tallybook activate {project}`"
        raise fail("ProjectNotRunnable", f"project '{project}' is inactive", hint=hint, project=project)
    if status == "conflict":
        broken = "; ".join(str(conflict) for conflict in conflicts)
        raise fail(
            "ProjectNotRunnable",
            f"project '{project}' is in conflict with a dataset it uses{': ' if broken else ''}{broken}",
            hint=f"change the project and activate it, or run `tallybook activate {project} --stay-pinned` to stay on "
            "the pinned version of its input dataset",
            project=project,
        )


def check_period_runs(period: str, status: PeriodStatus, reopen_reason: str | None) -> None:
    """Refuses a run for a locked period, and for a closed one without a reason."""
    if status == "locked":
        raise fail("PeriodNotOpen", f"period {period} is locked", hint="a locked period cannot run again")
    if status == "closed" and not (reopen_reason or "").strip():
        raise fail("PeriodNotOpen", f"period {period} is closed", hint="run it with --reopen-reason TEXT")


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
    return kept | {
        "operations": [_without_labels(operation) for operation in operations],
        "selectors": {name: text for name, text in (project.get("selectors") or {}).items() if name in used},
    }


def _without_labels(operation: Json) -> Json:
    return {key: value for key, value in operation.items() if key not in _LABELS}


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
