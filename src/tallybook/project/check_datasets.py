"""What can be wrong with a dataset."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tallybook.errors import Problem, did_you_mean
from tallybook.expressions.functions.comparisons import why_not_comparable
from tallybook.expressions.registry import Argument
from tallybook.model.base import IDENTIFIER_PATTERN
from tallybook.model.columns import RESERVED, ColumnType
from tallybook.model.dataset import Dataset, Table
from tallybook.operations.schema import SourceTable
from tallybook.project.bind import lookup_source
from tallybook.project.catalog import Catalog
from tallybook.project.checked import Checked
from tallybook.project.entities import Part


def check_datasets(checked: Checked) -> Iterator[Problem]:
    """Column names, lookups, keys and resolvers of every dataset."""
    for entry in checked.definitions.datasets.values():
        dataset, part = entry.entity, entry.part
        yield from _check_table(dataset.main_table, part.below("main_table"))
        yield from _check_lookups(dataset, part, checked.catalog)
        for index, name in enumerate(dataset.natural_key_columns):
            if name not in dataset.main_table.business_types:
                hint = did_you_mean(name, dataset.main_table.business_types)
                yield part.problem(
                    ("natural_key_columns", index), "ColumnNotFound", f"there is no column '{name}'", hint
                )
        resolvers = checked.definitions.resolvers
        if dataset.resolver_id is not None and not checked.knows(dataset.resolver_id, resolvers):
            hint = did_you_mean(dataset.resolver_id, resolvers)
            message = f"there is no resolver '{dataset.resolver_id}'"
            yield part.problem(("resolver_id",), "ResolverNotFound", message, hint)


def _check_table(table: Table, part: Part) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, column in enumerate(table.columns):
        path = ("columns", index, "name")
        if column.name in RESERVED:
            hint = "every row has it; leave it out, or choose another name"
            yield part.problem(path, "SystemColumn", f"'{column.name}' is the name of a system column", hint)
        elif not re.fullmatch(IDENTIFIER_PATTERN, column.name):
            hint = "letters, digits and _; the name it has in the data goes under `source`"
            yield part.problem(path, "InvalidColumnName", f"'{column.name}' is not a column name", hint)
        elif column.name.lower() in seen:
            message = f"column '{column.name}' is already there, perhaps in other case"
            yield part.problem(path, "DuplicateColumn", message, "choose another name")
        seen.add(column.name.lower())


def _check_lookups(dataset: Dataset, part: Part, catalog: Catalog) -> Iterator[Problem]:
    taken = {dataset.main_table.name.lower()}
    for index, lookup in enumerate(dataset.lookups):
        here = part.below("lookups", index)
        if lookup.alias.lower() in taken:
            message = f"'{lookup.alias}' is already a table or lookup here"
            yield here.problem(("alias",), "DuplicateColumn", message, "choose another alias")
        taken.add(lookup.alias.lower())
        if isinstance(lookup.target, Table):
            yield from _check_table(lookup.target, here.below("target"))
        source = lookup_source(dataset, lookup.target, catalog)
        if isinstance(source, Problem):
            key = "dataset_version" if source.type == "DatasetVersionNotFound" else "dataset_id"
            yield here.locate(source, "target", key)
        if not isinstance(source, SourceTable):
            continue
        for number, pair in enumerate(lookup.join_conditions):
            columns = {"source_column": dataset.main_table, "target_column": source.table}
            types: list[ColumnType] = []
            for key, table in columns.items():
                name = getattr(pair, key)
                if name in table.business_types:
                    types.append(table.business_types[name])
                else:
                    hint = did_you_mean(name, table.business_types)
                    path = ("join_conditions", number, key)
                    yield here.problem(path, "ColumnNotFound", f"'{table.name}' has no column '{name}'", hint)
            reason = why_not_comparable("=", *map(Argument, types)) if len(types) == 2 else None
            if reason is not None:
                yield here.problem(("join_conditions", number), "TypeMismatch", reason.message, reason.hint)
