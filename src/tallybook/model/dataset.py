"""Datasets: logical, versioned schemas of rows. They do not say where the rows are."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tallybook.model.base import Entity, Id, NonEmpty, Text
from tallybook.model.columns import (
    PERIOD,
    SYSTEM_COLUMNS,
    VALID_FROM,
    VALID_TO,
    VALIDITY_COLUMNS,
    ColumnDef,
    ColumnType,
)

Status = Literal["active", "disabled"]
TemporalMode = Literal["period", "bitemporal", "none"]


class Table(Entity):
    """Columns and the way their rows belong to time."""

    name: NonEmpty
    temporal_mode: TemporalMode = "none"
    columns: tuple[ColumnDef, ...] = Field(min_length=1)
    period_column: NonEmpty = PERIOD
    valid_from_column: NonEmpty = VALID_FROM
    valid_to_column: NonEmpty = VALID_TO

    @property
    def business_types(self) -> dict[str, ColumnType]:
        """The declared columns by name."""
        return {column.name: column.type for column in self.columns}

    @property
    def system_types(self) -> dict[str, ColumnType]:
        """The system columns rows of this table carry."""
        return SYSTEM_COLUMNS | (VALIDITY_COLUMNS if self.temporal_mode == "bitemporal" else {})


class DatasetRef(Entity):
    """A dataset, at a version or at the latest active one."""

    dataset_id: Id
    dataset_version: int | None = Field(None, ge=1)


class JoinCondition(Entity):
    """One pair of columns that must be equal."""

    source_column: NonEmpty
    target_column: NonEmpty


class Lookup(Entity):
    """A left join declared on the dataset, readable as `alias.column` everywhere, joined only where used."""

    alias: NonEmpty
    target: Table | DatasetRef
    join_conditions: tuple[JoinCondition, ...] = Field(min_length=1)


class Dataset(Entity):
    """A named schema. `version` is given by the system and absent from files."""

    id: Id
    name: NonEmpty
    description: Text | None = None
    status: Status = "active"
    resolver_id: Id | None = None
    main_table: Table
    lookups: tuple[Lookup, ...] = ()
    natural_key_columns: tuple[NonEmpty, ...] = ()
    version: int = Field(1, ge=1, description="Counted by the system; leave it out of files.")
