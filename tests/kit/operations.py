"""Builds frames of orders and operations in Python, applies operations to frames, and reads rows back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.frames import apply_operations
from tallybook.model.dataset import Dataset

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)

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


ACCOUNT_LOOKUP = {
    "alias": "account",
    "target": {"dataset_id": "accounts"},
    "join_conditions": [{"source_column": "code", "target_column": "id"}],
}
"""A lookup of `accounts` by the column `code`."""


def text_dataset(id: str, columns: Sequence[str], **more: Any) -> Dataset:
    """A dataset whose columns are texts."""
    table = {"name": id, "columns": [{"name": name, "type": "string"} for name in columns]}
    return Dataset.model_validate({"id": id, "name": id, "main_table": table, **more}, strict=False)
