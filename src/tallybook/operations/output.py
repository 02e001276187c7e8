"""output: writes a projection of the working dataset. The only operation that leaves anything behind."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from tallybook.errors import did_you_mean
from tallybook.model.base import ID_PATTERN, Entity, Id, NonEmpty, Text
from tallybook.model.columns import ALIASES, ColumnType
from tallybook.model.datasource import Delimiter, FileFormat
from tallybook.operations.base import Applying, Binding, Operation, Step
from tallybook.operations.lookups import with_lookups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Mode = Literal["overwrite", "append", "error"]


def _empty_if_nothing(value: Any) -> Any:
    return "" if value is None else value


WrittenName = Annotated[Text, Field(json_schema_extra={"minLength": 1})]
"""A path or table name to write; the checker refuses a blank one as an invalid destination."""


class PlaceToWrite(Entity):
    """A path of its own, without a datasource."""

    path: Annotated[WrittenName, BeforeValidator(_empty_if_nothing)]
    format: FileFormat | None = Field(None, description="By default what the path ends with, else parquet.")
    delimiter: Delimiter = ","
    has_header: bool = True
    null_value: Text = ""


def _as_location(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


Location = Annotated[PlaceToWrite, BeforeValidator(_as_location, json_schema_input_type=str | PlaceToWrite)]


class Destination(Entity):
    """Exactly one of a table of a datasource, or a location."""

    datasource_id: Id | None = None
    table: WrittenName | None = None
    location: Location | None = None


class OutputArguments(Entity):
    """Where to write, and which columns and rows."""

    destination: Destination
    mode: Mode = "overwrite"
    columns: tuple[NonEmpty, ...] | None = None
    exclude_columns: tuple[NonEmpty, ...] | None = None
    include_deleted: bool = False
    register_as_dataset: Text | None = None


class Output(Operation, type="output"):
    """Writes the selected rows; the working dataset stays as it is."""

    type: Literal["output"]
    arguments: OutputArguments = Field(validation_alias=AliasChoices("arguments", "parameters"))

    def bind(self, binding: Binding) -> OutputStep | None:
        selector = binding.selector()
        args = self.arguments
        _check_destination(args.destination, binding)
        columns = _projection(args, binding)
        name = _checked_name(args.register_as_dataset, binding)
        return OutputStep(
            self.seq,
            self.name,
            selector,
            binding.before,
            binding.before,
            args.destination,
            args.mode,
            columns,
            args.include_deleted,
            name,
            args.columns is not None,
        )


def _checked_name(name: str | None, binding: Binding) -> str | None:
    """The id to register under; None without one, or when it is wrong."""
    if name is None or re.fullmatch(ID_PATTERN, name):
        return name
    binding.report(
        "InvalidDatasetName",
        f"'{name}' cannot be the id of a dataset" if name.strip() else "the name of the dataset is empty",
        "arguments",
        "register_as_dataset",
        hint="letters, digits, '.', '_' and '-', beginning with a letter or digit",
    )
    return None


def _check_destination(destination: Destination, binding: Binding) -> None:
    path = ("arguments", "destination")
    by_table = destination.datasource_id is not None or destination.table is not None
    if by_table == (destination.location is not None):
        what = "both a table and a location" if by_table else "neither a table nor a location"
        binding.report(
            "InvalidDestination",
            f"the destination has {what}",
            *path,
            hint="write {datasource_id: …, table: …} or {location: …}",
        )
    elif by_table and (destination.datasource_id is None or destination.table is None):
        missing = "table" if destination.table is None else "datasource_id"
        binding.report(
            "InvalidDestination", f"the destination lacks `{missing}`", *path, hint="or write {location: …} alone"
        )
    if destination.table is not None and not destination.table.strip():
        binding.report("InvalidDestination", "the name of the table is blank", *path, "table", hint="name a table")
    if destination.location is not None and not destination.location.path.strip():
        hint = "name a file or a folder"
        binding.report("InvalidDestination", "the path of the location is blank", *path, "location", hint=hint)


def _projection(args: OutputArguments, binding: Binding) -> tuple[str, ...]:
    """The columns to write, in order."""
    known = binding.before.columns
    if args.columns is not None and args.exclude_columns is not None:
        binding.report(
            "InvalidArguments",
            "`columns` and `exclude_columns` cannot both be given",
            "arguments",
            "exclude_columns",
            hint="keep one of them",
        )
    if args.columns is not None:
        if not args.columns:
            hint = "name some, or leave the key out to write all"
            binding.report("ColumnProjectionError", "`columns` names no column", "arguments", "columns", hint=hint)
        return tuple(_known_columns(args.columns, "columns", binding))
    left_out = {working_name(name) for name in _known_columns(args.exclude_columns or (), "exclude_columns", binding)}
    chosen = tuple(name for name in known if name not in left_out)
    if not chosen:
        binding.report("ColumnProjectionError", "no column is left to write", "arguments", "exclude_columns")
    return chosen


def working_name(name: str) -> str:
    """The column of the working dataset that is meant by any of its names."""
    return ALIASES.get(name, name)


def _known_columns(names: tuple[str, ...], key: str, binding: Binding) -> list[str]:
    """The names as written, without the table; a column has one of its names only."""
    known = binding.before.columns
    found: dict[str, str] = {}
    for index, written in enumerate(names):
        name = written.removeprefix(f"{binding.before.table}.")
        if working_name(name) in found:
            message = f"column '{written}' is named twice"
            binding.report("DuplicateColumn", message, "arguments", key, index, hint="keep one")
        elif working_name(name) in known:
            found[working_name(name)] = name
        elif not binding.before.open:
            message = f"the working dataset has no column '{written}'"
            hint = did_you_mean(name, known)
            if name.partition(".")[0] in binding.before.lookups:
                hint = "columns of lookups are not written; copy it into a column with an update first"
            binding.report("ColumnProjectionError", message, "arguments", key, index, hint=hint)
    return list(found.values())


@dataclass(frozen=True)
class OutputStep(Step):
    """A checked output. Writing is the engine's: `projected` only says what."""

    type: ClassVar[str] = "output"

    destination: Destination
    mode: Mode
    columns: tuple[str, ...]
    include_deleted: bool
    register_as: str | None
    named_columns: bool
    """Whether the user wrote the columns down, or takes whatever there is."""

    @property
    def written(self) -> dict[str, ColumnType]:
        """What it writes: names as the user wrote them, and types."""
        return {name: self.before.columns[working_name(name)] for name in self.columns}

    @property
    def registered_columns(self) -> dict[str, ColumnType]:
        """The written columns a dataset made of them declares: all but the system columns."""
        business = self.before.business
        return {name: business[name] for name in self.columns if name in business}

    def apply(self, frame: DataFrame, _applying: Applying) -> DataFrame:
        return frame

    def projected(self, frame: DataFrame, applying: Applying) -> DataFrame:
        """The rows and columns to write."""
        from tallybook.rows.system import only

        applying = replace(applying, all_active=applying.all_active or self.include_deleted)
        beside = with_lookups(frame, self, applying)
        chosen = applying.chosen(self.selector)
        beside = beside if chosen is None else beside.filter(chosen)
        other = {working_name(name): name for name in self.columns if name in ALIASES}
        return only(beside.withColumnsRenamed(other) if other else beside, self.columns)
