"""Writes the workspaces that the engine runs. Definitions are mappings: JSON is YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from _kit import Way

from tallybook.workspace import Workspace

PERIOD = "2026-01"
Definition = dict[str, Any]


def dataset(
    table: str, columns: Mapping[str, str], *, monthly: bool = False, period_column: bool = False
) -> Definition:
    """Returns a dataset with one table. A monthly one has a folder for each month; one with a period column has the
    rows of all periods in one folder."""
    listed = [{"name": name, "type": type} for name, type in columns.items()]
    mode = {"temporal_mode": "period"} if monthly or period_column else {}
    main = {"name": table, "columns": listed, **mode}
    resolver = {"resolver_id": "monthly"} if monthly else {}
    return {"dataset": {"id": table, "name": table, "main_table": main, **resolver}}


def update(selector: str | None = None, joins: Sequence[Mapping[str, str]] = (), **assignments: str) -> Definition:
    listed = [{"column": column, "expression": text} for column, text in assignments.items()]
    return _operation("update", selector, {"assignments": listed} | ({"joins": list(joins)} if joins else {}))


def join(dataset_id: str, on: str) -> dict[str, str]:
    return {"alias": dataset_id, "dataset_id": dataset_id, "on": on}


def aggregate(group_by: Sequence[str], selector: str | None = None, **aggregations: str) -> Definition:
    listed = [{"column": column, "expression": text} for column, text in aggregations.items()]
    return _operation("aggregate", selector, {"group_by": list(group_by), "aggregations": listed})


def output(table: str, columns: Sequence[str] = (), selector: str | None = None, **more: object) -> Definition:
    destination = {"datasource_id": "warehouse", "table": table}
    listed = {"columns": list(columns)} if columns else {}
    return _operation("output", selector, {"destination": destination, **listed, **more})


def delete(selector: str) -> Definition:
    return _operation("delete", selector, {})


def append(dataset_id: str, **more: object) -> Definition:
    return _operation("append", None, {"source": {"dataset_id": dataset_id}, **more})


def allocate(amount: str, dataset_id: str, driver: str, **columns: str) -> Definition:
    new = [{"column": column, "expression": text} for column, text in columns.items()]
    return _operation(
        "allocate", None, {"amount": amount, "to": {"dataset_id": dataset_id}, "driver": driver, "set": new}
    )


def _operation(type: str, selector: str | None, arguments: Definition) -> Definition:
    return {"type": type, "arguments": arguments} | ({"selector": selector} if selector else {})


def write_workspace(
    folder: Path,
    data: Path,
    datasets: Sequence[Definition],
    operations: Sequence[Definition],
    *,
    warehouse: str = "parquet",
    selectors: Mapping[str, str] | None = None,
) -> Path:
    """Writes a workspace with one project, `bench`, over the first dataset. It reads Parquet files below `data`.

    `warehouse` is the format of the folder for outputs, or the url of a database.
    """
    numbered = [{"seq": seq, "name": f"{op['type']} {seq}", **op} for seq, op in enumerate(operations, start=1)]
    project = {"id": "bench", "name": "bench", "input_dataset_id": datasets[0]["dataset"]["id"]}
    path = {"type": "path", "datasource_id": "data"}
    month = {"name": "month", "data_level": "month", "strategy": {**path, "path": "{{table_name}}/{{period}}"}}
    all_periods = {"name": "all", "data_level": "any", "strategy": {**path, "path": "{{table_name}}"}}
    files = {"type": warehouse, "options": {"path_prefix": "warehouse"}}
    written = {"type": "database", "options": {"url": warehouse}} if "://" in warehouse else files
    documents = [
        {"datasource": {"id": "data", "type": "parquet", "options": {"path_prefix": str(data)}}},
        {"datasource": {"id": "warehouse", **written}},
        {"resolver": {"id": "monthly", "rules": [month]}},
        {"resolver": {"id": "all", "is_default": True, "rules": [all_periods]}},
        *datasets,
        {"project": {**project, "selectors": dict(selectors or {}), "operations": numbered}},
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tallybook.yaml").write_text("name: bench\n", encoding="utf-8")
    (folder / "all.yaml").write_text("\n---\n".join(json.dumps(document) for document in documents), encoding="utf-8")
    return folder


def engine_way(folder: Path, tables: Sequence[str], project: str = "bench", period: str = PERIOD) -> Way:
    """Opens and activates the project; every turn is a whole run that is recorded and published."""
    opened = Workspace.open(folder)
    opened.activate(project)
    return Way(partial(opened.run, project, period), tuple(folder / "warehouse" / table for table in tables))
