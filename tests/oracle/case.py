"""A project with the tables it reads: what generators make, both engines run, and files keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tallybook.model.columns import SYSTEM_COLUMNS, VALIDITY_COLUMNS, ColumnType
from tallybook.model.dataset import Dataset, Table
from tallybook.model.period import GREGORIAN, Period
from tallybook.project.model import Project

from .expressions import Row
from .project import Result, interpret
from .readings import READING, Reading
from .tables import Run
from .values import put

Body = dict[str, Any]


@dataclass(frozen=True)
class TableRows:
    """The rows of a table as they lie: its business columns and the system columns that came with them."""

    types: Mapping[str, ColumnType]
    rows: Sequence[Row]


@dataclass(frozen=True)
class Case:
    """A project and datasets as their YAML would say them, and rows."""

    project: Body
    datasets: tuple[Body, ...]
    tables: Mapping[tuple[str, str], TableRows]
    period: str = "2026-01"
    as_of: date = date(2026, 1, 1)
    timestamp: datetime = datetime(2026, 2, 1, 23, 30, tzinfo=UTC)

    @cached_property
    def entities(self) -> tuple[Project, dict[str, Dataset]]:
        datasets = [Dataset.model_validate(body, strict=False) for body in self.datasets]
        return Project.model_validate(self.project, strict=False), {each.id: each for each in datasets}

    @property
    def span(self) -> Period:
        return GREGORIAN.period(self.period)

    def interpreted(self, reading: Reading = Reading.PLAIN) -> Result:
        """The oracle's opinion, in one of the three readings of what fails."""
        token = READING.set(reading)
        try:
            return self._interpreted()
        finally:
            READING.reset(token)

    def _interpreted(self) -> Result:
        project, datasets = self.entities
        rows = {name: list(table.rows) for name, table in self.tables.items()}
        parameters = {
            name: (each.type, put(_value(each.default, each.type), each.type))
            for name, each in project.parameters.items()
        }
        fixed = (self.period, self.as_of, self.timestamp, datasets, rows, project.selectors, parameters)
        return interpret(project, Run(*fixed))

    def without_rows(self) -> Case:
        return replace(self, tables={name: TableRows(table.types, []) for name, table in self.tables.items()})

    def with_project(self, **changes: object) -> Case:
        return replace(self, project={**self.project, **changes})


# --- files ----------------------------------------------------------------------------------------------------------


def save(case: Case, path: Path, note: str) -> None:
    """Writes a case as a scenario without an expectation: the two engines are to agree on it."""
    data: Body = {}
    for (dataset, table), content in case.tables.items():
        rows = [{name: _text(value) for name, value in row.items()} for row in content.rows]
        data.setdefault(dataset, {})[table] = rows
    moment = case.timestamp.isoformat()
    body: Body = {"name": note, "project": case.project, "period": case.period, "as_of": case.as_of.isoformat()}
    body |= {"run_timestamp": moment, "datasets": list(case.datasets), "data": data}
    with path.open("w", encoding="utf-8") as file:
        yaml = YAML(typ="safe")
        yaml.default_flow_style = None
        yaml.allow_unicode = True
        yaml.width = 115
        yaml.dump({"scenario": body}, file)


def load(path: Path) -> Case:
    body = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))["scenario"]
    datasets = tuple(body["datasets"])
    tables = {}
    for dataset in datasets:
        entity = Dataset.model_validate(dataset, strict=False)
        own = [lookup.target for lookup in entity.lookups if isinstance(lookup.target, Table)]
        for table in (entity.main_table, *own):
            rows = body["data"][entity.id][table.name]
            known = {**table.business_types, **SYSTEM_COLUMNS, **VALIDITY_COLUMNS}
            present = set().union(*rows) if rows else {*table.business_types, *_temporal(table)}
            types = {name: type for name, type in known.items() if name in present}
            read = [{name: _value(row.get(name), type) for name, type in types.items()} for row in rows]
            tables[entity.id, table.name] = TableRows(types, read)
    return Case(
        body["project"],
        datasets,
        tables,
        str(body["period"]),
        date.fromisoformat(str(body["as_of"])),
        datetime.fromisoformat(str(body["run_timestamp"])),
    )


def _temporal(table: Table) -> tuple[str, ...]:
    return {"period": ("_period",), "bitemporal": tuple(VALIDITY_COLUMNS), "none": ()}[table.temporal_mode]


def _text(value: object) -> object:
    if isinstance(value, date):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else value


def _value(value: Any, type: ColumnType) -> object:
    if value is None:
        return None
    if type.kind == "decimal":
        return Decimal(str(value))
    if type.kind == "date":
        return date.fromisoformat(str(value))
    if type.kind == "integer":
        return int(value)
    if type.kind == "boolean":
        return str(value).lower() == "true"
    return datetime.fromisoformat(str(value)) if type.kind == "timestamp" else value
