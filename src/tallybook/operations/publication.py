"""Describes what an output publishes: the destination, the mode, the columns and the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tallybook.errors import Problem
from tallybook.model.base import Entity, Id, Text
from tallybook.model.columns import ALIASES, RESERVED, ColumnType
from tallybook.model.datasource import Delimiter, FileFormat, FileOptions, FileSource, format_of_path

Mode = Literal["overwrite", "append", "error"]


def _empty_if_nothing(value: Any) -> Any:
    return "" if value is None else value


WrittenName = Annotated[Text, Field(json_schema_extra={"minLength": 1})]
"""A path or table name to write; the checker refuses a blank one as an invalid destination."""


class OutputLocation(Entity):
    """A path to write to without a datasource."""

    path: Annotated[WrittenName, BeforeValidator(_empty_if_nothing)]
    format: FileFormat | None = Field(None, description="By default what the path ends with, else parquet.")
    delimiter: Delimiter = ","
    has_header: bool = True
    null_value: Text = ""

    def source(self, path: str) -> FileSource:
        """The datasource of an output to a path that was rendered from this one."""
        options = FileOptions(
            path_prefix=".", delimiter=self.delimiter, has_header=self.has_header, null_value=self.null_value
        )
        return FileSource(id="location", type=self.format or format_of_path(path), options=options)


def _as_location(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


WrittenLocation = Annotated[OutputLocation, BeforeValidator(_as_location, json_schema_input_type=str | OutputLocation)]


class Destination(Entity):
    """Exactly one of a table of a datasource, or a location."""

    datasource_id: Id | None = None
    table: WrittenName | None = None
    location: WrittenLocation | None = None


@dataclass(frozen=True)
class Publication:
    """The rows and columns a step publishes, and where. `seq` and `name` are those of the operation."""

    seq: int
    name: str
    destination: Destination
    mode: Mode
    columns: Mapping[str, ColumnType]
    """The columns written, in order, by the names the user gave them."""
    include_deleted: bool = False
    register_as: str | None = None
    """The id of the dataset that the published rows become a version of."""
    named: frozenset[str] = frozenset()
    """The columns the user named, to write or to leave out: the operation is wrong if one of them is gone."""

    @property
    def working_columns(self) -> dict[str, str]:
        """The column of the working rows behind each written column."""
        return {name: working_name(name) for name in self.columns}

    @property
    def business_columns(self) -> dict[str, ColumnType]:
        """The written columns without the system columns."""
        return {name: type for name, type in self.columns.items() if name not in RESERVED}

    def attribute(self, problem: Problem) -> Problem:
        """The problem as one of this operation."""
        return problem.within(seq=self.seq, operation=self.name)


def working_name(name: str) -> str:
    """The working column that a name, or an alias of it, means."""
    return ALIASES.get(name, name)
