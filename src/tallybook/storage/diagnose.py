"""Explains why a job could not read its data. It reads the data again, so it runs only after a failure.

The cause is a value, shown with its file and row, or a file that is damaged, of another format, or was removed during
the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tallybook.errors import IN_MESSAGE, BadValue, Problem
from tallybook.exit_codes import BUSY
from tallybook.model.dataset import Table
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.failure import causes, error_condition
from tallybook.storage.files import path_of
from tallybook.storage.formats import FORMATS, format_of
from tallybook.storage.formats.signature import Signature, damaged
from tallybook.storage.notation import ISO
from tallybook.storage.read import agrees_with_folder, converted, scan_location
from tallybook.storage.scan import FILE, ROW, START, Field, Scan, fields_of, quoted
from tallybook.storage.types import wanted

_ID, _FIRST = map(sql.internal, ("id", "first"))
_MOST = 100
_SHOWN_CHARACTERS = 200
_OLD_DATES = "INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME"
_FILE = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+)\.\s")


def diagnose(spark: SparkSession, raised: dict[str, Any], reads: Iterable[tuple[Location, Table]]) -> Problem:
    """Returns the problem for the details of a DataLoadError that a plan raised, with the first bad values of all
    columns and files of its table. `reads` is what the job was reading."""
    of_table = [(location, table) for location, table in reads if table.name == raised.get("table")]
    failed = [table for location, table in of_table if location.target == raised.get("location")]
    locations = [location for location, table in of_table if table in failed]
    for table in failed[:1]:
        field = next(f for f in fields_of(table) if f.name == raised["column"])
        values = _bad_values(spark, locations, table)
        if all(each.value.column not in (None, field.physical) for each in values):  # others come first, by the hundred
            values = _bad_values(spark, locations, table, field)
        if values:
            return _problem(table, values)
    value = "NULL" if raised.get("value") is None else f"'{raised['value']}'"
    whole_row = raised.get("of") == "row"
    what = "a row cannot be read" if whole_row else f"column '{raised.get('column')}' cannot hold this value"
    return Problem("DataLoadError", f"table '{raised.get('table')}': {what}: {value}")


def diagnose_file(spark: SparkSession, path: str, locations: Iterable[Location]) -> Problem | None:
    """Returns the problem of a file that Spark's parser could not read; None if the file no longer exists. `locations`
    are those that the job was reading."""
    problems = (format_of(location).parser_fault(spark, location, path) for location in locations)
    return next(filter(None, problems), None)


@dataclass(frozen=True)
class _Found:
    """A bad value, and the hint for its column or row."""

    value: BadValue
    hint: str | None


def _bad_values(
    spark: SparkSession, locations: Iterable[Location], table: Table, only: Field | None = None
) -> list[_Found]:
    """Returns the first bad values of a table, one more than are shown if there are as many."""
    found: list[_Found] = []
    for location in locations:
        for scan in scan_location(spark, location, fields_of(table), 0):
            fields = [field for field in fields_of(table) if field.physical in scan.types and only in (None, field)]
            rest = _MOST + 1 - len(found)
            found += _in_scan(location, scan, fields, rest) if fields and rest else []
    return found


def _in_scan(location: Location, scan: Scan, fields: Sequence[Field], most: int) -> list[_Found]:
    """Returns bad values in the order of files and rows. A row that cannot be read is one of them, and has no others.

    It always reads a column, because Spark refuses to read broken rows alone.
    """
    entries = [_entry(index, *_fault(scan, field)) for index, field in enumerate(fields)]
    bad = F.filter(F.array(*entries), lambda entry: entry.isNotNull())
    if scan.broken is not None:
        bad = F.when(scan.broken.isNull(), bad).otherwise(F.array(_entry(-1, F.lit(True), scan.broken)))
    rows = _numbered(scan).select(F.col(FILE).alias("file"), F.col(ROW).alias("row"), F.explode(bad).alias("entry"))
    first = rows.select("file", "row", "entry.*").orderBy("file", "row", "field").limit(most)
    return [_found(location, scan, fields[row.field] if row.field >= 0 else None, row) for row in first.collect()]


def _entry(index: int, bad: Column, shown: Column) -> Column:
    cut = F.substring(shown.cast("string"), 1, _SHOWN_CHARACTERS)
    return F.when(bad, F.struct(F.lit(index).alias("field"), cut.alias("shown")))


def _fault(scan: Scan, field: Field) -> tuple[Column, Column]:
    """Returns a condition that is true for a bad value, and the value as it is shown."""
    given = quoted(field.physical)
    no_value = given.isNull() if not field.nullable else F.lit(False)
    bad, shown = no_value | (given.isNotNull() & converted(field, scan).isNull()), given.cast("string")
    if field.physical in scan.doubts:
        doubt = quoted(scan.doubts[field.physical])
        with_reason = F.concat(shown, F.coalesce(F.concat(F.lit(" ("), doubt, F.lit(")")), F.lit("")))
        bad, shown = bad | doubt.isNotNull(), F.coalesce(with_reason, doubt)
    if field.physical in scan.folders:
        bad = bad | ~agrees_with_folder(field, scan)
        shown = F.coalesce(shown, F.lit("NULL"))
        folder = F.concat(F.lit(f" (its folder says {field.physical}="), quoted(scan.folders[field.physical]))
        shown = F.concat(shown, F.coalesce(folder, F.lit(" (its folder says NULL")), F.lit(")"))
    return bad, shown


def _found(location: Location, scan: Scan, field: Field | None, row: Row) -> _Found:
    file = path_of(row.file) if row.file else str(location)
    number = None if row.row is None else row.row + 1
    if field is None:
        return _Found(BadValue(file, number, None, row.shown, "a row"), format_of(location).row_hint)
    prefix = scan.addresses.get(field.physical)
    cell = None if prefix is None else f"{prefix}{number}"
    needed = wanted(field.type, scan.text.get(field.physical, ISO)) + ("" if field.nullable else ", never NULL")
    value = BadValue(file, number, field.physical, row.shown, str(field.type), cell)
    return _Found(value, f"the column needs {needed}")


def _numbered(scan: Scan) -> DataFrame:
    """Adds to rows their index in the file; NULL if Spark read the file in pieces, or if there is no file."""
    if ROW in scan.values:
        return scan.frame
    if START not in scan.values:
        return scan.frame.withColumn(ROW, F.lit(None).cast("bigint"))
    counted = scan.frame.withColumn(_ID, F.monotonically_increasing_id())
    firsts = counted.where(F.col(START) == 0).groupBy(FILE).agg(F.min(_ID).alias(_FIRST))
    whole = F.col(START) == 0
    return counted.join(F.broadcast(firsts), FILE, "left").withColumn(ROW, F.when(whole, F.col(_ID) - F.col(_FIRST)))


def _problem(table: Table, found: Sequence[_Found]) -> Problem:
    """Returns the problem of bad values: the few of one column are in its message, others in a list."""
    values = tuple(each.value for each in found[:_MOST])
    columns = dict.fromkeys(value.column for value in values)
    hints = dict.fromkeys(each.hint for each in found[:_MOST] if each.hint)
    hint = next(iter(hints)) if len(columns) == 1 and hints else "correct the values, or declare the types they have"
    few = len(columns) == 1 and len(values) <= IN_MESSAGE
    what = "rows" if set(columns) == {None} else "values" if None not in columns else "values and rows"
    count = f"more than {_MOST} {what}; the first {_MOST} are" if len(found) > _MOST else f"{len(values)} {what}"
    listed = "; ".join(f"{value.where}: {value.shown}" for value in values) if few else f"{count}:"
    if set(columns) == {None}:
        message = f"rows of table '{table.name}' cannot be read: {listed}"
    elif len(columns) == 1:
        message = (
            f"column '{values[0].column}' of table '{table.name}' is {values[0].expected} and cannot hold {listed}"
        )
    else:
        message = f"table '{table.name}' cannot be read because of {listed}"
    return Problem("DataLoadError", message, hint, bad_values=values)


def failed_read(error: Exception, locations: Iterable[Location]) -> tuple[Problem, str] | None:
    """Returns the problem of a job that failed because of a file, and the file; None for other failures.

    Spark names the file unless it notices the damage late. Then PyArrow reads the local files of the job one after the
    other.
    """
    chain = causes(error)
    messages = [str(error), *(cause.message for cause in chain)]
    named = next((match for message in messages if (match := _FILE.match(f"{message} "))), None)
    if named is None:
        bad = next(_damaged_files(locations), None)
        return bad and (damaged(*bad), bad[1])
    path = path_of(re.sub("^file:/+", "file:/", named[2]))
    conditions = [error_condition(error), *(cause.condition for cause in chain)]
    return _named_problem(named[1], path, _OLD_DATES in conditions), path


def _named_problem(kind: str, path: str, old_dates: bool) -> Problem:
    if old_dates:
        message = f"{path} has dates before 1582-10-15 or timestamps before 1900, and its calendar is not known"
        return Problem("DataLoadError", message, "copy the file to this machine, or write it again with Spark")
    if kind == "FILE_NOT_EXIST":
        message = f"{path} was removed while the run was reading it"
        return Problem("DataLoadError", message, "run again", cause=BUSY)
    if kind == "PARQUET_COLUMN_DATA_TYPE_MISMATCH":
        message = f"a column of {path} has another type than in its table"
        return Problem("DataLoadError", message, "write the file again with the types of the table")
    signatures = (format.signature for format in FORMATS.values() if format.signature)
    return damaged(next((signature for signature in signatures if path.endswith(signature.suffix)), None), path)


def _damaged_files(locations: Iterable[Location]) -> Iterator[tuple[Signature, str]]:
    """Returns the local columnar files that PyArrow cannot read to the end, with the signature of their format."""
    for location in locations:
        local, signature = location.local_path, format_of(location).signature
        if local is None or signature is None:
            continue
        path = Path(local)
        for file in sorted(path.rglob(f"*{signature.suffix}")) if path.is_dir() else [path]:
            if "_delta_log" in file.parts or not file.is_file():
                continue
            try:
                signature.read(file)
            except (pa.ArrowException, OSError):
                yield signature, str(file)
