"""What can be wrong with a dataset."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tallybook.errors import Problem, did_you_mean
from tallybook.model.base import IDENTIFIER_PATTERN
from tallybook.model.columns import RESERVED
from tallybook.model.dataset import Dataset, Table
from tallybook.project.bind import lookup_table, pair_problems
from tallybook.project.catalog import Catalog
from tallybook.project.checked import Checked
from tallybook.project.entities import Part


def check_datasets(checked: Checked) -> Iterator[Problem]:
    """Column names, keys and resolvers of every dataset."""
    for entry in checked.definitions.datasets.values():
        dataset, part = entry.entity, entry.part
        yield from _check_table(dataset.main_table, part.below("main_table"))
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


def check_lookups(checked: Checked) -> Iterator[Problem]:
    """The lookups of every dataset; after the projects, for a lookup may read what one of them registers."""
    for entry in checked.definitions.datasets.values():
        yield from _check_lookups(entry.entity, entry.part, checked.catalog)


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
        found = lookup_table(dataset, lookup, catalog)
        if isinstance(found, Problem):
            key = "dataset_version" if found.type == "DatasetVersionNotFound" else "dataset_id"
            yield here.locate(found, "target", key)
        elif found is not None:
            yield from (here.locate(problem, *path) for path, problem in pair_problems(dataset.main_table, found))
