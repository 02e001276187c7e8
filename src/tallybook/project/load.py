"""Reads every document of a workspace, without checking documents against each other."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tallybook.errors import Problem, UsageError, did_you_mean
from tallybook.model.base import as_text
from tallybook.model.dataset import Dataset
from tallybook.model.datasource import DataSource
from tallybook.model.period import GREGORIAN, Calendar
from tallybook.model.resolver import Resolver
from tallybook.model.settings import Settings
from tallybook.operations.base import Operation
from tallybook.operations.registry import any_operation
from tallybook.project.entities import DocumentPart, Entry, read_entity
from tallybook.project.environments import EnvironmentSources, check_known, read_environments
from tallybook.project.files import SETTINGS_FILE, UnreadableError, find_files, has_settings, read_bytes
from tallybook.project.model import Project, ProjectHead
from tallybook.project.unread import Unread
from tallybook.project.variables import overridden
from tallybook.project.yaml import Document, load_documents
from tallybook.resolve.render import check_no_tokens
from tallybook.source import Place

KINDS = ("project", "dataset", "resolver", "datasource", "calendar", "scenario")


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
    """As they are in the environment."""
    calendars: Mapping[str, Entry[Calendar]] = field(default_factory=lambda: MappingProxyType({}))
    scenarios: tuple[DocumentPart, ...] = ()
    unreadable: frozenset[str] = frozenset()
    """Ids of documents that could not be read: a reference to one is not a second problem."""
    unread: tuple[Unread, ...] = ()
    """The files and documents that could not be read."""
    problems: tuple[Problem, ...] = ()
    links: tuple[str, ...] = ()
    """Links to folders, which are not followed."""
    environment: str | None = None
    """The environment that was chosen; None for the workspace without one."""
    environments: Mapping[str | None, EnvironmentSources] = field(default_factory=lambda: MappingProxyType({}))
    """What every environment changes, by name; under None, the datasources of the files."""

    def in_environment(self, name: str | None) -> Definitions:
        """Returns the definitions with the datasources of another environment."""
        datasources = {**self.environments[None].datasources, **self.environments[name].datasources}
        return replace(self, datasources=MappingProxyType(datasources), environment=name)

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

    environment: str | None = None
    settings: Settings | None = None
    settings_part: DocumentPart | None = None
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By kind and id."""
    scenarios: list[DocumentPart] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)
    unread: list[Unread] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def set_aside(self, unread: Unread) -> None:
        """Keeps what could not be read, and its problems."""
        self.unread.append(unread)
        self.problems += unread.problems

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


def load_definitions(root: Path, environment: str | None = None) -> Definitions:
    """Reads every YAML file of the workspace. Raises UsageError if it has no such environment."""
    files = find_files(root)
    read = _Reading(environment)
    for folder, reason in files.unreadable:
        read.set_aside(_unreadable(_name(root, folder), reason))
    settings = root / SETTINGS_FILE
    missed = has_settings(root) and settings not in files.files
    for path in (settings, *files.files) if missed else files.files:
        _load_file(read, path, _name(root, path))
    definitions = Definitions(
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
        unread=tuple(read.unread),
        problems=tuple(read.problems),
        links=tuple(_name(root, link) for link in files.links),
        environment=environment,
        environments=_environments(read),
    )
    if environment not in definitions.environments:  # the settings could not be read
        return definitions
    chosen = definitions.in_environment(environment)
    return replace(chosen, problems=(*chosen.problems, *chosen.environments[environment].problems))


def _environments(read: _Reading) -> Mapping[str | None, EnvironmentSources]:
    own = read.of("datasource")
    if read.settings is None or read.settings_part is None:
        return MappingProxyType({None: EnvironmentSources(own)})
    changed = read_environments(read.settings, read.settings_part, own, read.unreadable)
    return MappingProxyType({None: EnvironmentSources(own), **changed})


def _load_file(read: _Reading, path: Path, name: str) -> None:
    try:
        content = read_bytes(path)
    except UnreadableError as error:
        read.set_aside(_unreadable(name, error))
        return
    documents, problems = load_documents(content, name)
    if name == SETTINGS_FILE:
        read.problems += problems
        for document in documents:
            _add_settings(read, DocumentPart(document, ()))
        return
    if problems:
        read.set_aside(Unread.of_file(name, tuple(problems), content))
        read.unreadable |= _ids_in(content)
    for document in documents:
        _add_document(read, document, content)


def _name(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _unreadable(name: str, error: UnreadableError) -> Unread:
    return Unread.of_file(name, (Problem("InvalidYaml", str(error), error.hint, Place(name, 1, 1), path=""),))


_ID = re.compile(r"^[ \t]*(?:\w+:[ \t]*\{[ \t]*)?id:[ \t]*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)
_REGISTERED = re.compile(r"\bregister_as_dataset[\"']?[ \t]*:[ \t]*[\"']?([A-Za-z0-9][A-Za-z0-9._-]*)")


def _ids_in(content: bytes) -> set[str]:
    """Returns everything that looks like an id, or a registered dataset, in a file that is not valid YAML."""
    text = content.decode(errors="replace")
    return {*_ID.findall(text), *_REGISTERED.findall(text)}


def _add_settings(read: _Reading, part: DocumentPart) -> None:
    if read.settings_part is not None:
        hint = "put datasets, projects and other documents into other files"
        read.problems.append(part.problem((), "InvalidYaml", f"{SETTINGS_FILE} must have exactly one document", hint))
        return
    settings, problems = read_entity(Settings, part)
    read.problems += problems
    names = settings.environments if settings is not None else ()
    for where in (part, *(part.below("environments", name) for name in names)):
        read.problems += _tokens_in_settings(where)
    read.settings_part = part
    if settings is not None and read.environment is not None:
        check_known(read.environment, settings)
        settings = settings.in_environment(read.environment)
    read.settings = settings and overridden(settings, os.environ)


def _tokens_in_settings(part: DocumentPart) -> Iterator[Problem]:
    for key in ("sandbox", "store"):
        written = part.text((key,))
        hint = f"write the value itself, or set the environment variable TALLYBOOK_{key.upper()}"
        for problem in check_no_tokens(written, hint) if written is not None else ():
            yield part.locate(problem, key)


def _add_document(read: _Reading, document: Document, content: bytes) -> None:
    kind = _kind(document)
    if isinstance(kind, Problem):
        read.set_aside(Unread.of_file(document.file, (kind,), content, any_kind=kind.type == "UnknownKey"))
        read.unreadable |= _ids_in(content)
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
        if entity is None:
            _note_unreadable(read, part, problems)
        else:
            read.problems += problems
            _put(read, entity.id, Entry(entity, part), part)

    return add


def _put(read: _Reading, id: str, entry: Any, part: DocumentPart) -> None:
    entries = read.entries.setdefault(str(part.path[0]), {})
    if id not in entries:
        entries[id] = entry
        return
    first: Place = entries[id].part.place(("id",))
    message = f"the {part.path[0]} '{id}' is already defined at {first}"
    read.set_aside(Unread.of_document(part, part.problem(("id",), "DuplicateId", message, "choose another id")))


def _note_unreadable(read: _Reading, part: DocumentPart, problems: Iterable[Problem]) -> None:
    read.set_aside(Unread.of_document(part, *problems))
    body = part.value()
    if isinstance(body, dict) and "id" in body:
        read.unreadable.add(str(as_text(body["id"])))
    read.unreadable |= set(_REGISTERED.findall(str(body)))


def _add_project(read: _Reading, part: DocumentPart) -> None:
    entry, problems = read_project(part)
    if entry is None:
        _note_unreadable(read, part, problems)
    else:
        read.problems += problems
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
