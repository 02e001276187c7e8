"""Excel workbooks (.xlsx): people read and fill them, so they have real numbers and dates.

The driver reads and writes them, one sheet of at most 1,048,576 rows. Spark checks the values: reading parses the texts
of cells like those of CSV, and writing fails on a value that a cell cannot hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.errors import fail
from tallybook.model.cell_range import MAX_COLUMNS, MAX_ROWS, CellRange
from tallybook.model.columns import folded
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.rows.ids import POSITION
from tallybook.rows.raising import raising
from tallybook.storage.credentials import reader
from tallybook.storage.files import file_options, list_files, path_of, readable_here, reader_path, reader_paths
from tallybook.storage.folders import check_layout, folder_values, visible
from tallybook.storage.formats.base import register
from tallybook.storage.formats.excel_reader import Cell, Sheet, cell_text, has_lost_digits, read_sheet
from tallybook.storage.formats.excel_writer import write_workbook
from tallybook.storage.formats.plain_files import Options, PlainFiles
from tallybook.storage.load import check_names
from tallybook.storage.notation import ISO
from tallybook.storage.scan import FILE, ROW, Field, Scan, quoted
from tallybook.storage.stage import StagedFile

_DIGITS, _LONGEST_TEXT = 15, 32_767
_FIRST_DAY = "1900-03-01"
"""Excel takes 1900 for a leap year, so that programs disagree about days before."""
_MOST_ROWS = 2_000_000
_LOST_DIGITS = "the number has more digits than a cell can hold; store it as text"
_OWNER_FILE = "~$"
"""The beginning of the name of a file that Excel keeps next to an open workbook."""


class Excel(PlainFiles):
    """Excel: one sheet of a workbook, in cells that are numbers, dates, booleans or text."""

    type = "excel"
    inexact = "an Excel cell"
    inexact_hint = (
        "a cell keeps numbers of 15 digits, days from 1900-03-01, milliseconds, and texts of 32,767 characters: round "
        "or shorten the value, or convert a number to text with TO_STRING"
    )

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        check_layout(spark, location)
        listed = visible(location, list_files(reader(spark, location), reader_path(location)))
        files = [file for file in listed if not path_of(file).rpartition("/")[2].startswith(_OWNER_FILE)]
        contents = {} if readable_here(files) else _contents(spark, location, files)
        options = file_options(location)
        cells = CellRange.parse(options.range) if options.range else CellRange()
        scans: list[Scan] = []
        rows = 0
        for ordinal, file in enumerate(files, first):
            sheet = read_sheet(path_of(file), contents.get(file), options.sheet, cells)
            rows += len(sheet.rows)
            if rows > _MOST_ROWS:
                message = f"{location} has more than {_MOST_ROWS:,} rows in Excel workbooks"
                raise fail("DataLoadError", message, hint="save the data as CSV or Parquet")
            scans.append(_scan(spark, location, fields, file, sheet, ordinal))
        return tuple(scans)

    def prepared(self, spark: SparkSession, frame: DataFrame, location: Location) -> DataFrame:
        """Fails the job on a value that a cell cannot hold exactly."""
        columns = []
        for field in frame.schema.fields:
            value = quoted(field.name)
            bad = _too_much(value, field.dataType)
            if bad is not None:
                failure = raising("WriteFailed", column=field.name, value=value.cast("string"))
                value = F.when(bad, failure.cast(field.dataType)).otherwise(value)
            columns.append(value.alias(field.name))
        return frame.select(*columns)

    def save(
        self,
        spark: SparkSession,
        frame: DataFrame,
        ready: DataFrame,
        location: Location,
        path: str,
        options: Options,
        partition_by: Sequence[str],
    ) -> tuple[StagedFile, ...]:
        """Collects the rows in their order and writes them, unless they are too many for a sheet."""
        own = file_options(location)
        most = MAX_ROWS - int(own.has_header)
        rows = ready.limit(most + 1).toArrow()
        if rows.num_rows > most or rows.num_columns > MAX_COLUMNS:
            what = f"more than {most:,} rows" if rows.num_rows > most else f"{rows.num_columns:,} columns"
            message = (
                f"{location} could not be written: the output has {what}, and a sheet of Excel has no room for them"
            )
            raise fail("WriteFailed", message, hint="write fewer with a selector or `columns`, or write CSV or Parquet")
        folder = Path(path)
        folder.mkdir()
        file = folder / f"part-00000-{uuid4().hex}.xlsx"
        write_workbook(file, rows, own.sheet or "Sheet1", header=own.has_header)
        return (StagedFile(file.name, file.stat().st_size, rows.num_rows),)

    def existing_columns(self, spark: SparkSession, location: Location, target: str) -> T.StructType:
        first = min(Path(target).glob("[!._~]*.xlsx"))
        options = file_options(location)
        sheet = read_sheet(str(first), None, options.sheet, CellRange())
        header = sheet.rows[0][1] if sheet.rows else ()
        return T.StructType([T.StructField(str(cell_text(name)), T.StringType()) for name in header])

    def same_columns(self, location: Location, existing: T.StructType, new: T.StructType) -> bool:
        """Sheets without a header have the same columns if they have as many."""
        return existing.names == new.names if file_options(location).has_header else len(existing) == len(new)


EXCEL = register(Excel())


def _too_much(value: Column, type: T.DataType) -> Column | None:
    """Returns a condition that is true if a cell cannot hold the value exactly; None if it can hold all of the type."""
    match type:
        case T.DecimalType() if type.precision > _DIGITS:
            return _significant_digits(value) > _DIGITS
        case T.LongType():
            return _significant_digits(value) > _DIGITS
        case T.DateType():
            return value < F.lit(_FIRST_DAY).cast("date")
        case T.TimestampType():
            early = value < F.lit(f"{_FIRST_DAY} 00:00:00Z").cast("timestamp_ltz")
            return early | (F.unix_micros(value) % 1000 != 0)
        case T.StringType():
            return F.length(value) > _LONGEST_TEXT
    return None


def _significant_digits(value: Column) -> Column:
    """Counts digits without zeros at both ends: these a cell can always hold."""
    return F.length(F.trim(F.regexp_replace(value.cast("string"), r"[-.]|E.*", ""), F.lit("0")))


def _contents(spark: SparkSession, location: Location, files: Sequence[str]) -> dict[str, bytes]:
    """Returns the files that only Spark can read."""
    if not files:
        return {}
    rows = (
        reader(spark, location)
        .format("binaryFile")
        .load(reader_paths(files))
        .select(F.col("content"), F.expr("_metadata.file_path AS file"))
    )
    return {row["file"]: bytes(row["content"]) for row in rows.collect()}


def _scan(
    spark: SparkSession, location: Location, fields: Sequence[Field], file: str, sheet: Sheet, ordinal: int
) -> Scan:
    folders = folder_values(location, path_of(file))
    names, rows = _names(location, fields, file, sheet, folders)
    wanted = {field.physical for field in fields}
    indexes = {name: index for index, name in enumerate(names) if name in wanted}
    check_names(location, sorted({*indexes, *folders} & wanted))
    cells = {name: [row[index] if index < len(row) else None for _, row in rows] for name, index in indexes.items()}
    columns: dict[str, pa.Array] = {}
    for name, of_column in cells.items():
        digits = max(field.type.scale for field in fields if field.physical == name)
        columns[name] = pa.array([cell_text(value, digits) for value in of_column], pa.string())
    both = {name: sql.internal(f"folder of {name}") for name in folders if name in indexes}
    for name, value in folders.items():
        columns[both.get(name, name)] = pa.array([value] * len(rows), pa.string())
    doubts = _doubts(sheet, indexes, cells, [number for number, _ in rows])
    columns |= {sql.internal(f"doubt of {name}"): pa.array(reasons, pa.string()) for name, reasons in doubts.items()}
    columns[ROW] = pa.array([number for number, _ in rows], pa.int64())
    schema = T.StructType([T.StructField(name, T.LongType() if name == ROW else T.StringType()) for name in columns])
    source = spark.createDataFrame(pa.table(list(columns.values()), names=list(columns)), schema)
    present = {name for name in (*indexes, *folders) if name in wanted}
    values = {name: sql.name(name) for name in columns if name in present or name not in folders}
    values |= {FILE: sql.text(file), POSITION: f"shiftleft({ordinal}L, 40) | {sql.name(ROW)}"}
    return Scan(
        source,
        values,
        dict.fromkeys(present, T.StringType()),
        frozenset(names).union(folders),
        (file,),
        dict.fromkeys(present, ISO),
        doubts={name: sql.internal(f"doubt of {name}") for name in doubts},
        folders={name: folder for name, folder in both.items() if name in present},
        addresses={name: sheet.prefix(index) for name, index in indexes.items()},
    )


def _names(
    location: Location, fields: Sequence[Field], file: str, sheet: Sheet, folders: dict[str, str | None]
) -> tuple[list[str], Sequence[tuple[int, Sequence[Cell]]]]:
    """Returns the column of each cell of a row, and the rows below the header: by the header, which is the first row
    that is not blank, else in the order of the table."""
    path = path_of(file)
    wanted = {field.physical for field in fields}
    if file_options(location).has_header:
        header = sheet.rows[0][1] if sheet.rows else ()
        names, rows = [cell_text(name) or f"_c{index}" for index, name in enumerate(header)], sheet.rows[1:]
        message = f"{path} has the column '{{}}' twice in sheet '{sheet.name}'"
        if header and not {folded(name) for name in names} & {folded(name) for name in wanted}:
            row = f"row {sheet.rows[0][0] + 1} of sheet '{sheet.name}' in {path}"
            hint = "the header is the first row that is not blank; if others are above it, set `range`, such as A3"
            raise fail("SchemaMismatch", f"{row} has none of the columns of the table", hint=hint)
    else:
        names = [field.physical for field in fields if field.declared and field.physical not in folders]
        rows, message = sheet.rows, "the table uses the column '{}' twice, which needs sheets with a header"
        used = max((_used(row) for _, row in rows), default=0)
        if used > len(names):
            what = f"{path} has {used} columns in sheet '{sheet.name}', and the table has {len(names)}"
            raise fail("SchemaMismatch", what, hint="set `range`, or declare all columns")
    twice = next((name for name, count in Counter(names).items() if count > 1 and name in wanted), None)
    if twice is not None:
        raise fail("SchemaMismatch", message.format(twice), hint="rename one of them")
    return names, rows


def _used(row: Sequence[Cell]) -> int:
    return max((index + 1 for index, value in enumerate(row) if value is not None), default=0)


def _doubts(
    sheet: Sheet, indexes: dict[str, int], cells: dict[str, list[Cell]], rows: Sequence[int]
) -> dict[str, list[str | None]]:
    """Returns, for each column that has cells without a clear value, the reason for each row."""
    doubts: dict[str, list[str | None]] = {}
    for name, index in indexes.items():
        column = sheet.first_column + index
        reasons = [
            _LOST_DIGITS if has_lost_digits(value) else sheet.doubts.get((number, column))
            for number, value in zip(rows, cells[name], strict=True)
        ]
        if any(reasons):
            doubts[name] = reasons
    return doubts
