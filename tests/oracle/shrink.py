"""Makes a case that shows a difference smaller: fewer operations, columns to assign, rows and lookups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from .case import Body, Case, TableRows

T = TypeVar("T")


def shrunk(case: Case, differs: Callable[[Case], bool], attempts: int = 80) -> Case:
    """The smallest case found that still differs, one removal after the other."""
    again = True
    while again:
        again = False
        for candidate in _smaller(case):
            attempts -= 1
            if attempts < 0:
                return case
            if differs(candidate):
                case, again = candidate, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    operations = case.project["operations"]
    ordered = sorted(range(len(operations)), key=lambda i: -operations[i]["seq"])
    if len(operations) > 1:
        yield from (case.with_project(operations=_without(operations, index)) for index in ordered)
    for index, operation in enumerate(operations):
        for smaller in _smaller_operation(operation):
            yield case.with_project(operations=[*operations[:index], smaller, *operations[index + 1 :]])
    for name, table in case.tables.items():
        for index in range(len(table.rows)):
            rows = TableRows(table.types, _without(table.rows, index))
            yield replace(case, tables={**case.tables, name: rows})


def _smaller_operation(operation: Body) -> Iterator[Body]:
    if "selector" in operation:
        yield {key: value for key, value in operation.items() if key != "selector"}
    arguments = operation.get("arguments", {})
    for key in ("assignments", "aggregations", "joins", "group_by"):
        parts = arguments.get(key, [])
        if len(parts) > (0 if key == "joins" else 1):
            for index in range(len(parts)):
                yield {**operation, "arguments": {**arguments, key: _without(parts, index)}}


def _without(items: Sequence[T], index: int) -> list[T]:
    return [*items[:index], *items[index + 1 :]]
