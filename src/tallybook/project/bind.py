"""One project against its datasets: operations in order, the schema as it changes, typed steps and problems out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tallybook.errors import Problem
from tallybook.expressions.scope import ANY_TABLE
from tallybook.model.columns import SYSTEM_COLUMNS
from tallybook.model.dataset import Dataset, DatasetRef, Table
from tallybook.operations.base import Binding, Operation, Step
from tallybook.operations.base import Catalog as DatasetFinder
from tallybook.operations.schema import LookupTable, SourceTable, WorkingSchema
from tallybook.project.entities import Part
from tallybook.project.model import ProjectHead
from tallybook.source import Place, SourceText


@dataclass(frozen=True)
class BoundProject:
    """A checked project: the input and the steps. Complete when `problems` is empty."""

    head: ProjectHead
    input: SourceTable | None
    schema: WorkingSchema | None
    steps: tuple[Step, ...]
    problems: tuple[Problem, ...]


def bind_project(
    head: ProjectHead, operations: Sequence[Operation | None], catalog: DatasetFinder, part: Part | None = None
) -> BoundProject:
    """Checks operations in ascending seq. Without `part` (a project made in code) problems have no places."""
    found = catalog.find(DatasetRef(dataset_id=head.input_dataset_id, dataset_version=head.input_dataset_version))
    problems: list[Problem] = []
    if isinstance(found, Problem):
        key = "input_dataset_version" if found.type == "DatasetVersionNotFound" else "input_dataset_id"
        placed = part.locate(found, key) if part else replace(found, path=f"project.{key}")
        problems.append(placed.within(project=head.id))
    source, schema = None, _unknown_schema()
    if isinstance(found, Dataset):
        source = SourceTable(found, found.main_table, catalog.is_open(found.id))
        schema = working_schema(found, catalog)
    first = schema
    selectors = _selectors(head, part)
    steps: list[Step] = []
    for index, operation in _in_order(operations):
        if operation is None:
            schema = replace(schema, open=True)
            continue
        binding = _binding(operation, index, schema, catalog, selectors, part)
        step = operation.bind(binding)
        problems += [problem.within(project=head.id) for problem in binding.problems]
        schema = step.after if step is not None else binding.after or schema
        steps += [step] if step is not None else []
    return BoundProject(head, source, first if source else None, tuple(steps), tuple(problems))


def _unknown_schema() -> WorkingSchema:
    """The rows of an input nobody found: what does not depend on its columns is checked all the same."""
    return WorkingSchema(ANY_TABLE, {}, SYSTEM_COLUMNS, open=True)


def working_schema(dataset: Dataset, catalog: DatasetFinder) -> WorkingSchema:
    """The schema of the input rows, with the dataset's lookups in sight. Lookups that are wrong are left out."""
    table = dataset.main_table
    lookups: dict[str, LookupTable] = {}
    for lookup in dataset.lookups:
        source = lookup_source(dataset, lookup.target, catalog)
        if isinstance(source, SourceTable):
            pairs = tuple((condition.source_column, condition.target_column) for condition in lookup.join_conditions)
            lookups[lookup.alias] = LookupTable(lookup.alias, source, pairs)
    return WorkingSchema(
        table.name, table.business_types, table.system_types, lookups, open=catalog.is_open(dataset.id)
    )


def lookup_source(dataset: Dataset, target: Table | DatasetRef, catalog: DatasetFinder) -> SourceTable | Problem | None:
    """The table a lookup reads: one of its own dataset, or the main table of another. None as in `find`."""
    if isinstance(target, Table):
        return SourceTable(dataset, target)
    found = catalog.find(target)
    return SourceTable(found, found.main_table, catalog.is_open(found.id)) if isinstance(found, Dataset) else found


def _in_order(operations: Sequence[Operation | None]) -> list[tuple[int, Operation | None]]:
    """By seq; one that could not be read stays behind the one it was written after."""
    keyed: list[tuple[int, int, Operation | None]] = []
    last = 0
    for index, operation in enumerate(operations):
        last = operation.seq if operation is not None else last
        keyed.append((last, index, operation))
    return [(index, operation) for _, index, operation in sorted(keyed, key=lambda item: item[:2])]


def _selectors(head: ProjectHead, part: Part | None) -> dict[str, SourceText]:
    written = {name: part.text(("selectors", name)) if part else None for name in head.selectors}
    return {name: written[name] or SourceText(text) for name, text in head.selectors.items()}


def _binding(
    operation: Operation,
    index: int,
    schema: WorkingSchema,
    catalog: DatasetFinder,
    selectors: Mapping[str, SourceText],
    part: Part | None,
) -> Binding:
    binding = Binding(operation, schema, catalog, selectors)
    if part is None:
        return binding
    here = part.below("operations", index)

    def locate(path: tuple[str | int, ...]) -> Place:
        return here.place(path)

    return replace(binding, locate=locate, text_at=here.text, path_of=here.find)
