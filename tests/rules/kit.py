"""What rule tests share: the mark that ties a test to a rule, problems of a project, rows of a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.frames import apply_operations
from tallybook.errors import Problem
from tallybook.project.check import check
from tallybook.project.load import load_definitions

T = TypeVar("T", bound=Callable[..., Any])
NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)

DATASETS = """
    dataset:
      id: sales
      name: Sales
      main_table:
        name: orders
        temporal_mode: period
        columns:
          - {name: order_id, type: string}
          - {name: region, type: string}
          - {name: status, type: string}
          - {name: amount, type: "decimal(10,2)"}
          - {name: quantity, type: integer}
    ---
    dataset:
      id: customers
      name: Customers
      main_table: {name: customers, columns: [{name: id, type: string}, {name: tier, type: string}]}
    ---
    dataset:
      id: budget
      name: Budget
      main_table:
        name: budget
        columns:
          - {name: region, type: string}
          - {name: amount, type: "decimal(10,2)"}
          - {name: budget_type, type: string}
    ---
    datasource: {id: files, type: csv, options: {path_prefix: data}}
    ---
    resolver:
      id: all
      is_default: true
      rules: [{name: all, strategy: {type: path, datasource_id: files, path: "{{table_name}}.csv"}}]
"""


def rule(*ids: str) -> Callable[[T], T]:
    """Ties a test to the rules it shows; the reference page lists them from here."""

    def mark(test: T) -> T:
        return test

    assert ids
    return mark


def problems_of(folder: Path, operations: str, *, head: str = "", datasets: str = DATASETS) -> list[Problem]:
    """The problems of a project over `sales` with these operations."""
    (folder / "tallybook.yaml").write_text("name: rules\n")
    (folder / "datasets.yaml").write_text(dedent(datasets))
    body = f"project:\n  id: p\n  name: P\n  input_dataset_id: sales\n{_indent(head, 2)}  operations:\n"
    (folder / "project.yaml").write_text(body + _indent(operations, 4))
    return list(check(load_definitions(folder)).problems)


def _indent(text: str, width: int) -> str:
    lines = dedent(text).strip("\n").splitlines()
    return "".join(f"{' ' * width}{line}\n" for line in lines)


def types(problems: Iterable[Problem]) -> list[str]:
    return [problem.type for problem in problems]


ORDERS = (
    "order_id string, region string, status string, amount decimal(10,2), quantity bigint, _period string, "
    "_deleted boolean"
)


def orders(spark: SparkSession, *rows: Sequence[Any]) -> DataFrame:
    """Orders of 2026-01: order_id, region, status, amount, quantity, and optionally `_deleted`."""
    from decimal import Decimal

    full = [(*row[:3], _decimal(row[3], Decimal), row[4], "2026-01", row[5] if len(row) > 5 else False) for row in rows]
    return spark.createDataFrame(full, ORDERS)


def _decimal(value: Any, make: Callable[[str], Any]) -> Any:
    return None if value is None else make(str(value))


def applied(frame: DataFrame, *operations: Mapping[str, Any], **options: Any) -> DataFrame:
    """The working dataset after operations; seq and name are filled in."""
    named = [{"seq": i, "name": f"step {i}", **operation} for i, operation in enumerate(operations, start=1)]
    return apply_operations(frame, named, **{"period": "2026-01", "table": "orders", "timestamp": NOW, **options})


def rows(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """Cells of some columns, numbers as text, in a fixed order."""
    from decimal import Decimal

    def shown(value: Any) -> Any:
        return str(value) if isinstance(value, Decimal) else value

    found = [tuple(shown(value) for value in row) for row in frame.select(*columns).collect()]
    return sorted(found, key=lambda row: tuple((value is None, str(value)) for value in row))


def update(selector: str | None = None, **assignments: str) -> dict[str, Any]:
    listed = [{"column": column, "expression": expression} for column, expression in assignments.items()]
    return {"type": "update", "arguments": {"assignments": listed}} | ({"selector": selector} if selector else {})


def delete(selector: str) -> dict[str, Any]:
    return {"type": "delete", "selector": selector}


def aggregate(group_by: Sequence[str], selector: str | None = None, **results: str) -> dict[str, Any]:
    listed = [{"column": column, "expression": expression} for column, expression in results.items()]
    arguments = {"group_by": list(group_by), "aggregations": listed}
    return {"type": "aggregate", "arguments": arguments} | ({"selector": selector} if selector else {})


def append(dataset: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "append", "arguments": {"source": {"dataset_id": dataset}, **arguments}}
