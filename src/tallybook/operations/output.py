"""output: writes selected columns and rows of the working dataset. No other operation writes anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.errors import did_you_mean
from tallybook.model.base import ID_PATTERN, Entity, NonEmpty, Text
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding
from tallybook.operations.lookups import filtered
from tallybook.operations.publication import Destination, Mode, Publication, working_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tallybook.rows.working import Rows


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

    reference: ClassVar[str] = """
    Writes the selected rows that are not deleted. The working dataset stays as it is, so a project can have several
    outputs, and go on after one.

    ```yaml
    operations:
      - seq: 50
        name: Write the totals
        type: output
        selector: total_amount IS NOT NULL
        arguments:
          destination:
            location: {path: "warehouse/totals", format: delta}
          columns: [_period, region, total_amount]
          register_as_dataset: region-totals
    ```

    {arguments}

    - The destination is exactly one of `{datasource_id, table}` and `{location}`. A location that ends with the
      extension of a format (`report.csv`) is one file, any other a folder of files.
    - A reader never sees half a write, and a failed or killed run leaves what was there before. [How an output
      appears](../decisions/0003-publishing-plain-files.md) says how, and where plain files cannot be written.
    - An output replaces its own earlier files and nothing else. A folder with any other file in it, hidden ones
      included, is refused, and the message lists them. A single file is replaced whoever wrote it.
    - A table stays inside the `path_prefix` of its datasource, and a relative path inside the workspace, whatever
      templates and links say. Anything outside needs an absolute path.
    - A run does not write to a location that it reads, nor to a folder around or inside it. Only a Delta table can be
      read and overwritten by one run.
    - Two outputs of a project do not write to one location, unless those after the first have `mode: append`.
    - If a file that the run reads changes before an output is published, the run fails and the output is not published.
      [What an output may touch](../decisions/0008-what-an-output-may-touch.md) has the details of these five.
    - `mode: append` adds rows once for each project and period: running the period again is refused, unless you
      ask for it with `run --again`.
    - The outputs of a draft go to the sandbox instead; see [`tallybook activate`](command-line.md#tallybook-activate).
    - `register_as_dataset` makes what was written readable for other projects, as version 1 or the next. The
      destination must be Delta: that version keeps reading those rows, also after later overwrites. Its temporal mode
      follows from the columns written: `_period` makes it `period`, validity columns `bitemporal`.
    - No rows still make a readable table with columns and types.
    """

    type: Literal["output"]
    arguments: OutputArguments = Field(validation_alias=AliasChoices("arguments", "parameters"))

    @property
    def registers(self) -> str | None:
        return self.arguments.register_as_dataset

    def bind(self, binding: Binding) -> OutputStep | None:
        selector = binding.selector()
        args = self.arguments
        schema = binding.before
        _check_destination(args.destination, binding)
        named, written = _projection(args, binding)
        publication = Publication(
            self.seq,
            self.name,
            args.destination,
            args.mode,
            {name: schema.columns[working_name(name)] for name in written},
            args.include_deleted,
            _checked_name(args.register_as_dataset, binding),
            frozenset(named),
        )
        return OutputStep(self.seq, self.name, selector, schema, schema, publishes=publication)


def _checked_name(name: str | None, binding: Binding) -> str | None:
    """The id to register under; None without one, or when it is wrong."""
    if name is None or re.fullmatch(ID_PATTERN, name):
        return name
    binding.report(
        "InvalidDatasetName",
        f"'{name}' cannot be the id of a dataset" if name.strip() else "the name of the dataset is empty",
        "arguments",
        "register_as_dataset",
        hint="use letters, digits, '.', '_' and '-', and begin with a letter or digit",
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
            "InvalidDestination",
            f"the destination has no `{missing}`",
            *path,
            hint=f"add `{missing}`, or write {{location: …}} alone",
        )
    if destination.table is not None and not destination.table.strip():
        binding.report("InvalidDestination", "the name of the table is blank", *path, "table", hint="name a table")
    if destination.location is not None and not destination.location.path.strip():
        hint = "name a file or a folder"
        binding.report("InvalidDestination", "the path of the location is blank", *path, "location", hint=hint)


def _projection(args: OutputArguments, binding: Binding) -> tuple[Sequence[str], Sequence[str]]:
    """The columns the user names, and the columns to write, in order."""
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
            hint = "name columns, or remove the key to write all of them"
            binding.report("ColumnProjectionError", "`columns` is empty", "arguments", "columns", hint=hint)
        named = _known_columns(args.columns, "columns", binding)
        return named, named
    excluded = _known_columns(args.exclude_columns or (), "exclude_columns", binding)
    left_out = set(map(working_name, excluded))
    written = [name for name in known if name not in left_out]
    if not written:
        binding.report("ColumnProjectionError", "no column is left to write", "arguments", "exclude_columns")
    return excluded, written


def _known_columns(names: tuple[str, ...], key: str, binding: Binding) -> list[str]:
    """Returns the names without the table; reports unknown columns and those named twice."""
    known = binding.before.columns
    names_by_column: dict[str, str] = {}
    for index, written in enumerate(names):
        name = written.removeprefix(f"{binding.before.table}.")
        if working_name(name) in names_by_column:
            message = f"column '{written}' is named twice"
            binding.report("DuplicateColumn", message, "arguments", key, index, hint="keep one")
        elif working_name(name) in known:
            names_by_column[working_name(name)] = name
        elif not binding.before.open:
            message = f"the working dataset has no column '{written}'"
            hint = did_you_mean(name, known)
            if name.partition(".")[0] in binding.before.lookups:
                hint = "an output cannot write lookup columns; copy it into a column with an update first"
            binding.report("ColumnProjectionError", message, "arguments", key, index, hint=hint)
    return list(names_by_column.values())


@dataclass(frozen=True)
class OutputStep(Step):
    """A checked output. It builds the rows to publish; the engine's caller writes them."""

    type: ClassVar[str] = "output"

    def rows_to_publish(self, rows: Rows, build: BuildContext) -> DataFrame:
        assert self.publishes is not None
        return filtered(rows, self, build).select(self.publishes.working_columns)
