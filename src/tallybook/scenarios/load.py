"""Reads scenarios from the files and binds their projects; runs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tallybook.errors import Problem
from tallybook.model.base import Id, as_text
from tallybook.model.dataset import Dataset
from tallybook.model.period import Period
from tallybook.operations.flow import publications, source_tables
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable
from tallybook.project.bind import BoundProject
from tallybook.project.check import check
from tallybook.project.check_result import CheckResult
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.entities import DocumentPart, Entry, read_entity
from tallybook.project.load import Definitions, ProjectEntry, read_project
from tallybook.project.needs import Needs, needs_of, unread_problems
from tallybook.project.unread import Unread
from tallybook.project.yaml import Document
from tallybook.scenarios.model import FileRows, Row, Rows, Scenario

_NAMELESS = "scenario"


@dataclass(frozen=True)
class Case:
    """A scenario with its project, datasets and period; it can run if it has no problems."""

    name: str
    part: DocumentPart
    checked: CheckResult
    """The workspace as this scenario sees it: with its own datasets, resolvers and project."""
    scenario: Scenario | None = None
    bound: BoundProject | None = None
    period: Period | None = None
    problems: tuple[Problem, ...] = ()
    """The problems of the scenario itself."""
    refused: tuple[Problem, ...] = ()
    """The problems that prevent its project from running; a scenario can expect them."""

    @property
    def file(self) -> str:
        return self.part.document.file

    @property
    def body(self) -> Scenario:
        """The scenario; only for a case that could be read."""
        assert self.scenario is not None
        return self.scenario

    @property
    def expects_error(self) -> bool:
        expect = self.scenario.expect if self.scenario else None
        return expect is not None and expect.error is not None

    @property
    def sources(self) -> tuple[SourceTable, ...]:
        """The tables its project loads."""
        if self.bound is None or self.bound.input is None:
            return ()
        return source_tables(self.bound.input, self.bound.steps)

    @property
    def outputs(self) -> tuple[Publication, ...]:
        """What its project publishes."""
        return publications(self.bound.steps) if self.bound else ()

    def dataset(self, dataset_id: str) -> Dataset | None:
        """Returns the version of a dataset that the project reads, else the latest one."""
        read = next((source.dataset for source in self.sources if source.dataset.id == dataset_id), None)
        versions = self.checked.datasets.versions.get(dataset_id)
        return read or (versions[max(versions)] if versions else None)


def read_case(part: DocumentPart, checked: CheckResult) -> Case:
    """Reads one scenario document of a checked workspace."""
    read = _read(part)
    case = Case(_name(part), part, checked, read.scenario, problems=tuple(read.problems), refused=tuple(read.wrong))
    inline = read.inline
    if read.scenario is None:
        return replace(case, problems=(*case.problems, *case.refused))
    project_id = inline.head.id if inline else str(read.scenario.project)
    if inline is None and (read.wrong or project_id not in checked.definitions.projects):
        return case
    extended = _with_own_definitions(case, inline)
    case = replace(case, checked=extended, bound=extended.bound.get(project_id))
    problems = [*extended.problems, *(() if inline or extended is checked else checked.problems)]
    concerning = (problem for problem in problems if _concerns(problem, case, project_id))
    unread = () if case.bound is None else unread_problems(checked.definitions, _needs(case, inline))
    return replace(case, refused=(*read.wrong, *dict.fromkeys((*concerning, *unread))))


def unread_case(unread: Unread, checked: CheckResult) -> Case:
    """Returns the case for a file that cannot be read, whose scenarios are not known."""
    part = DocumentPart(Document.unread(unread.file), ())
    return Case("a file that cannot be read", part, checked, problems=unread.problems)


def _needs(case: Case, inline: ProjectEntry | None) -> Needs:
    """Returns what the project of a scenario needs of the workspace. The scenario gives the rows, so it needs no
    datasource; a resolver can divide a period into parts."""
    definitions = case.checked.definitions
    entry = inline or definitions.projects[str(case.body.project)]
    assert case.bound is not None
    needs = needs_of(entry, case.bound, definitions, registered=(), draft=True)
    own = {"dataset": [d.id for d in case.body.datasets], "resolver": [r.id for r in case.body.resolvers]}
    own |= {"project": [entry.head.id] if inline is not None else []}
    given = any(resolver.is_default for resolver in case.body.resolvers)
    return Needs(
        {kind: set(ids).difference(own.get(kind, ())) for kind, ids in needs.by_kind.items() if kind != "datasource"},
        default_resolver=needs.default_resolver and not given,
        registered=set(needs.registered).difference(own["dataset"]),
    )


def _name(part: DocumentPart) -> str:
    body = part.value()
    name = body.get("name") if isinstance(body, dict) else None
    return str(as_text(name)) if name is not None else _NAMELESS


@dataclass
class _Read:
    scenario: Scenario | None
    problems: list[Problem]
    inline: ProjectEntry | None = None
    wrong: list[Problem] = field(default_factory=list)
    """The problems of a project that the scenario defines itself."""


def _read(part: DocumentPart) -> _Read:
    """Reads keys with two possible forms separately, by the form they have, so that problems mention only that form."""
    body = part.value()
    if not isinstance(body, dict):
        return _Read(*read_entity(Scenario, part))
    inline: ProjectEntry | None = None
    wrong: list[Problem] = []
    problems: list[Problem] = []
    if isinstance(body.get("project"), dict):
        inline, wrong = read_project(part.below("project"))
        body = body | {"project": inline.head.id if inline else _NAMELESS}
    elif "project" in body:
        _, problems = read_entity(Id, part.below("project"))
        body = body | {"project": _NAMELESS} if problems else body
    data = body.get("data")
    given: dict[str, dict[str, Rows]] = {}
    if isinstance(data, dict) and all(isinstance(tables, dict) for tables in data.values()):
        given, unread = _read_data(part.below("data"))
        body = body | {"data": {}}
        problems += unread
    scenario, unreadable = read_entity(Scenario, part, body)
    if scenario is not None:
        scenario = scenario.model_copy(update={"data": given})
    return _Read(None if problems else scenario, [*unreadable, *problems], inline, wrong)


def _read_data(part: DocumentPart) -> tuple[dict[str, dict[str, Rows]], list[Problem]]:
    given: dict[str, dict[str, Rows]] = {}
    problems: list[Problem] = []
    for dataset_id, tables in part.value().items():
        for name, value in tables.items():
            form = FileRows if isinstance(value, dict) else tuple[Row, ...]
            rows, wrong = read_entity(form, part.below(dataset_id, name))
            problems += wrong
            given.setdefault(dataset_id, {})[name] = () if rows is None else rows
        given.setdefault(dataset_id, {})
    return given, problems


def _concerns(problem: Problem, case: Case, project_id: str) -> bool:
    """True if a problem prevents the project from running on the scenario's rows, which need no resolver."""
    if problem.type == "ResolverNotFound" and not case.body.resolvers:
        return False
    if problem.project is not None:
        return problem.project == project_id
    path, place = problem.path or "", problem.place
    read = {source.dataset.id for source in case.sources}
    files = {entry.part.document.file for id, entry in case.checked.definitions.datasets.items() if id in read}
    return path.startswith("scenario.") or (path.startswith("dataset") and place is not None and place.file in files)


def _with_own_definitions(case: Case, inline: ProjectEntry | None) -> CheckResult:
    """The checked workspace with the datasets, resolvers and project that the scenario defines itself."""
    scenario, base = case.body, case.checked
    if inline is None and not scenario.datasets and not scenario.resolvers:
        return base
    own = base.definitions
    entry = inline or own.projects[str(scenario.project)]
    datasets = {d.id: Entry(d, case.part.below("datasets", i)) for i, d in enumerate(scenario.datasets)}
    resolvers = {r.id: Entry(r, case.part.below("resolvers", i)) for i, r in enumerate(scenario.resolvers)}
    others = {id: e for id, e in own.resolvers.items() if id not in resolvers}
    if any(resolver.is_default for resolver in scenario.resolvers):
        others = {id: replace(e, entity=e.entity.model_copy(update={"is_default": False})) for id, e in others.items()}
    definitions = Definitions(
        root=own.root,
        settings=own.settings,
        projects=MappingProxyType({entry.head.id: entry}),
        datasets=MappingProxyType({**own.datasets, **datasets}),
        resolvers=MappingProxyType(others | resolvers),
        datasources=own.datasources,
        calendars=own.calendars,
    )
    return check(definitions, DatasetVersions(base.datasets.versions))
