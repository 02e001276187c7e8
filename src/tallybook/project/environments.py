"""Environments of a workspace, such as dev and prod: the datasources that each has instead of those in the files.

`tallybook.yaml` says what is different in an environment. A datasource of the environment is the one in the files with
these keys put in, read and checked like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from tallybook.errors import Problem, UsageError, did_you_mean
from tallybook.model.base import as_text
from tallybook.model.datasource import DataSource
from tallybook.model.settings import Settings
from tallybook.project.entities import DocumentPart, Entry, read_entity
from tallybook.project.files import ENVIRONMENT_VARIABLE

_KEY = "environments"


@dataclass(frozen=True)
class EnvironmentSources:
    """The datasources that an environment changes."""

    datasources: Mapping[str, Entry[DataSource]]
    """Whole datasources as they are in the environment, with the part of `tallybook.yaml` that changes them."""
    problems: tuple[Problem, ...] = ()


def check_known(name: str, settings: Settings) -> None:
    """Raises UsageError if the settings have no environment of the name."""
    known = settings.environments
    if name in known:
        return
    nearest = did_you_mean(name, known, near_only=True)
    if not known:
        message = f"there is no environment '{name}': tallybook.yaml has no `{_KEY}`"
        raise UsageError(message, f"leave out --env and {ENVIRONMENT_VARIABLE}, or add `{_KEY}: {{{name}: …}}`")
    all_names = f"the environments are: {', '.join(known)}"
    raise UsageError(f"there is no environment '{name}'", f"{nearest} {all_names}" if nearest else all_names)


def read_environments(
    settings: Settings, part: DocumentPart, sources: Mapping[str, Entry[DataSource]], unreadable: Collection[str]
) -> dict[str, EnvironmentSources]:
    """Reads the datasources of every environment. Those in `unreadable` have a problem in their own file already."""
    return {
        name: _sources_of(part.below(_KEY, name, "datasources"), environment.datasources, sources, unreadable)
        for name, environment in settings.environments.items()
    }


def _sources_of(
    part: DocumentPart,
    overrides: Mapping[str, object],
    sources: Mapping[str, Entry[DataSource]],
    unreadable: Collection[str],
) -> EnvironmentSources:
    changed: dict[str, Entry[DataSource]] = {}
    problems: list[Problem] = []
    for id in overrides:
        here = part.below(id)
        if id not in sources:
            problems += [] if id in unreadable else [_unknown(part, id, sources)]
            continue
        source, wrong = read_entity(DataSource, here, _merged(sources[id].part.value(), here.value()))
        problems += wrong
        if source is not None:
            changed[id] = Entry(source, here)
    return EnvironmentSources(changed, tuple(problems))


def _unknown(part: DocumentPart, id: str, sources: Mapping[str, object]) -> Problem:
    hint = did_you_mean(id, sources) or "an environment changes datasources that the files define"
    return part.problem((id,), "DataSourceNotFound", f"there is no datasource '{id}'", hint, key=True)


def _merged(source: dict[str, Any], override: dict[str, Any]) -> dict[str, Any]:
    """Returns the keys of a datasource with those of an override put in. Options of one type mean nothing to another,
    so a new type keeps none."""
    options = dict(override.get("options") or {})
    if as_text(override.get("type", source.get("type"))) == as_text(source.get("type")):
        options = {**(source.get("options") or {}), **options}
    merged = source | override | {"options": options}
    return {key: value for key, value in merged.items() if not (key == "options" and not value)}
