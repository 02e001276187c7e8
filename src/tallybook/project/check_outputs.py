"""Checks the outputs of a project: where they write, and the datasets they register."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tallybook.errors import Problem, RunError, did_you_mean
from tallybook.model.columns import UNKNOWN
from tallybook.model.datasource import DataSource
from tallybook.model.location import Location
from tallybook.operations.publication import Destination, Publication
from tallybook.project.bind import BoundProject
from tallybook.project.check_result import CheckResult
from tallybook.project.dataset_versions import DatasetVersions, registered_dataset
from tallybook.project.entities import DocumentPart
from tallybook.project.load import ProjectEntry
from tallybook.resolve.overlap import Area, area_of
from tallybook.resolve.render import check_template, symbolic
from tallybook.resolve.targets import path_to_write, table_to_write


def index_of(entry: ProjectEntry, seq: int) -> int:
    """Returns the index of the operation in the file's list."""
    return next(i for i, operation in enumerate(entry.operations) if operation is not None and operation.seq == seq)


def check_outputs(bound: BoundProject, entry: ProjectEntry, checked: CheckResult) -> Iterator[Problem]:
    """Checks that destinations exist, render and do not collide, and that outputs can be registered."""
    earlier: list[Writes] = []
    for step in bound.steps:
        output = step.publishes
        if output is None:
            continue
        index = index_of(entry, output.seq)
        here = entry.part.below("operations", index, "arguments", "destination")
        context = {"project": entry.head.id, "seq": output.seq, "operation": output.name}
        destination = output.destination
        sources = checked.definitions.datasources
        if destination.datasource_id is not None and not checked.knows(destination.datasource_id, sources):
            message = f"there is no datasource '{destination.datasource_id}'"
            hint = did_you_mean(destination.datasource_id, sources)
            yield here.problem(("datasource_id",), "DataSourceNotFound", message, hint).within(**context)
        templates = {"table": destination.table, "location": destination.location and destination.location.path}
        for key, template in templates.items():
            longer = here.find((key, "path")) in here.document.nodes
            steps = (key, "path") if longer else (key,)
            for problem in check_template(here.text(steps) or template) if template else ():
                yield here.locate(problem, *steps).within(**context)
        for problem in _check_location(output, bound, checked, earlier):
            yield here.locate(problem, "location" if destination.location else "table").within(**context)
        if output.register_as is not None:
            yield from (problem.within(**context) for problem in _check_history(destination, here, checked))
            path = ("operations", index, "arguments", "register_as_dataset")
            refused = _check_registration(output, output.register_as, path, entry, checked)
            yield from (problem.within(**context) for problem in refused)


@dataclass(frozen=True)
class Writes:
    """An output, its datasource, and the area it writes to."""

    output: Publication
    source: DataSource
    area: Area


_SHARED = {
    "is": "the same location as",
    "contains": "a folder that contains the location of",
    "is inside": "a folder inside the location of",
}


def collision(later: Writes, earlier: Iterable[Writes]) -> Problem | None:
    """Returns the problem of an output whose location collides with an earlier output; None if there is none.

    Rows may be added to what an earlier output wrote. Anything else would undo a part of the same run.
    """
    for other in earlier:
        relation = later.area.relation(other.area)
        same = relation == "is" and later.source.type == other.source.type
        if relation is None or (same and later.output.mode == "append"):
            continue
        of_other = f"operation {other.output.seq} '{other.output.name}'"
        hint = "give each output its own location"
        if same and not later.source.is_one_file(later.area.name):
            hint += ", or add the rows of this one with `mode: append`"
        return Problem("InvalidDestination", f"the output writes to {_SHARED[relation]} {of_other}", hint)
    return None


def _check_location(
    output: Publication, bound: BoundProject, checked: CheckResult, earlier: list[Writes]
) -> Iterator[Problem]:
    """Yields why an output cannot write to its location in any period, and adds it to the earlier ones."""
    destination, root, input = output.destination, checked.definitions.root, bound.input
    template = destination.location.path if destination.location is not None else destination.table or ""
    both = destination.table is not None and destination.location is not None
    if input is None or both or not template.strip() or check_template(template):
        return
    path = symbolic(template, input.table.name, input.dataset.id)
    source = _source(destination, checked)
    if source is None:
        return
    try:
        is_path = destination.location is not None
        target = path_to_write(path, root) if is_path else table_to_write(source, path, root)
    except RunError as error:
        yield error.problem
        return
    writes = Writes(output, source, area_of(Location(source, target)))
    if problem := collision(writes, earlier):
        yield problem
    earlier.append(writes)


def _source(destination: Destination, checked: CheckResult) -> DataSource | None:
    """The datasource of a destination; None if it is not known."""
    if destination.location is not None:
        return destination.location.source(destination.location.path)
    source = checked.definitions.datasources.get(destination.datasource_id or "")
    return None if source is None else source.entity


def _check_history(destination: Destination, here: DocumentPart, checked: CheckResult) -> Iterator[Problem]:
    """Reports a registered output whose format keeps no versions: a dataset version must always find its own rows."""
    source = _source(destination, checked)
    if source is not None and not source.keeps_versions:
        yield here.problem(
            () if destination.location is None else ("location",),
            "InvalidDestination",
            f"the output is registered as a dataset, but {source.type} keeps no older versions of its rows",
            "write to a datasource of type delta or to a location with `format: delta`, or remove "
            "`register_as_dataset`",
        )


def _check_registration(
    output: Publication, name: str, path: tuple[str | int, ...], entry: ProjectEntry, checked: CheckResult
) -> Iterator[Problem]:
    if name in checked.definitions.datasets:
        other = checked.definitions.datasets[name].part.place(("id",))
        message = f"the dataset '{name}' is already defined at {other}"
        yield entry.part.problem(path, "DuplicateId", message, "register under another name")
    elif not output.business_columns:
        message = f"the dataset '{name}' would have no columns except system columns"
        yield entry.part.problem(path, "InvalidSchema", message, "write at least one other column")


def with_registered(bound: BoundProject, checked: CheckResult) -> DatasetVersions:
    """Returns the datasets that projects can use after a project has registered its outputs. If problems leave gaps in
    the schema of an output, the dataset has the same gaps."""
    datasets = checked.datasets
    for step in bound.steps:
        output = step.publishes
        name = output.register_as if output is not None and output.business_columns else None
        if output is None or name is None or name in datasets.versions:
            continue
        datasets = datasets.with_datasets(registered_dataset(output))
        if step.before.open or UNKNOWN in output.business_columns.values():
            datasets = replace(datasets, open=datasets.open | {name})
    return datasets
