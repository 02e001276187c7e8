"""Checks projects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from tallybook.errors import Problem, ProblemError, did_you_mean
from tallybook.expressions.selectors import parse_selector
from tallybook.model.dataset import Dataset, DatasetRef
from tallybook.model.template import token_names
from tallybook.operations.base import Step
from tallybook.operations.schema import SourceTable
from tallybook.project.bind import BoundProject, bind_project
from tallybook.project.check_outputs import check_outputs, index_of, source_of, with_registered
from tallybook.project.check_result import CheckResult
from tallybook.project.load import ProjectEntry
from tallybook.resolve.resolve import pick_resolver
from tallybook.source import SourceText, path_text


def check_projects(checked: CheckResult) -> CheckResult:
    """Checks every project once, those that register datasets before those that read them.

    In a circle, a project comes first if it could read a later dataset through a lookup but does not. The projects of a
    true circle are checked in file order, and a missing dataset is a DatasetNotFound.
    """
    waited = {name: entry.head.id for entry in checked.definitions.projects.values() for name in _registers(entry)}
    remaining = list(checked.definitions.projects.values())
    while remaining:
        pending = {name for entry in remaining for name in _registers(entry)}
        ready = [entry for entry in remaining if not (_reads(entry, checked) & (pending - _registers(entry)))]
        chosen = ready or [entry for entry in remaining if _finds_all(entry, checked)] or remaining
        for entry in chosen:
            checked = _check_project(entry, checked, waited)
            waited = {name: maker for name, maker in waited.items() if maker != entry.head.id}
        remaining = [entry for entry in remaining if entry not in chosen]
    return checked


def _check_project(entry: ProjectEntry, checked: CheckResult, waited: Mapping[str, str]) -> CheckResult:
    """Adds a bound project, its problems and the datasets it registers to the result. `waited` are the datasets that
    this project and later ones register."""
    bound = checked.bound.get(entry.head.id)
    bound = bound or bind_project(entry.head, entry.operations, checked.datasets, entry.part)
    bound = replace(bound, steps=tuple(_for_people(step, checked) for step in bound.steps))
    bound = replace(bound, problems=tuple(_in_circle(problem, waited) for problem in bound.problems))
    problems = (
        *_check_seqs(entry),
        *bound.problems,
        *_check_unused_selectors(entry),
        *_check_overrides(entry, checked),
        *_check_sources(bound, entry, checked),
        *check_outputs(bound, entry, checked),
    )
    return replace(
        checked,
        datasets=with_registered(bound, checked),
        bound=MappingProxyType({**checked.bound, entry.head.id: bound}),
        problems=(*checked.problems, *problems),
    )


def _for_people(step: Step, checked: CheckResult) -> Step:
    """Returns an output without the system columns if people read its files and the user did not choose columns."""
    source = source_of(step.publishes.destination, checked) if step.publishes is not None else None
    if step.publishes is None or source is None or not source.for_people:
        return step
    return replace(step, publishes=step.publishes.as_read_by_people())


def _finds_all(entry: ProjectEntry, checked: CheckResult) -> bool:
    bound = bind_project(entry.head, entry.operations, checked.datasets)
    return all(problem.type != "DatasetNotFound" for problem in bound.problems)


def _in_circle(problem: Problem, waited: Mapping[str, str]) -> Problem:
    """Adds a hint to a missing dataset if a project that is checked later registers it."""
    maker = waited.get(problem.subject or "")
    if problem.type != "DatasetNotFound" or maker is None:
        return problem
    if maker == problem.project:
        return replace(problem, hint="the project registers it itself, so it cannot read it")
    return replace(problem, hint=f"project '{maker}' registers it, but depends on this project: they form a circle")


def _registers(entry: ProjectEntry) -> set[str]:
    return {operation.registers for operation in entry.operations if operation is not None and operation.registers}


def _reads(entry: ProjectEntry, checked: CheckResult) -> set[str]:
    """Returns the datasets a project names, and those it could read through lookups of its input."""
    head = entry.head
    input = DatasetRef(dataset_id=head.input_dataset_id, dataset_version=head.input_dataset_version)
    dataset = checked.datasets.find(input)
    targets = (lookup.target for lookup in dataset.lookups) if isinstance(dataset, Dataset) else ()
    lookups = (target for target in targets if isinstance(target, DatasetRef))
    named = (ref for operation in entry.operations if operation is not None for ref in operation.datasets)
    return {ref.dataset_id for ref in (input, *lookups, *named)}


def _check_seqs(entry: ProjectEntry) -> Iterator[Problem]:
    first: dict[int, str] = {}
    for index, operation in enumerate(entry.operations):
        if operation is None:
            continue
        if operation.seq in first:
            message = f"seq {operation.seq} is already used by '{first[operation.seq]}'"
            problem = entry.part.problem(
                ("operations", index, "seq"), "DuplicateSeq", message, "give it another number"
            )
            yield problem.within(project=entry.head.id, seq=operation.seq, operation=operation.name)
        first.setdefault(operation.seq, operation.name)


def _check_unused_selectors(entry: ProjectEntry) -> Iterator[Problem]:
    """Checks that unused selectors can be parsed; others are checked where they are used."""
    texts = {name: entry.part.text(("selectors", name)) or SourceText(t) for name, t in entry.head.selectors.items()}
    conditions = [text for operation in entry.operations if operation is not None for text in operation.conditions]
    checked = _names_used(conditions, entry.head.selectors)
    for name, text in texts.items():
        if name in checked:
            continue
        checked |= {name} | _names_used([text.text], entry.head.selectors)
        try:
            parse_selector(text, texts)
        except ProblemError as error:
            for problem in error.problems:
                path = path_text(entry.part.find(("selectors", name)))
                yield replace(
                    problem, path=path_text((*entry.part.path, problem.path)) if problem.path else path
                ).within(project=entry.head.id)


def _names_used(texts: Iterable[str], selectors: Mapping[str, str]) -> set[str]:
    """Returns the named selectors that texts use, directly or through other selectors."""
    used: set[str] = set()
    waiting = list(texts)
    while waiting:
        names = token_names(waiting.pop()) & selectors.keys() - used
        used |= names
        waiting += [selectors[name] for name in names]
    return used


def _check_overrides(entry: ProjectEntry, checked: CheckResult) -> Iterator[Problem]:
    for dataset_id, resolver_id in entry.head.resolver_overrides.items():
        path = ("resolver_overrides", dataset_id)
        if not checked.knows("resolver", resolver_id, checked.definitions.resolvers):
            hint = did_you_mean(resolver_id, checked.definitions.resolvers)
            problem = entry.part.problem(path, "ResolverNotFound", f"there is no resolver '{resolver_id}'", hint)
            yield problem.within(project=entry.head.id)
        if not checked.knows("dataset", dataset_id, checked.datasets.versions):
            hint = did_you_mean(dataset_id, checked.datasets.versions)
            message = f"there is no dataset '{dataset_id}'"
            yield entry.part.problem(path, "DatasetNotFound", message, hint, key=True).within(project=entry.head.id)


def _check_sources(bound: BoundProject, entry: ProjectEntry, checked: CheckResult) -> Iterator[Problem]:
    """Checks that every table a project loads has a resolver. Registered datasets need none."""
    seen: set[str] = set()
    if bound.input is not None:
        yield from _check_resolver(bound.input, seen, entry, checked, ("input_dataset_id",))
    for step in bound.steps:
        index = index_of(entry, step.seq)
        for source in step.sources:
            for problem in _check_resolver(source, seen, entry, checked, ("operations", index)):
                yield step.attribute(problem)


def _check_resolver(
    source: SourceTable, seen: set[str], entry: ProjectEntry, checked: CheckResult, use: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Returns the problem of a missing resolver where it is named, or where the dataset is used."""
    dataset, overrides = source.dataset, entry.head.resolver_overrides
    if dataset.id in seen or dataset.id not in checked.definitions.datasets:
        return
    seen.add(dataset.id)
    named = overrides.get(dataset.id, dataset.resolver_id)
    resolvers = {id: entry.entity for id, entry in checked.definitions.resolvers.items()}
    unread = checked.definitions.unread
    if any(one.may_be_default if named is None else one.may_define("resolver", named) for one in unread):
        return
    try:
        pick_resolver(dataset.id, dataset.resolver_id, overrides, resolvers)
    except ProblemError as error:
        part, path = entry.part, use
        if dataset.id in overrides:
            path = ("resolver_overrides", dataset.id)
        elif named is not None:
            part, path = checked.definitions.datasets[dataset.id].part, ("resolver_id",)
        problem = part.locate(error.problem, *path)
        if named is not None and named not in resolvers:
            problem = replace(problem, message=f"there is no resolver '{named}'")
        yield problem.within(project=entry.head.id)
