"""Binds a project to its datasets: checks its operations in order and returns typed steps and problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tallybook.errors import Problem, did_you_mean
from tallybook.expressions.functions.comparisons import why_not_comparable
from tallybook.expressions.parameters import check_parameters
from tallybook.expressions.registry import Argument
from tallybook.expressions.scope import ANY_TABLE, PARAMETERS
from tallybook.model.columns import SYSTEM_COLUMNS, UNKNOWN, ColumnType, folded
from tallybook.model.dataset import Dataset, DatasetRef, Lookup, Table
from tallybook.operations.base import Operation, Step
from tallybook.operations.binding import Binding, DatasetFinder
from tallybook.operations.schema import LookupTable, SourceTable, WorkingSchema
from tallybook.project.entities import DocumentPart
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
    head: ProjectHead,
    operations: Sequence[Operation | None],
    catalog: DatasetFinder,
    part: DocumentPart | None = None,
    *,
    pinned: bool | None = None,
) -> BoundProject:
    """Checks operations in ascending seq. Without `part` (a project made in code) problems have no position. `pinned`
    says whether the rows of the input are those of the version in `head`; by default they are if it has one."""
    dataset = catalog.find(DatasetRef(dataset_id=head.input_dataset_id, dataset_version=head.input_dataset_version))
    problems: list[Problem] = []
    if isinstance(dataset, Problem):
        key = "input_dataset_version" if dataset.type == "DatasetVersionNotFound" else "input_dataset_id"
        placed = part.locate(dataset, key) if part else replace(dataset, path=f"project.{key}")
        problems.append(placed.within(project=head.id))
    source, schema = None, _unknown_schema()
    if isinstance(dataset, Dataset):
        pinned = head.input_dataset_version is not None if pinned is None else pinned
        source = SourceTable(dataset, dataset.main_table, catalog.is_open(dataset.id), pinned=pinned)
        schema = working_schema(dataset, catalog)
    first = schema
    problems += [problem.within(project=head.id) for problem in _parameter_problems(head, schema, part)]
    selectors = _selectors(head, part)
    steps: list[Step] = []
    for index, operation in _in_order(operations):
        if operation is None:
            schema = replace(schema, open=True)
            continue
        binding = _binding(operation, index, schema, catalog, selectors, part)
        binding.parameters = {name: parameter.type for name, parameter in head.parameters.items()}
        step = operation.bind(binding)
        problems += [problem.within(project=head.id) for problem in binding.problems]
        schema = step.after if step is not None else binding.after or schema
        steps += [step] if step is not None else []
    return BoundProject(head, source, first if source else None, tuple(steps), tuple(problems))


def _parameter_problems(head: ProjectHead, schema: WorkingSchema, part: DocumentPart | None) -> Iterator[Problem]:
    """Yields wrong names and defaults of parameters, and a table whose name is the one that parameters are read by."""
    for path, problem in check_parameters(head.parameters):
        yield part.locate(problem, "parameters", *path) if part else problem
    taken = {schema.table: "the table", **dict.fromkeys((*schema.lookups, *schema.missing), "the lookup")}
    for name, kind in taken.items() if head.parameters else ():
        if folded(name) == PARAMETERS:
            message = f"parameters are read as {PARAMETERS}.NAME, but {kind} '{name}' of the input has that name"
            hint = f"rename {kind}, or remove the parameters"
            problem = Problem("DuplicateColumn", message, hint)
            yield part.locate(problem, "parameters") if part else problem


def _unknown_schema() -> WorkingSchema:
    """Returns the schema of an input that was not found, so that everything else can still be checked."""
    return WorkingSchema(ANY_TABLE, {}, SYSTEM_COLUMNS, open=True)


def working_schema(dataset: Dataset, catalog: DatasetFinder) -> WorkingSchema:
    """Returns the schema of the input rows and lookups. A lookup whose table does not exist is a problem only if an
    operation reads it."""
    table = dataset.main_table
    lookups: dict[str, LookupTable] = {}
    missing: dict[str, Problem] = {}
    for lookup in dataset.lookups:
        target = lookup_table(dataset, lookup, catalog)
        if isinstance(target, LookupTable):
            lookups[lookup.alias] = target
        elif target is not None:
            missing[lookup.alias] = replace(target, message=f"{target.message}; lookup '{lookup.alias}' reads it")
    return WorkingSchema(
        table.name,
        table.business_types,
        table.system_types,
        lookups,
        missing,
        natural_key=tuple(dataset.natural_key_columns),
        open=catalog.is_open(dataset.id),
    )


def lookup_table(dataset: Dataset, lookup: Lookup, catalog: DatasetFinder) -> LookupTable | Problem | None:
    """Returns a lookup with its table: one of its own dataset, or the main table of another. None as in `find`."""
    pairs = tuple((condition.source_column, condition.target_column) for condition in lookup.join_conditions)
    if isinstance(lookup.target, Table):
        return LookupTable(lookup.alias, SourceTable(dataset, lookup.target), pairs)
    target = catalog.find(lookup.target)
    if not isinstance(target, Dataset):
        return target
    pinned = lookup.target.dataset_version is not None
    source = SourceTable(target, target.main_table, catalog.is_open(target.id), pinned=pinned)
    return LookupTable(lookup.alias, source, pairs)


def pair_problems(table: Table, lookup: LookupTable) -> Iterator[tuple[tuple[str | int, ...], Problem]]:
    """Yields the problems of the columns a lookup joins on, each with its path in the lookup.

    `table` is the table that has the lookup. Unknown columns of an open table are not reported.
    """
    sides = (("source_column", table, False), ("target_column", lookup.source.table, lookup.source.open))
    for number, pair in enumerate(lookup.pairs):
        types: list[ColumnType] = []
        for name, (key, side, open) in zip(pair, sides, strict=True):
            if name in side.business_types:
                types.append(side.business_types[name])
            elif not open:
                hint = did_you_mean(name, side.business_types)
                problem = Problem("ColumnNotFound", f"'{side.name}' has no column '{name}'", hint)
                yield ("join_conditions", number, key), problem
        reason = why_not_comparable("=", *map(Argument, types)) if len(types) == 2 and UNKNOWN not in types else None
        if reason is not None:
            yield ("join_conditions", number), Problem("TypeMismatch", reason.message, reason.hint)


def _in_order(operations: Sequence[Operation | None]) -> list[tuple[int, Operation | None]]:
    """Sorts operations by seq; one that could not be read follows the one written before it."""
    keyed: list[tuple[int, int, Operation | None]] = []
    last = 0
    for index, operation in enumerate(operations):
        last = operation.seq if operation is not None else last
        keyed.append((last, index, operation))
    return [(index, operation) for _, index, operation in sorted(keyed, key=lambda item: item[:2])]


def _selectors(head: ProjectHead, part: DocumentPart | None) -> dict[str, SourceText]:
    written = {name: part.text(("selectors", name)) if part else None for name in head.selectors}
    return {name: written[name] or SourceText(text) for name, text in head.selectors.items()}


def _binding(
    operation: Operation,
    index: int,
    schema: WorkingSchema,
    catalog: DatasetFinder,
    selectors: Mapping[str, SourceText],
    part: DocumentPart | None,
) -> Binding:
    binding = Binding(operation, schema, catalog, selectors)
    if part is None:
        return binding
    here = part.below("operations", index)

    def locate(path: tuple[str | int, ...]) -> Place:
        return here.place(path)

    return replace(binding, locate=locate, text_at=here.text, path_of=here.find)
