"""Checks the outputs of a project: where they write, and the datasets they register."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from tallybook.errors import Problem, RunError, did_you_mean
from tallybook.model.columns import UNKNOWN
from tallybook.model.datasource import DataSource
from tallybook.model.location import Location
from tallybook.operations.publication import Destination, OutputLocation, Publication
from tallybook.project.bind import BoundProject
from tallybook.project.check_options import check_options
from tallybook.project.check_result import CheckResult
from tallybook.project.dataset_versions import DatasetVersions, registered_dataset
from tallybook.project.entities import DocumentPart
from tallybook.project.load import ProjectEntry
from tallybook.resolve.overlap import Area, area_of
from tallybook.resolve.render import check_template, symbolic
from tallybook.resolve.targets import path_to_write, table_to_write

_OTHER_SPREADSHEETS = (".xls", ".xlsm", ".xlsb", ".ods")


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
        if destination.datasource_id is not None and not checked.knows(
            "datasource", destination.datasource_id, sources
        ):
            message = f"there is no datasource '{destination.datasource_id}'"
            hint = did_you_mean(destination.datasource_id, sources)
            yield here.problem(("datasource_id",), "DataSourceNotFound", message, hint).within(**context)
        templates = {
            "schema": destination.schema_,
            "table": destination.table,
            "location": destination.location and destination.location.path,
        }
        for key, template in templates.items():
            longer = here.find((key, "path")) in here.document.nodes
            steps = (key, "path") if longer else (key,)
            for problem in check_template(here.text(steps) or template) if template else ():
                yield here.locate(problem, *steps).within(**context)
        if destination.location is not None:
            for problem in _check_written_location(destination.location):
                yield here.locate(problem, "location").within(**context)
        arguments = entry.part.below("operations", index, "arguments")
        for key, problem in _check_columns(output, source_of(destination, checked)):
            yield arguments.locate(problem, key).within(**context)
        for problem in _check_location(output, bound, checked, earlier):
            yield here.locate(problem, "location" if destination.location else "table").within(**context)
        yield from (problem.within(**context) for problem in _check_mode(output, here, checked))
        if output.register_as is not None:
            yield from (problem.within(**context) for problem in _check_history(destination, here, checked))
            path = ("operations", index, "arguments", "register_as_dataset")
            refused = _check_registration(output, output.register_as, path, entry, checked)
            yield from (problem.within(**context) for problem in refused)


def _check_written_location(location: OutputLocation) -> Iterator[Problem]:
    yield from check_options(location.source(location.path))
    if location.range is not None:
        message = "`range` is for reading; an output begins in the first cell of its sheet"
        yield Problem("InvalidArguments", message, "remove it", path="range")
    suffix = PurePosixPath(location.path).suffix.lower()
    if location.format is None and suffix in _OTHER_SPREADSHEETS:
        message = f"a file that ends with {suffix} cannot be written"
        hint = "write a workbook with .xlsx; to write a folder of that name, add `format`"
        yield Problem("InvalidDestination", message, hint, path="path")


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
        replaces_period = other.output.mode == "replace_period"
        if relation is None or (same and later.output.mode == "append" and not replaces_period):
            continue
        of_other = f"operation {other.output.seq} '{other.output.name}'"
        hint = "give each output its own location"
        if same and replaces_period:
            hint += ", or write all rows of the period with one output"
        elif same and not later.source.is_one_file(later.area.name):
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
    path, schema = (
        symbolic(text, input.table.name, input.dataset.id) for text in (template, destination.schema_ or "")
    )
    source = source_of(destination, checked)
    if source is None:
        return
    try:
        is_path = destination.location is not None
        target = path_to_write(path, root) if is_path else table_to_write(source, path, root, schema)
    except RunError as error:
        yield error.problem
        return
    writes = Writes(output, source, area_of(Location(source, target)))
    if problem := collision(writes, earlier):
        yield problem
    earlier.append(writes)


def _check_columns(output: Publication, source: DataSource | None) -> Iterator[tuple[str, Problem]]:
    """Yields names and an order that the format of an output cannot store, each with its key."""
    if source is None:
        return
    for name in output.renamed:
        refused = next((letter for letter in name if letter in source.refused_in_names), None)
        if refused is not None:
            shown = "a blank" if refused == " " else f"'{refused}'"
            message = f"a column of type {source.type} cannot have {shown} in its name: '{name}'"
            yield "columns", Problem("InvalidColumnName", message, "use another name, or write csv, json or excel")
    if output.order_by and not source.keeps_order:
        message = f"`order_by` has no effect on a {source.type} table, which keeps no order of rows"
        yield "order_by", Problem("InvalidArguments", message, "remove it, and sort where the table is read")


def source_of(destination: Destination, checked: CheckResult) -> DataSource | None:
    """The datasource of a destination; None if it is not known."""
    if destination.location is not None:
        return destination.location.source(destination.location.path)
    source = checked.definitions.datasources.get(destination.datasource_id or "")
    return None if source is None else source.entity


def _check_mode(output: Publication, here: DocumentPart, checked: CheckResult) -> Iterator[Problem]:
    """Reports an output that replaces the rows of its period where only all rows can be replaced, and one with
    `partition_by` where rows cannot be divided among folders."""
    source = source_of(output.destination, checked)
    table, location = output.destination.table, output.destination.location
    name = location.path if location is not None else table or ""
    if output.partition_by and source is not None and (not source.has_partitions or source.is_one_file(name)):
        what = f"'{name}' is a single file" if source.has_partitions else f"{source.type} has no partitions"
        yield here.problem(
            () if location is None else ("location",),
            "InvalidDestination",
            f"the output has `partition_by`, but {what}",
            "write to a folder, without the extension of a file"
            if source.has_partitions
            else "write Delta or Parquet, or remove `partition_by`",
        )
    if output.mode == "replace_period" and source is not None and not source.replaces_periods:
        yield here.problem(
            () if output.destination.location is None else ("location",),
            "InvalidDestination",
            f"{source.type} cannot replace the rows of one period in one step, as `mode: replace_period` does",
            "write to a datasource of type delta or to a location with `format: delta`; or give each period its own "
            "location, with `{{period}}` in the path and `mode: overwrite`",
        )


def _check_history(destination: Destination, here: DocumentPart, checked: CheckResult) -> Iterator[Problem]:
    """Reports a registered output whose format keeps no versions: a dataset version must always find its own rows."""
    source = source_of(destination, checked)
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
