"""Builds a tiny workspace with two chained projects (`Books`), runs it, and reads what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tallybook.engine.events import Event, StepStarted
from tallybook.errors import Problem, RunError
from tallybook.model.run import Run
from tallybook.runs.runner import RunResult
from tallybook.store.store import Store
from tallybook.workspace import Workspace

CSV_OF_EACH_TABLE = """\
datasource: {id: files, type: csv, options: {path_prefix: data}}
---
resolver:
  id: all
  is_default: true
  rules: [{name: all, strategy: {type: path, datasource_id: files, path: "{{table_name}}.csv"}}]
"""
"""Definitions that find the rows of each table in `data/TABLE.csv`, for every period."""
FILES = {
    "tallybook.yaml": """\
        name: tiny
        spark:
          master: local[2]
          conf:
            spark.driver.memory: 512m
            spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1
            spark.sql.shuffle.partitions: "2"
        """,
    "data/sales/2026-01.csv": "id,region,amount\na,EMEA,10\nb,APAC,20\nc,EMEA,0\n",
    "data/sales/2026-02.csv": "id,region,amount\nd,EMEA,5\n",
    "data/tiers.csv": "region,tier\nEMEA,gold\nAPAC,silver\n",
    "places.yaml": """\
        datasource: {id: files, type: csv, options: {path_prefix: data}}
        ---
        datasource: {id: warehouse, type: delta, options: {path_prefix: warehouse}}
        ---
        resolver:
          id: by-month
          rules:
            - name: month
              data_level: month
              strategy: {type: path, datasource_id: files, path: "{{table_name}}/{{period}}.csv"}
        ---
        resolver:
          id: reference
          is_default: true
          rules:
            - {name: all, data_level: any, strategy: {type: path, datasource_id: files, path: "{{table_name}}.csv"}}
        """,
    "sales.yaml": """\
        dataset:
          id: sales
          name: Sales
          resolver_id: by-month
          main_table:
            name: sales
            temporal_mode: period
            columns:
              - {name: id, type: string}
              - {name: region, type: string}
              - {name: amount, type: "decimal(10,2)"}
        """,
    "tiers.yaml": """\
        dataset:
          id: tiers
          name: Tiers
          main_table: {name: tiers, columns: [{name: region, type: string}, {name: tier, type: string}]}
        """,
    "close.yaml": """\
        project:
          id: close
          name: Close
          input_dataset_id: sales
          operations:
            - seq: 10
              name: Net
              type: update
              arguments:
                joins: [{alias: t, dataset_id: tiers, on: sales.region = t.region}]
                assignments:
                  - {column: net, expression: "ROUND(amount * 0.9, 2)"}
                  - {column: tier, expression: t.tier}
            - {seq: 20, name: Drop, type: delete, selector: amount = 0}
            - seq: 30
              name: Ledger
              type: output
              arguments:
                destination: {datasource_id: warehouse, table: ledger}
                columns: [id, tier, net, _period]
                register_as_dataset: ledger
            - seq: 40
              name: Totals
              type: aggregate
              arguments:
                group_by: [region]
                aggregations: [{column: total, expression: SUM(net)}]
            - seq: 50
              name: Everything
              type: output
              arguments:
                destination: {location: "reports/{{period}}"}
                exclude_columns: [_labels]
                include_deleted: true
        """,
    "report.yaml": """\
        project:
          id: report
          name: Report
          input_dataset_id: ledger
          operations:
            - seq: 1
              name: Double
              type: update
              arguments: {assignments: [{column: double, expression: net * 2}]}
            - seq: 2
              name: Text
              type: output
              arguments: {destination: {location: "texts/{{period}}.csv"}, columns: [id, double]}
        """,
}
JANUARY = [("a", "gold", Decimal("9.00"), "2026-01"), ("b", "silver", Decimal("18.00"), "2026-01")]
FEBRUARY = [("d", "gold", Decimal("4.50"), "2026-02")]
FOREIGN = ("Exception", "org.apache", "java.", "py4j", "Kernel", "Caused by", "Traceback", "\tat ")
"""Texts of Spark, the JVM and Python that no user should read in a problem."""


@dataclass(frozen=True)
class Books:
    """A workspace on disk, read anew at every use as a new command would."""

    root: Path

    @classmethod
    def at(cls, root: Path) -> Books:
        for name, text in FILES.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text))
        return cls(root)

    def open(self) -> Workspace:
        return Workspace.open(self.root)

    def store(self) -> Store:
        return self.open().store()

    def run(self, project: str = "close", period: str = "2026-01", **options: Any) -> RunResult:
        return self.open().run(project, period, **options)

    def fails(self, project: str = "close", period: str = "2026-01", **options: Any) -> Problem:
        """The problem that ends a run, which is recorded as failed and is not told in the words of Spark or Java."""
        with pytest.raises(RunError) as caught:
            self.run(project, period, **options)
        problem = caught.value.problem
        assert problem.type != "InternalError" and not any(word in str(caught.value) for word in FOREIGN), problem
        assert self.newest().status == "failed"
        return problem

    def newest(self) -> Run:
        with self.store() as store:
            return store.runs(limit=1)[0]

    def retry(self) -> RunResult:
        """Retries the newest run, which must complete."""
        result = self.open().retry(self.newest().id)
        assert result.run.status == "completed"
        return result

    def edit(self, file: str, old: str, new: str) -> None:
        """Replaces a piece of text that is in the file."""
        path = self.root / file
        text = path.read_text()
        assert old in text, f"{file} has no {old!r}"
        path.write_text(text.replace(old, new))

    def add_operation(self, text: str, file: str = "close.yaml") -> None:
        path = self.root / file
        path.write_text(path.read_text() + "".join(f"    {line}\n" for line in dedent(text).strip().splitlines()))

    def ledger(self, version: int | None = None) -> list[tuple[Any, ...]]:
        """The rows of the Delta table, at a version or now, read by delta-rs alone."""
        return delta_rows(self.root / "warehouse" / "ledger", version)

    def report_files(self, period: str = "2026-01") -> set[str]:
        return {file.name for file in (self.root / "reports" / period).glob("*.parquet")}


def delta_rows(path: Path, version: int | None = None, columns: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
    from deltalake import DeltaTable

    table = DeltaTable(path, version=version).to_pyarrow_table(columns=columns)
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=str)


def parquet_rows(path: Path, *columns: str) -> list[tuple[Any, ...]]:
    """Rows of a folder of Parquet files, read without Spark."""
    import pyarrow.parquet as pq

    rows = pq.read_table(path, columns=list(columns)).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=str)


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@dataclass(frozen=True)
class AtStep:
    """An observer that does something when an operation starts."""

    seq: int
    action: Callable[[], object]

    def __call__(self, event: Event) -> None:
        if isinstance(event, StepStarted) and event.step.seq == self.seq:
            self.action()
