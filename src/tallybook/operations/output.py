"""output: writes selected columns and rows of the working dataset. No other operation writes anything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.errors import did_you_mean
from tallybook.model.base import ID_PATTERN, Entity, NonEmpty, Text
from tallybook.model.columns import INTERNAL, PERIOD, ROW_ID, folded, system_column, why_reserved
from tallybook.model.nested_period import NestedPeriod
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding
from tallybook.operations.lookups import filtered
from tallybook.operations.publication import (
    ALL_SYSTEM_COLUMNS,
    ColumnItem,
    Destination,
    ExcludedColumns,
    Mode,
    Publication,
    SortKey,
    WrittenColumn,
    working_name,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tallybook.rows.working import Rows


_SORT = f"{INTERNAL}sort "


class OutputArguments(Entity):
    """Where to write, and which columns and rows."""

    destination: Destination
    mode: Mode = "overwrite"
    columns: tuple[ColumnItem, ...] | None = None
    exclude_columns: ExcludedColumns | None = None
    order_by: tuple[NonEmpty, ...] = ()
    include_deleted: bool = False
    partition_by: tuple[NonEmpty, ...] = ()
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

    - The destination is exactly one of `{datasource_id, schema?, table}` and `{location}`. A location that ends with
      the extension of a format (`report.csv`) is one file, any other a folder of files.
    - A reader never sees half a write, and a failed or killed run leaves what was there before. [How an output
      appears](../decisions/0003-publishing-plain-files.md) says how, and where plain files cannot be written.
    - An output replaces its own earlier files and nothing else. A folder with any other file in it, hidden ones
      included, is refused, and the message lists them. A single file is replaced whoever wrote it.
    - A table stays inside the `path_prefix` of its datasource, and a relative path inside the workspace, whatever
      templates and links say. Anything outside needs an absolute path.
    - A run does not write to a location that it reads, nor to a folder around or inside it. Only a Delta table can be
      read and overwritten by one run.
    - Two outputs of a project do not write to one location, unless those after the first have `mode: append` and the
      first replaces all rows.
    - If a file that the run reads changes before an output is published, the run fails and the output is not published.
      [What an output may touch](../decisions/0008-what-an-output-may-touch.md) has the details of these five.
    - `mode: replace_period` replaces the rows of the run's period in one step and leaves all others, so one table can
      have all periods. It needs a Delta table or a table of a database, and `_period` among the written columns. The
      run of a longer period also replaces the shorter periods whose rows it reads or writes: that of a quarter replaces
      its months. A period without rows becomes empty. A row of any other period, or without one, fails the run. [One
      table for all periods](../decisions/0022-one-table-for-all-periods.md) has the details.
    - `partition_by: [region, month]` divides the rows of a Delta table or a folder of Parquet files among folders named
      after the values of these columns (`region=EMEA/month=01`), which are read back exactly. An empty text is refused,
      because readers take it for NULL. What is there already must be partitioned by the same columns; only a folder of
      Parquet files that is overwritten may change them.
    - `mode: append` adds rows once for each project and period: running the period again is refused, unless you
      ask for it with `run --again`.
    - The outputs of a draft go to the sandbox instead; see [`tallybook activate`](command-line.md#tallybook-activate).
    - `register_as_dataset` makes what was written readable for other projects, as version 1 or the next. The
      destination must be Delta: that version keeps reading those rows, also after later overwrites. Its temporal mode
      follows from the columns written: `_period` makes it `period`, validity columns `bitemporal`.
    - `columns` may rename: `[cost_centre, {variance_pct: "Variance %"}]`. A registered dataset keeps the column's own
      name and finds it in the data with `source`. The columns of a Delta table cannot have blanks, commas, semicolons,
      equals signs, braces or parentheses in their names.
    - `order_by: [cost_centre, -amount]` sorts the rows, and a folder then has one file. Text is sorted by code point,
      NULL comes last in both directions, and rows with equal values are in the order in which they came in. The columns
      need not be written. A Delta table keeps no order, so it cannot be sorted.
    - `exclude_columns: system` leaves all system columns out. So does an output of type `excel` without `columns` and
      `exclude_columns`.
    - An Excel workbook (`report.xlsx`, or `format: excel`) has real numbers, dates and booleans, a header that stays in
      view, and columns as wide as their values; [Reports and Excel](../howto/reports-and-excel.md) shows one.
    - An output without rows still writes a readable table with columns and types.
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
        _check_period(args, written, binding)
        order_by = _sort_keys(args.order_by, binding)
        if order_by and args.partition_by:
            message = "`order_by` and `partition_by` cannot both be given: rows in several folders have no order"
            binding.report("InvalidArguments", message, "arguments", "order_by", hint="keep one of them")
        publication = Publication(
            self.seq,
            self.name,
            args.destination,
            args.mode,
            {name: schema.columns[column] for name, column in written.items()},
            args.include_deleted,
            _checked_name(args.register_as_dataset, binding),
            _partitions(args, written, binding),
            frozenset((*named, *(key.column for key in order_by))),
            renamed={name: column for name, column in written.items() if column != working_name(name)},
            order_by=order_by,
            chosen=args.columns is not None or args.exclude_columns is not None,
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
    by_table = any(part is not None for part in (destination.datasource_id, destination.schema_, destination.table))
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


def _check_period(args: OutputArguments, written: Mapping[str, str], binding: Binding) -> None:
    """Reports an output that replaces the rows of its period, but does not write the period of its rows."""
    if args.mode == "replace_period" and PERIOD not in written and written:
        key = "columns" if args.columns is not None else "exclude_columns"
        hint = "add `_period` to `columns`" if key == "columns" else "remove `_period` from `exclude_columns`"
        binding.report(
            "InvalidArguments",
            "`mode: replace_period` finds the rows to replace by `_period`, which the output does not write",
            "arguments",
            key,
            hint=f"{hint}, or use `mode: overwrite`",
        )


def _partitions(args: OutputArguments, written: Mapping[str, str], binding: Binding) -> tuple[str, ...]:
    """Returns the columns to partition by; reports those that are not written or named twice, and an output without
    another column."""
    path = ("arguments", "partition_by")
    for index, name in enumerate(args.partition_by):
        if name in args.partition_by[:index]:
            binding.report("DuplicateColumn", f"column '{name}' is named twice", *path, index, hint="keep one")
        elif name not in written and not binding.before.open:
            message, hint = f"the output does not write the column '{name}'", did_you_mean(name, written)
            binding.report("ColumnProjectionError", message, *path, index, hint=hint)
    if args.partition_by and set(written) <= set(args.partition_by):
        hint = "leave one out: the files in the folders need at least one column"
        binding.report("InvalidArguments", "the output is partitioned by all its columns", *path, hint=hint)
    return args.partition_by


def _projection(args: OutputArguments, binding: Binding) -> tuple[Sequence[str], Mapping[str, str]]:
    """The columns the user names, and by the name in the data the working column of each column to write, in order."""
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
        named = _known_columns([item.column for item in args.columns], "columns", binding)
        return list(named.values()), _headers(args.columns, named, binding)
    if args.exclude_columns == ALL_SYSTEM_COLUMNS:
        return (), {name: name for name in known if name not in ALL_SYSTEM_COLUMNS}
    excluded = list(_known_columns(args.exclude_columns or (), "exclude_columns", binding).values())
    left_out = set(map(working_name, excluded))
    written = {name: name for name in known if name not in left_out}
    if not written:
        binding.report("ColumnProjectionError", "no column is left to write", "arguments", "exclude_columns")
    return excluded, written


def _headers(items: Sequence[WrittenColumn], named: Mapping[int, str], binding: Binding) -> dict[str, str]:
    """Returns the working columns by the names that they are written under; reports names that cannot be used."""
    columns: dict[str, str] = {}
    taken: dict[str, str] = {}
    for index, name in named.items():
        header = items[index].header
        written = name if header is None else header
        problem = None if header is None else _why_no_header(header, name)
        if problem is not None:
            hint = "use printable characters, without blanks at the ends, and no name of a system column"
            binding.report("InvalidColumnName", problem, "arguments", "columns", index, hint=hint)
        elif folded(written) in taken:
            message = f"the columns '{taken[folded(written)]}' and '{name}' would both be written as '{written}'"
            hint = "give one of them another name; names that differ only by case are the same"
            binding.report("DuplicateColumn", message, "arguments", "columns", index, hint=hint)
        else:
            columns[written] = working_name(name)
            taken[folded(written)] = name
    return columns


def _why_no_header(header: str, column: str) -> str | None:
    """The reason why a column cannot be renamed so; None if it can."""
    system = system_column(header)
    if system is not None and header != working_name(column):
        return f"column '{column}' cannot be written as '{header}': {why_reserved(header)}"
    if not header.isprintable() or header != header.strip() or header.startswith(INTERNAL) or len(header) > 255:
        return f"column '{column}' cannot be written under the name '{header}'"
    return None


def _sort_keys(items: tuple[str, ...], binding: Binding) -> tuple[SortKey, ...]:
    """The columns to sort by; a minus before the name turns the order round."""
    keys = _known_columns([item.removeprefix("-").strip() for item in items], "order_by", binding)
    return tuple(SortKey(working_name(name), items[index].startswith("-")) for index, name in keys.items())


def _known_columns(names: Sequence[str], key: str, binding: Binding) -> dict[int, str]:
    """Returns the names without the table, by their index; reports unknown columns and those named twice."""
    known = binding.before.columns
    columns: dict[int, str] = {}
    for index, written in enumerate(names):
        name = written.removeprefix(f"{binding.before.table}.")
        if working_name(name) in map(working_name, columns.values()):
            message = f"column '{written}' is named twice"
            binding.report("DuplicateColumn", message, "arguments", key, index, hint="keep one")
        elif working_name(name) in known:
            columns[index] = name
        elif not binding.before.open:
            message = f"the working dataset has no column '{written}'"
            hint = did_you_mean(name, known)
            if name.partition(".")[0] in binding.before.lookups:
                hint = "an output cannot write lookup columns; copy it into a column with an update first"
            binding.report("ColumnProjectionError", message, "arguments", key, index, hint=hint)
    return columns


@dataclass(frozen=True)
class OutputStep(Step):
    """A checked output. It builds the rows to publish; the engine's caller writes them."""

    type: ClassVar[str] = "output"

    def rows_to_publish(self, rows: Rows, build: BuildContext) -> DataFrame:
        """Sorted rows are in one partition: Spark would compute the rows twice to divide them among several."""
        from tallybook.expressions.compile import column_named
        from tallybook.rows.system import raise_outside

        output = self.publishes
        assert output is not None
        selected = filtered(rows, self, build)
        if output.mode == "replace_period":
            period = build.compiler.period
            names = NestedPeriod(period.period, period.calendar).names
            return raise_outside(selected.select(output.working_columns), names, self.seq)
        if not output.order_by:
            return selected.select(output.working_columns)
        keys = {_SORT + str(index): key.column for index, key in enumerate(output.order_by)} | {_SORT: ROW_ID}
        frame = selected.select({**output.working_columns, **keys})
        last = [
            (column_named(name).desc_nulls_last if key.descending else column_named(name).asc_nulls_last)()
            for name, key in zip(keys, (*output.order_by, SortKey(ROW_ID)), strict=True)
        ]
        ordered = frame.repartition(1).sortWithinPartitions(*last)
        return ordered.select(*map(column_named, output.columns))
