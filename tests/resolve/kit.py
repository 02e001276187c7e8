"""Rules, resolvers and datasources of a small workspace, and the locations that they give."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tallybook.model.datasource import DatabaseSource, DataSource, FileSource
from tallybook.model.location import Location
from tallybook.model.period import GREGORIAN
from tallybook.model.resolver import Resolver
from tallybook.resolve.resolve import resolve

ROOT = Path("/ws")
SOURCES: dict[str, DataSource] = {
    "lake": FileSource.model_validate({"id": "lake", "type": "parquet", "options": {"path_prefix": "data"}}),
    "old": FileSource.model_validate(
        {"id": "old", "type": "csv", "status": "disabled", "options": {"path_prefix": "old"}}
    ),
    "db": DatabaseSource.model_validate(
        {"id": "db", "type": "database", "options": {"url": "postgresql://h/d", "schema": "fin"}}
    ),
}
NOW = datetime(2026, 2, 1, tzinfo=UTC)


def path_rule(path: str = "{{table_name}}/{{period}}", **changes: object) -> dict[str, object]:
    strategy = {"type": "path", "datasource_id": "lake", "path": path}
    return {"name": "files", "data_level": "month", "strategy": strategy, **changes}


def table_rule(table: str, schema: str | None = None, **changes: object) -> dict[str, object]:
    strategy = {"type": "table", "datasource_id": "db", "table": table, "schema": schema}
    return {"name": "tables", "strategy": strategy, **changes}


def resolver(*rules: dict[str, object], **changes: object) -> Resolver:
    return Resolver.model_validate({"id": "r", "rules": rules or (path_rule(),), **changes})


def located(period: str, *rules: dict[str, object]) -> tuple[Location, ...]:
    return resolve(
        "orders",
        "sales",
        GREGORIAN.period(period),
        calendar=GREGORIAN,
        resolver=resolver(*rules),
        datasources=SOURCES,
        timestamp=NOW,
        root=ROOT,
    )


def brief(period: str, *rules: dict[str, object]) -> list[tuple[str, str | None]]:
    return [(location.target, location.period) for location in located(period, *rules)]
