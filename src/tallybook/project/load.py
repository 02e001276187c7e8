"""Reads every document of a workspace, without checking documents against each other."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from tallybook.errors import Problem, UsageError, did_you_mean
from tallybook.model.base import as_text
from tallybook.model.dataset import Dataset
from tallybook.model.datasource import DataSource
from tallybook.model.period import GREGORIAN, Calendar
from tallybook.model.resolver import Resolver
from tallybook.model.settings import Settings
from tallybook.operations.base import Operation
from tallybook.operations.registry import any_operation
from tallybook.project.entities import DocumentPart, read_entity
from tallybook.project.environment import overridden
from tallybook.project.files import SETTINGS_FILE, UnreadableError, find_files, has_settings, read_bytes
from tallybook.project.model import Project, ProjectHead
from tallybook.project.yaml import Document, load_documents
from tallybook.source import Place

KINDS = ("project", "dataset", "resolver", "datasource", "calendar", "scenario")
E = TypeVar("E")


@dataclass(frozen=True)
class Entry(Generic[E]):
    """An entity and the document it was read from."""

    entity: E
    part: DocumentPart


@dataclass(frozen=True)
class ProjectEntry:
    """A project as far as it could be read: unreadable operations are None, so that the others can be checked."""

    head: ProjectHead
    operations: tuple[Operation | None, ...]
    part: DocumentPart

    @property
    def project(self) -> Project | None:
        """The whole project, when every operation could be read."""
        read = [operation for operation in self.operations if operation is not None]
        if len(read) < len(self.operations) or not read:
            return None
        return Project.model_construct(**dict(self.head), operations=tuple(read))


@dataclass(frozen=True)
class Definitions:
    """Everything that the files of a workspace define, and the problems of single documents."""

    root: Path
    settings: Settings | None = None
    settings_part: DocumentPart | None = None
    projects: Mapping[str, ProjectEntry] = field(default_factory=lambda: MappingProxyType({}))
    datasets: Mapping[str, Entry[Dataset]] = field(default_factory=lambda: MappingProxyType({}))
    resolvers: Mapping[str, Entry[Resolver]] = field(default_factory=lambda: MappingProxyType({}))
    datasources: Mapping[str, Entry[DataSource]] = field(default_factory=lambda: MappingProxyType({}))
    calendars: Mapping[str, Entry[Calendar]] = field(default_factory=lambda: MappingProxyType({}))
    scenarios: tuple[DocumentPart, ...] = ()
    unreadable: frozenset[str] = frozenset()
    """Ids of documents that could not be read: a reference to one is not a second problem."""
    problems: tuple[Problem, ...] = ()
    links: tuple[str, ...] = ()
    """Links to folders, which are not followed."""

    @property
    def calendar(self) -> Calendar | None:
        """The workspace's calendar; None when the settings name one that does not exist."""
        settings = self.settings
        if settings is None or settings.calendar is None or settings.calendar == GREGORIAN.id:
            return GREGORIAN
        entry = self.calendars.get(settings.calendar)
        return entry.entity if entry else None


@dataclass
class _Reading:
    """What has been read of the files of a workspace so far."""

    settings: Settings | None = None
    settings_part: DocumentPart | None = None
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By kind and id."""
    scenarios: list[DocumentPart] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def of(self, kind: str) -> Mapping[str, Any]:
        return MappingProxyType(self.entries.get(kind, {}))


def find_root(start: Path) -> Path:
    """The nearest folder at or above `start` with a settings file."""
    for folder in (start.absolute(), *start.absolute().parents):
        if has_settings(folder):
            return folder
    raise UsageError(
        f"there is no {SETTINGS_FILE} in this folder or a folder above it", "create a workspace with `tallybook init`"
    )


def load_definitions(root: Path) -> Definitions:
    """Reads every YAML file of the workspace."""
    files = find_files(root)
    read = _Reading(problems=[_unreadable(_name(root, folder), reason) for folder, reason in files.unreadable])
    settings = root / SETTINGS_FILE
    missed = has_settings(root) and settings not in files.files
    for path in (settings, *files.files) if missed else files.files:
        _load_file(read, path, _name(root, path))
    return Definitions(
        root,
        read.settings,
        read.settings_part,
        projects=read.of("project"),
        datasets=read.of("dataset"),
        resolvers=read.of("resolver"),
        datasources=read.of("datasource"),
        calendars=read.of("calendar"),
        scenarios=tuple(read.scenarios),
        unreadable=frozenset(read.unreadable),
        problems=tuple(read.problems),
        links=tuple(_name(root, link) for link in files.links),
    )


def _load_file(read: _Reading, path: Path, name: str) -> None:
    try:
        content = read_bytes(path)
    except UnreadableError as error:
        read.problems.append(_unreadable(name, error))
        return
    documents, problems = load_documents(content, name)
    read.problems += problems
    if problems:
        read.unreadable |= _ids_in(content)
    for document in documents:
        if name == SETTINGS_FILE:
            _add_settings(read, DocumentPart(document, ()))
        else:
            _add_document(read, document)


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _unreadable(name: str, error: UnreadableError) -> Problem:
    return Problem("InvalidYaml", str(error), error.hint, Place(name, 1, 1), path="")


_ID = re.compile(r"^[ \t]*(?:\w+:[ \t]*\{[ \t]*)?id:[ \t]*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)


def _ids_in(content: bytes) -> set[str]:
    """Returns everything that looks like an id in a file that is not valid YAML."""
    return set(_ID.findall(content.decode(errors="replace")))


def _add_settings(read: _Reading, part: DocumentPart) -> None:
    if read.settings_part is not None:
        hint = "put datasets, projects and other documents into other files"
        read.problems.append(part.problem((), "InvalidYaml", f"{SETTINGS_FILE} must have exactly one document", hint))
        return
    settings, problems = read_entity(Settings, part)
    read.problems += problems
    read.settings_part = part
    read.settings = settings and overridden(settings, os.environ)


def _add_document(read: _Reading, document: Document) -> None:
    kind = _kind(document)
    if isinstance(kind, Problem):
        read.problems.append(kind)
        return
    _ADD[kind](read, DocumentPart(document, (kind,)))


def _kind(document: Document) -> str | Problem:
    """Returns the kind of a document, which is its one top-level key."""
    place = document.place(())
    if not isinstance(document.value, dict):
        hint = f"begin with one of: {', '.join(KINDS)}"
        return Problem("InvalidYaml", "a document must be a map with one key that names its kind", hint, place, path="")
    unknown = [key for key in document.value if key not in KINDS]
    if unknown:
        nearest = did_you_mean(unknown[0], KINDS)
        place = document.place((unknown[0],), key=True)
        return Problem("UnknownKey", f"'{unknown[0]}' is not a kind of document", nearest, place, path=unknown[0])
    if len(document.value) != 1:
        place = document.place(tuple(document.value)[1:2], key=True)
        hint = "separate documents with a line `---`"
        return Problem("InvalidYaml", "a document must have exactly one top-level key", hint, place, path="")
    return str(next(iter(document.value)))


def _adder(type: Any) -> Callable[[_Reading, DocumentPart], None]:
    def add(read: _Reading, part: DocumentPart) -> None:
        entity, problems = read_entity(type, part)
        read.problems += problems
        if entity is None:
            _note_unreadable(read, part)
        else:
            _put(read, entity.id, Entry(entity, part), part)

    return add


def _put(read: _Reading, id: str, entry: Any, part: DocumentPart) -> None:
    entries = read.entries.setdefault(str(part.path[0]), {})
    if id not in entries:
        entries[id] = entry
        return
    first: Place = entries[id].part.place(("id",))
    message = f"the {part.path[0]} '{id}' is already defined at {first}"
    read.problems.append(part.problem(("id",), "DuplicateId", message, "choose another id"))


def _note_unreadable(read: _Reading, part: DocumentPart) -> None:
    body = part.value()
    if isinstance(body, dict) and "id" in body:
        read.unreadable.add(str(as_text(body["id"])))


def _add_project(read: _Reading, part: DocumentPart) -> None:
    entry, problems = read_project(part)
    read.problems += problems
    if entry is None:
        _note_unreadable(read, part)
    else:
        _put(read, entry.head.id, entry, part)


def read_project(part: DocumentPart) -> tuple[ProjectEntry | None, list[Problem]]:
    """Reads a project operation by operation, so that an unreadable one does not hide problems of the others."""
    body = part.value()
    if not isinstance(body, dict):
        return None, read_entity(Project, part)[1]
    head, problems = read_entity(ProjectHead, part, {key: body[key] for key in body if key != "operations"})
    raw = body.get("operations")
    if not isinstance(raw, tuple) or not raw:
        what = "needs at least one operation" if not raw else "must have a list under 'operations'"
        problems.append(part.problem(("operations",), "InvalidArguments", f"a project {what}", key=True))
        raw = ()
    operations: list[Operation | None] = []
    for index, value in enumerate(raw):
        operation, wrong = read_entity(any_operation(), part.below("operations", index))
        operations.append(operation)
        problems += [_of_operation(problem, value) for problem in wrong]
    id = head.id if head is not None else body.get("id")
    named = [problem.within(project=id if isinstance(id, str) else None) for problem in problems]
    return None if head is None else ProjectEntry(head, tuple(operations), part), named


def _of_operation(problem: Problem, raw: Any) -> Problem:
    if not isinstance(raw, dict):
        return problem
    seq, name = raw.get("seq", raw.get("order")), raw.get("name")
    known_seq = int(seq) if isinstance(seq, int) and not isinstance(seq, bool) else None
    return problem.within(seq=known_seq, operation=name if isinstance(name, str) else None)


_ADD: dict[str, Callable[[_Reading, DocumentPart], None]] = {
    "project": _add_project,
    "dataset": _adder(Dataset),
    "resolver": _adder(Resolver),
    "datasource": _adder(DataSource),
    "calendar": _adder(Calendar),
    "scenario": lambda read, part: read.scenarios.append(part),
}
