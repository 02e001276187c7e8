"""Describes what an output publishes: the destination, the mode, the columns and the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_serializer

from tallybook.errors import Problem
from tallybook.model.base import Entity, Id, NonEmpty, NotBlank, Text
from tallybook.model.columns import ALIASES, RESERVED, ROW_ID, SYSTEM_COLUMNS, VALIDITY_COLUMNS, ColumnType
from tallybook.model.datasource import FileFormat, FileOptions, FileSource, FormatOptions, format_of_path

Mode = Literal["overwrite", "append", "error", "replace_period"]


def _empty_if_nothing(value: Any) -> Any:
    return "" if value is None else value


WrittenName = Annotated[Text, Field(json_schema_extra={"minLength": 1})]
"""A path or table name to write; the checker refuses a blank one as an invalid destination."""


class _Path(Entity):
    path: Annotated[WrittenName, BeforeValidator(_empty_if_nothing)]
    format: FileFormat | None = Field(None, description="By default what the path ends with, else parquet.")


class OutputLocation(FormatOptions, _Path):
    """A path to write to without a datasource."""

    def source(self, path: str) -> FileSource:
        """The datasource of an output to a path that was rendered from this one."""
        options = FileOptions(path_prefix=".", **{key: getattr(self, key) for key in FormatOptions.model_fields})
        return FileSource(id="location", type=self.format or format_of_path(path), options=options)


def _as_location(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


WrittenLocation = Annotated[OutputLocation, BeforeValidator(_as_location, json_schema_input_type=str | OutputLocation)]


class Destination(Entity):
    """Exactly one of a table of a datasource, or a location."""

    datasource_id: Id | None = None
    schema_: NotBlank | None = Field(None, alias="schema")
    table: WrittenName | None = None
    location: WrittenLocation | None = None


class WrittenColumn(Entity):
    """A column to write, under its own name or under another one."""

    column: NonEmpty
    header: NonEmpty | None = None

    @model_serializer
    def as_written(self) -> str | dict[str, str]:
        """Returns what a user writes: the column, or a map with the column and its new name."""
        return self.column if self.header is None else {self.column: self.header}


def _as_column(value: Any) -> Any:
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise ValueError('write one column and its new name, such as {variance_pct: "Variance %"}')
        [(column, header)] = value.items()
        return {"column": column, "header": header}
    return {"column": value}


ColumnItem = Annotated[
    WrittenColumn,
    BeforeValidator(
        _as_column,
        json_schema_input_type=NonEmpty | Annotated[dict[str, NonEmpty], Field(min_length=1, max_length=1)],
    ),
]
ALL_SYSTEM_COLUMNS = (*SYSTEM_COLUMNS, *VALIDITY_COLUMNS)


def _as_names(value: Any) -> Any:
    return ALL_SYSTEM_COLUMNS if value == "system" else value


ExcludedColumns = Annotated[
    tuple[NonEmpty, ...],
    BeforeValidator(_as_names, json_schema_input_type=Literal["system"] | tuple[NonEmpty, ...]),
]
"""A list of columns, or the word `system` for all system columns."""


@dataclass(frozen=True)
class SortKey:
    """A working column to sort by. NULL comes last in both directions, as in a spreadsheet."""

    column: str
    descending: bool = False


@dataclass(frozen=True)
class Publication:
    """The rows and columns a step publishes, and where. `seq` and `name` are those of the operation."""

    seq: int
    name: str
    destination: Destination
    mode: Mode
    columns: Mapping[str, ColumnType]
    """The columns written, in order, by the names that they have in the data."""
    include_deleted: bool = False
    register_as: str | None = None
    """The id of the dataset that the published rows become a version of."""
    partition_by: tuple[str, ...] = ()
    """The written columns by whose values the rows are divided among folders."""
    named: frozenset[str] = frozenset()
    """The columns the user named, to write, to leave out or to sort by: the operation is wrong if one of them is
    gone."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """The working column of each written column that has another name in the data."""
    order_by: tuple[SortKey, ...] = ()
    """How the written rows are sorted; rows with equal keys are in the order of their ids."""
    chosen: bool = True
    """True if the user chose the columns; otherwise they are all columns."""

    @property
    def working_columns(self) -> dict[str, str]:
        """The column of the working rows behind each written column."""
        return {name: self.renamed.get(name) or working_name(name) for name in self.columns}

    @property
    def needed_columns(self) -> frozenset[str]:
        """The working columns that it writes or sorts by."""
        keys = (*(key.column for key in self.order_by), ROW_ID) if self.order_by else ()
        return frozenset((*self.working_columns.values(), *keys))

    @property
    def business_columns(self) -> dict[str, ColumnType]:
        """The written columns without the system columns."""
        working = self.working_columns
        return {name: type for name, type in self.columns.items() if working[name] not in RESERVED}

    def written_name(self, column: str) -> str | None:
        """The name under which a working column is written; None if it is not."""
        return next((name for name, working in self.working_columns.items() if working == column), None)

    def as_read_by_people(self) -> Publication:
        """The same without system columns, unless the user chose the columns."""
        return self if self.chosen else replace(self, columns=self.business_columns)

    def attribute(self, problem: Problem) -> Problem:
        """The problem as one of this operation."""
        return problem.within(seq=self.seq, operation=self.name)


def working_name(name: str) -> str:
    """The working column that a name, or an alias of it, means."""
    return ALIASES.get(name, name)
