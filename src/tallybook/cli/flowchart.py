"""Draws a plan as a Mermaid flowchart: the tables it reads, the operations in their order, and what they write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallybook.documents.plan import PlanDocument, PlannedOperation


def flowchart(plan: PlanDocument) -> Iterator[str]:
    """Yields the lines of the flowchart."""
    from tallybook.documents.plan import PlannedOutput

    yield "flowchart TD"
    yield f"  start[({_text(plan.input)})]"
    tables = {table: f"t{number}" for number, table in enumerate(_tables(plan), 1)}
    for table, node in tables.items():
        yield f"  {node}[({_text(table)})]"
    before = "start"
    for operation in plan.operations:
        node = f"o{operation.seq}"
        yield f"  {node}[{_text(f'{operation.seq}. {operation.type}', operation.name)}]"
        yield f"  {before} --> {node}"
        for join in operation.joins:
            yield f"  {tables[join.table]} -. {_text(join.alias)} .-> {node}"
        for table in _whole_tables(operation):
            yield f"  {tables[table]} --> {node}"
        if isinstance(operation, PlannedOutput):
            yield f"  {node} --> w{operation.seq}[({_text(_last(operation.destination))})]"
        else:
            before = node


def _tables(plan: PlanDocument) -> list[str]:
    """The tables that operations read, each once."""
    return list(dict.fromkeys(table for operation in plan.operations for table in operation.reads))


def _whole_tables(operation: PlannedOperation) -> list[str]:
    """The tables that an operation reads without joining them to its rows."""
    joined = {join.table for join in operation.joins}
    return [table for table in dict.fromkeys(operation.reads) if table not in joined]


def _last(destination: str) -> str:
    """The format of a destination and the last part of its path."""
    format, _, path = destination.partition(" ")
    return f"{format} {path.rpartition('/')[2]}"


def _text(*lines: str) -> str:
    """Text in quotation marks. Mermaid reads characters of its own language as they are when written as numbers."""
    coded = ("".join(c if c.isalnum() or c in " .,_-" else f"#{ord(c)};" for c in line) for line in lines)
    return f'"{"<br>".join(coded)}"'
