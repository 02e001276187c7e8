"""The rows of a run: loaded, kept in the working dataset, and matched with rows of other tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from tallybook.model.columns import PERIOD, SYSTEM_COLUMNS, VALIDITY_COLUMNS, ColumnType
from tallybook.model.dataset import Dataset, DatasetRef, Table

from .expressions import Context, Row, View
from .temporal import of_run
from .values import RefusedError, put

Rows = list[Row]
Types = dict[str, ColumnType]
NEW_ID = "<new>"
"""Stands for a new `_row_id`: the oracle knows that there is one, not which."""
KEPT = ("_row_id", "_created_at", "_updated_at", "_labels", "_period")


@dataclass(frozen=True)
class Run:
    """What is fixed when a run starts, and the tables it can read."""

    period: str
    as_of: date
    timestamp: datetime
    datasets: Mapping[str, Dataset]
    tables: Mapping[tuple[str, str], Rows]
    selectors: Mapping[str, str]
    parameters: Mapping[str, tuple[ColumnType, object]] = field(default_factory=dict)

    def dataset(self, ref: DatasetRef) -> Dataset:
        found = self.datasets.get(ref.dataset_id)
        if found is None:
            raise RefusedError("DatasetNotFound")
        if found.status == "disabled":
            raise RefusedError("DatasetDisabled")
        if ref.dataset_version not in (None, found.version):
            raise RefusedError("DatasetVersionNotFound")
        return found

    def load(
        self, dataset: Dataset, table: Table, periods: Sequence[str] | None = None, as_of: date | None = None
    ) -> Rows:
        """The rows that belong to the run, or to other periods or another date, each with every system column."""
        rows = of_run(self.tables[dataset.id, table.name], table, periods or [self.period], as_of or self.as_of)
        return [
            {
                **{column.name: put(row[column.name], column.type) for column in table.columns},
                **self.made(0, dataset, table, self.period),
                **{name: row[name] for name in KEPT if row.get(name) is not None},
                "_deleted": row.get("_deleted") is True,
                **{name: row[name] for name in VALIDITY_COLUMNS if table.temporal_mode == "bitemporal"},
            }
            for row in rows
        ]

    def made(self, seq: int, dataset: Dataset, table: Table, period: object) -> dict[str, object]:
        """The system columns of a new row."""
        return {
            "_row_id": NEW_ID,
            "_source_dataset_id": dataset.id,
            "_source_table": table.name,
            "_operation_seq": seq,
            "_created_at": self.timestamp,
            "_updated_at": self.timestamp,
            "_deleted": False,
            "_labels": "",
            "_period": period,
        }

    def context(self, views: Iterable[View], grouped: Iterable[str] | None = None) -> Context:
        keys = None if grouped is None else frozenset(grouped)
        return Context(tuple(views), self.timestamp, self.period, self.selectors, self.parameters, keys)


@dataclass(frozen=True)
class Working:
    """The working dataset: its business columns, its system columns, and all rows, deleted ones among them."""

    input: Dataset
    business: Types
    system: Types
    rows: Rows = field(default_factory=list)

    @property
    def columns(self) -> Types:
        return {**self.business, **self.system}

    def views(self, run: Run) -> tuple[View, ...]:
        lookups = (joined_view(lookup.alias, self.target(lookup.target, run)[1]) for lookup in self.input.lookups)
        return (View(self.input.main_table.name, self.columns), *lookups)

    def target(self, target: Table | DatasetRef, run: Run) -> tuple[Dataset, Table]:
        if isinstance(target, Table):
            return self.input, target
        dataset = run.dataset(target)
        return dataset, dataset.main_table


def joined_view(alias: str, table: Table) -> View:
    """A table read as `alias.column`: its own columns, and those of its temporal mode by full name."""
    period = {PERIOD: SYSTEM_COLUMNS[PERIOD]}
    hidden = {"period": period, "bitemporal": VALIDITY_COLUMNS}.get(table.temporal_mode, {})
    return View(alias, table.business_types, hidden, joined=True)
