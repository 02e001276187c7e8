"""Checks datasets and their lookups."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tallybook.errors import Problem, did_you_mean
from tallybook.model.base import IDENTIFIER_PATTERN
from tallybook.model.columns import PERIOD, VALID_FROM, VALID_TO, folded, system_column, why_reserved
from tallybook.model.dataset import Dataset, Table
from tallybook.project.bind import lookup_table, pair_problems
from tallybook.project.check_result import CheckResult
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.entities import DocumentPart
from tallybook.project.yaml import Path

_SPARKS_OWN = "_metadata"
"""The hidden column in which Spark keeps the file of a row."""


def check_datasets(checked: CheckResult) -> Iterator[Problem]:
    """Checks the column names, keys and resolvers of every dataset."""
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
        if dataset.resolver_id is not None and not checked.knows("resolver", dataset.resolver_id, resolvers):
            hint = did_you_mean(dataset.resolver_id, resolvers)
            message = f"there is no resolver '{dataset.resolver_id}'"
            yield part.problem(("resolver_id",), "ResolverNotFound", message, hint)


def _check_table(table: Table, part: DocumentPart) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, column in enumerate(table.columns):
        path = ("columns", index, "name")
        if reason := why_reserved(column.name):
            hint = "every row has the system columns; remove it, or choose another name"
            yield part.problem(path, "SystemColumn", reason, hint)
        elif not re.fullmatch(IDENTIFIER_PATTERN, column.name):
            hint = "use letters, digits and _; write the name in the data under `source`"
            yield part.problem(path, "InvalidColumnName", f"'{column.name}' is not a column name", hint)
        elif folded(column.name) in seen:
            message = f"column '{column.name}' is defined twice; case does not make names different"
            yield part.problem(path, "DuplicateColumn", message, "choose another name")
        seen.add(folded(column.name))
    yield from _check_names_in_data(table, part)


_TEMPORAL_KEYS = {PERIOD: "period_column", VALID_FROM: "valid_from_column", VALID_TO: "valid_to_column"}


def _check_names_in_data(table: Table, part: DocumentPart) -> Iterator[Problem]:
    """Checks the names of columns in the data: Spark must be able to tell them apart, and none may be reserved."""
    names: dict[Path, str] = {
        ("columns", index, "source" if column.source else "name"): column.physical
        for index, column in enumerate(table.columns)
    }
    names |= {(key,): getattr(table, key) for key in _TEMPORAL_KEYS.values()}
    seen: dict[str, str] = {}
    for path, name in names.items():
        twin = seen.setdefault(folded(name), name)
        system, reason = system_column(name), why_reserved(name)
        if folded(name) == _SPARKS_OWN:
            message = f"Spark reserves the column name '{_SPARKS_OWN}'"
            yield part.problem(path, "InvalidColumnName", message, "rename the column in the data")
        elif path[-1] == "source" and reason is not None and name != system:
            yield part.problem(path, "SystemColumn", reason, f"write '{system}', or rename the column in the data")
        elif path[0] != "columns" and reason is not None and path[0] != _TEMPORAL_KEYS.get(system or ""):
            yield part.problem(path, "SystemColumn", reason, "choose another column")
        elif path[-1] != "name" and reason is None and twin != name:
            message = f"'{name}' differs from '{twin}' only by case, and Spark cannot tell such columns apart"
            yield part.problem(path, "DuplicateColumn", message, "rename one of them in the data")


def check_lookups(checked: CheckResult) -> Iterator[Problem]:
    """Checks the lookups of every dataset. Runs after the projects, because lookups can read datasets they register."""
    for entry in checked.definitions.datasets.values():
        yield from _check_lookups(entry.entity, entry.part, checked.datasets)


def _check_lookups(dataset: Dataset, part: DocumentPart, catalog: DatasetVersions) -> Iterator[Problem]:
    taken = {folded(dataset.main_table.name)}
    for index, lookup in enumerate(dataset.lookups):
        here = part.below("lookups", index)
        if folded(lookup.alias) in taken:
            message = f"'{lookup.alias}' is already a table or lookup here"
            yield here.problem(("alias",), "DuplicateColumn", message, "choose another alias")
        taken.add(folded(lookup.alias))
        if isinstance(lookup.target, Table):
            yield from _check_table(lookup.target, here.below("target"))
        target = lookup_table(dataset, lookup, catalog)
        if isinstance(target, Problem):
            key = "dataset_version" if target.type == "DatasetVersionNotFound" else "dataset_id"
            yield here.locate(target, "target", key)
        elif target is not None:
            yield from (here.locate(problem, *path) for path, problem in pair_problems(dataset.main_table, target))
