"""A workspace in which a test chooses every name. With any names, the result has the same numbers, or is a problem."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tallybook.errors import Problem, ProblemError
from tallybook.workspace import Workspace

PERIOD = "2026-01"


@dataclass(frozen=True)
class Names:
    """The names that a user may choose. Those ending in `_source` are the names in the data."""

    dataset: str = "sales"
    project: str = "close"
    table: str = "orders"
    lookup: str = "cust"
    lookup_table: str = "customers"
    join: str = "t"
    selector: str = "big"
    id: str = "id"
    region: str = "region"
    amount: str = "amount"
    net: str = "net"
    total: str = "total"
    tier: str = "tier"
    key: str = "key"
    id_source: str = "id"
    region_source: str = "region"
    amount_source: str = "amount"
    tier_source: str = "tier"
    period_column: str = "_period"
    output: str = "out"
    operation: str = "Net"


@dataclass(frozen=True)
class Case:
    """Names, two texts that rows hold, and the format of the data."""

    names: Names = field(default_factory=Names)
    emea: str = "EMEA"
    apac: str = "APAC"
    format: str = "csv"

    @property
    def expected(self) -> list[tuple[str | None, ...]]:
        """The rows that the run must write, without their column names."""
        return in_order(
            [
                ("a", self.emea, self.emea, "gold", "90", None),
                ("b", self.apac, self.apac, "silver", "20", None),
                ("c", self.emea, self.emea, "gold", "180", None),
                (None, self.apac, None, None, None, "20"),
                (None, self.emea, None, None, None, "270"),
                (None, self.emea, None, None, "7", None),
            ]
        )

    def __str__(self) -> str:
        plain = Case(format=self.format)
        names = {key: value for key, value in vars(self.names).items() if value != getattr(plain.names, key)}
        return f"Case(replace(Names(), **{names!r}), {self.emea!r}, {self.apac!r}, {self.format!r})"


def text(value: str) -> str:
    """A text in an expression."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def quoted(name: str) -> str:
    """A name in an expression."""
    return "`" + name.replace("`", "``") + "`"


def documents(case: Case) -> Iterator[dict[str, Any]]:
    """The workspace's documents."""
    n = case.names
    strategy = {"type": "path", "datasource_id": "files"}
    yield {"datasource": {"id": "files", "type": case.format, "options": {"path_prefix": "data"}}}
    yield {"datasource": {"id": "lake", "type": "parquet", "options": {"path_prefix": "lake"}}}
    rules = [
        {"name": table, "when": f"table.name = {text(table)}", "strategy": strategy | {"path": folder}}
        for table, folder in ((n.table, "orders"), (n.lookup_table, "customers"), ("targets", "targets"))
    ]
    yield {"resolver": {"id": "all", "is_default": True, "rules": rules}}
    yield {
        "dataset": {
            "id": n.dataset,
            "name": "Sales",
            "main_table": {
                "name": n.table,
                "temporal_mode": "period",
                "period_column": n.period_column,
                "columns": [
                    {"name": n.id, "type": "string", "source": n.id_source},
                    {"name": n.region, "type": "string", "source": n.region_source},
                    {"name": n.amount, "type": "decimal(10,2)", "source": n.amount_source},
                ],
            },
            "lookups": [
                {
                    "alias": n.lookup,
                    "target": {
                        "name": n.lookup_table,
                        "columns": [
                            {"name": n.key, "type": "string"},
                            {"name": n.tier, "type": "string", "source": n.tier_source},
                        ],
                    },
                    "join_conditions": [{"source_column": n.region, "target_column": n.key}],
                }
            ],
        }
    }
    yield {
        "dataset": {
            "id": "targets",
            "name": "Targets",
            "main_table": {
                "name": "targets",
                "columns": [{"name": n.region, "type": "string"}, {"name": n.amount, "type": "decimal(10,2)"}],
            },
        }
    }
    yield {"project": project(case)}


def project(case: Case) -> dict[str, Any]:
    """One operation of each type."""
    n = case.names
    table, amount, region = quoted(n.table), quoted(n.amount), quoted(n.region)
    own, joined = f"{table}.{amount}", f"{quoted(n.join)}.{region}"
    return {
        "id": n.project,
        "name": "Close",
        "input_dataset_id": n.dataset,
        "selectors": {n.selector: f"{own} > 50"},
        "operations": [
            {
                "seq": 1,
                "name": n.operation,
                "type": "update",
                "selector": f"{{{{{n.selector}}}}} OR TRUE",
                "arguments": {
                    "joins": [
                        {
                            "alias": n.join,
                            "dataset_id": "targets",
                            "on": f"{quoted(n.join)}.{region} = {table}.{region}",
                        }
                    ],
                    "assignments": [
                        {
                            "column": n.net,
                            "expression": f"{own} * IF({own} > 50, 0.9, 1)",
                        },
                        {"column": "label", "expression": f"{quoted(n.lookup)}.{quoted(n.tier)}"},
                        {"column": "joined", "expression": joined},
                    ],
                },
            },
            {"seq": 2, "name": "Drop", "type": "delete", "selector": f"{quoted(n.id)} = 'd'"},
            {
                "seq": 3,
                "name": "Totals",
                "type": "aggregate",
                "arguments": {
                    "group_by": [region],
                    "aggregations": [{"column": n.total, "expression": f"SUM({quoted(n.net)})"}],
                },
            },
            {
                "seq": 4,
                "name": "More",
                "type": "append",
                "arguments": {
                    "source": {"dataset_id": "targets"},
                    "source_selector": f"{region} = {text(case.emea)}",
                    "aggregation": {
                        "group_by": [region],
                        "aggregations": [{"column": n.net, "expression": f"SUM({amount})"}],
                    },
                },
            },
            {
                "seq": 5,
                "name": "Write",
                "type": "output",
                "arguments": {
                    "destination": {"datasource_id": "lake", "table": n.output},
                    "columns": [n.id, n.region, "joined", "label", n.net, n.total],
                },
            },
        ],
    }


def write(case: Case, root: Path) -> None:
    """The workspace and its data on disk."""
    n = case.names
    (root / "tallybook.yaml").write_text("name: hostile\nsandbox: box\n")
    for index, document in enumerate(documents(case)):
        (root / f"{index}.yaml").write_text(json.dumps(document), encoding="utf-8")
    orders = {
        n.id_source: ["a", "b", "c", "d"],
        n.region_source: [case.emea, case.apac, case.emea, case.apac],
        n.amount_source: ["100.00", "20.00", "200.00", "1.00"],
        n.period_column: [PERIOD] * 4,
    }
    customers = {n.key: [case.emea, case.apac], n.tier_source: ["gold", "silver"]}
    targets = {n.region: [case.emea, case.apac], n.amount: ["7.00", "8.00"]}
    for name, columns in (("orders", orders), ("customers", customers), ("targets", targets)):
        folder = root / "data" / name
        folder.mkdir(parents=True)
        _write_rows(folder / f"rows.{case.format}", columns, case.format, {n.amount_source, n.amount})


def _write_rows(file: Path, columns: Mapping[str, list[str]], format: str, decimals: set[str]) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if format == "csv":
        with file.open("w", newline="", encoding="utf-8") as opened:
            writer = csv.writer(opened)
            writer.writerow(columns)
            writer.writerows(row.values() for row in rows)
    elif format == "json":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        arrays = {
            name: pa.array(values).cast(pa.decimal128(10, 2)) if name in decimals else pa.array(values)
            for name, values in columns.items()
        }
        pq.write_table(pa.table(arrays), file)


def attempt(case: Case, root: Path) -> list[Problem] | list[tuple[str | None, ...]]:
    """Checks and runs the workspace: what was written, or the problems; anything else is an exception."""
    write(case, root)
    workspace = Workspace.open(root)
    problems = workspace.validate()
    if problems:
        return problems
    try:
        result = workspace.run(case.names.project, PERIOD)
    except ProblemError as error:
        return list(error.problems)
    table = pq.ParquetDataset(result.outputs[0].location.removeprefix("parquet ")).read()
    return in_order(zip(*([_cell(value) for value in column.to_pylist()] for column in table.columns), strict=True))


def _cell(value: Any) -> str | None:
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value


def in_order(rows: Iterable[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    return sorted(rows, key=lambda row: tuple((value is None, value) for value in row))
