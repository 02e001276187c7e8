"""The documents a project needs, and the problems of a workspace that concern it.

A project stands on its own files: it runs although another file is broken. It is refused if it needs a document of the
broken file, or if the file may define one that it needs: it must never run with another meaning than it would have if
every file could be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from tallybook.errors import Problem
from tallybook.model.dataset import Dataset
from tallybook.operations.flow import publications
from tallybook.project.bind import BoundProject
from tallybook.project.check_result import CheckResult
from tallybook.project.entities import Entry
from tallybook.project.files import SETTINGS_FILE
from tallybook.project.load import Definitions, ProjectEntry
from tallybook.project.unread import Unread, because


@dataclass(frozen=True)
class Needs:
    """The ids of the documents a project needs, by kind."""

    by_kind: Mapping[str, Collection[str]]
    default_resolver: bool = False
    """True if it reads a dataset that names no resolver."""
    registered: Collection[str] = field(default=())
    """The datasets that it may read from other projects' files: a draft reads what other drafts register."""

    def reason(self, unread: Unread, definitions: Definitions) -> str | None:
        """Returns why something that could not be read may matter; None if it cannot."""
        for kind, ids in self.by_kind.items():
            for id in sorted(ids):
                entry = _entries(definitions, kind).get(id)
                if entry is None and unread.may_define(kind, id):
                    return f"{kind} '{id}' may be defined here"
                if entry is not None and unread.is_file and entry.part.document.file == unread.file:
                    return f"{kind} '{id}' is defined in this file"
                if entry is not None and unread.may_define_again(kind, id):
                    return f"{kind} '{id}' may be defined here a second time"
        if self.default_resolver and unread.may_be_default:
            return "the default resolver may be defined here"
        maybe = next((id for id in sorted(self.registered) if unread.may_register(id)), None)
        return None if maybe is None else f"dataset '{maybe}' may be registered by a project here"


def needs_of(
    entry: ProjectEntry, bound: BoundProject, definitions: Definitions, registered: Collection[str], *, draft: bool
) -> Needs:
    """Returns what a project needs. `bound` is the project bound to the versions it reads, and `registered` are the
    datasets whose rows runs have registered: they need no resolver."""
    sources = {source.dataset.id: source.dataset for step in bound.steps for source in step.sources}
    if bound.input is not None:
        sources[bound.input.dataset.id] = bound.input.dataset
    datasets = {*datasets_named(entry), *sources}
    resolvers, default = _resolvers(entry, sources, definitions, registered)
    rules = (rule for id in resolvers if id in definitions.resolvers for rule in definitions.resolvers[id].entity.rules)
    outputs = (output.destination.datasource_id for output in publications(bound.steps))
    settings = definitions.settings
    calendar = settings.calendar if settings is not None else None
    return Needs(
        MappingProxyType(
            {
                "project": {entry.head.id},
                "dataset": datasets,
                "resolver": resolvers,
                "datasource": {*(rule.strategy.datasource_id for rule in rules), *filter(None, outputs)},
                "calendar": {calendar} if calendar is not None else set(),
            }
        ),
        default_resolver=default,
        registered=datasets - definitions.datasets.keys() if draft else (),
    )


def datasets_named(entry: ProjectEntry) -> set[str]:
    """Returns the ids of the input and of the datasets that operations name."""
    refs = (ref for operation in entry.operations if operation is not None for ref in operation.datasets)
    return {entry.head.input_dataset_id, *(ref.dataset_id for ref in refs)}


def _resolvers(
    entry: ProjectEntry, sources: Mapping[str, Dataset], definitions: Definitions, registered: Collection[str]
) -> tuple[set[str], bool]:
    """Returns the resolvers of the datasets that are read, and whether one of these has the default resolver."""
    found: set[str] = set()
    default = False
    for id, dataset in sources.items():
        if id not in definitions.datasets and id in registered:
            continue
        named = entry.head.resolver_overrides.get(id, dataset.resolver_id)
        if named is None:
            default = True
            found |= {id for id, resolver in definitions.resolvers.items() if resolver.entity.is_default}
        else:
            found.add(named)
    return found, default


def concerning(checked: CheckResult, entry: ProjectEntry, needs: Needs) -> list[Problem]:
    """Returns the problems that concern a project: its own, those of the settings and of documents it needs, and those
    of broken files that may define such a document."""
    definitions = checked.definitions
    aside = {problem for unread in definitions.unread for problem in unread.problems}
    documents = [found.part.document for found in _needed(definitions, needs)]
    problems = [
        problem
        for problem in checked.problems
        if problem not in aside
        and (problem.project == entry.head.id or (problem.project is None and _is_shared(problem, documents)))
    ]
    return [*problems, *unread_problems(definitions, needs)]


def unread_problems(definitions: Definitions, needs: Needs) -> Iterator[Problem]:
    """Yields the problems of what could not be read but may be needed, each with the reason."""
    for unread in definitions.unread:
        reason = needs.reason(unread, definitions)
        if reason is not None:
            yield from (because(problem, reason) for problem in unread.problems)


def _is_shared(problem: Problem, documents: Iterable[Any]) -> bool:
    place = problem.place
    return place is None or place.file == SETTINGS_FILE or any(document.covers(place) for document in documents)


def _needed(definitions: Definitions, needs: Needs) -> Iterator[Entry[Any] | ProjectEntry]:
    for kind, ids in needs.by_kind.items():
        entries = _entries(definitions, kind)
        yield from (entries[id] for id in ids if id in entries)


def _entries(definitions: Definitions, kind: str) -> Mapping[str, Any]:
    """Returns the documents of a kind in the files. An environment changes datasources in the settings."""
    entries: Mapping[str, Any] = getattr(definitions, f"{kind}s")
    own = definitions.environments.get(None) if kind == "datasource" else None
    return entries if own is None else own.datasources


def without_problems(checked: CheckResult) -> tuple[Definitions, list[Problem]]:
    """Returns the definitions that can be recorded, and the problems of those that cannot.

    A project with problems of its own can be recorded, because it may be unfinished. Left out is what a broken file
    defines, what is defined twice, and any other document with a problem.
    """
    definitions = checked.definitions
    shared = [problem for problem in checked.problems if problem.project is None]
    aside = [problem for unread in definitions.unread for problem in unread.problems]
    left_out = [problem for problem in checked.problems if problem.project is None or problem in aside]
    if not left_out:
        return definitions, []
    broken = {unread.file for unread in definitions.unread if unread.is_file}

    def is_whole(kind: str, id: str, document: Any) -> bool:
        if document.file in broken or any(unread.may_define_again(kind, id) for unread in definitions.unread):
            return False
        return not any(problem.place is not None and document.covers(problem.place) for problem in shared)

    kept = {
        f"{kind}s": MappingProxyType(
            {
                id: getattr(definitions, f"{kind}s")[id]
                for id, entry in _entries(definitions, kind).items()
                if is_whole(kind, id, entry.part.document)
            }
        )
        for kind in ("project", "dataset", "resolver", "datasource", "calendar")
    }
    return replace(definitions, **kept), left_out  # type: ignore[arg-type]  # the maps of each kind
