"""Explains why a job could not read its data. It reads the data again, so it runs only after a failure.

The cause is a value, shown with its file and row, or a file that is damaged, of another format, or was removed during
the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tallybook.errors import Problem
from tallybook.model.dataset import Table
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.failure import causes, error_condition
from tallybook.storage.files import path_of
from tallybook.storage.formats import FORMATS, format_of
from tallybook.storage.formats.signature import Signature, damaged
from tallybook.storage.read import agrees_with_folder, converted
from tallybook.storage.scan import FILE, ROW, START, Field, Scan, fields_of, quoted
from tallybook.storage.types import wanted

_ID, _FIRST = map(sql.internal, ("id", "first"))
_SHOWN = 5
_SHOWN_CHARACTERS = 200
_OLD_DATES = "INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME"
_FILE = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+)\.\s")


def diagnose(spark: SparkSession, raised: dict[str, Any], reads: Iterable[tuple[Location, Table]]) -> Problem:
    """Returns the problem for the details of a DataLoadError that a plan raised. `reads` is what the job was
    reading."""
    whole_row = raised.get("of") == "row"
    for location, table in reads:
        if (location.target, table.name) == (raised.get("location"), raised.get("table")):
            fields = fields_of(table)
            field = next(f for f in fields if f.name == raised["column"])
            scans = format_of(location).scan(spark, location, fields, 0)
            scans = tuple(scan for scan in scans if field.physical in scan.types)
            offenders = [row for scan in scans for row in _offenders(scan, field, whole_row)][:_SHOWN]
            if offenders:
                return _problem(location, table, field, offenders, whole_row=whole_row)
    value = "NULL" if raised.get("value") is None else f"'{raised['value']}'"
    what = "a row cannot be read" if whole_row else f"column '{raised.get('column')}' cannot hold this value"
    return Problem("DataLoadError", f"table '{raised.get('table')}': {what}: {value}")


def diagnose_file(spark: SparkSession, path: str, locations: Iterable[Location]) -> Problem | None:
    """Returns the problem of a file that Spark's parser could not read; None if the file no longer exists. `locations`
    are those that the job was reading."""
    problems = (format_of(location).parser_fault(spark, location, path) for location in locations)
    return next(filter(None, problems), None)


def _offenders(scan: Scan, field: Field, whole_row: bool) -> list[Row]:
    """Returns the first bad rows. It always reads the column, because Spark refuses to read broken rows alone."""
    given = quoted(field.physical)
    if whole_row and scan.broken is not None:
        bad, shown = scan.broken.isNotNull(), scan.broken
    else:
        no_value = given.isNull() if not field.nullable else F.lit(False)
        bad, shown = no_value | (given.isNotNull() & converted(field, scan).isNull()), given.cast("string")
        if field.physical in scan.doubts:
            doubt = quoted(scan.doubts[field.physical])
            bad, shown = (
                bad | doubt.isNotNull(),
                F.concat(shown, F.coalesce(F.concat(F.lit(" ("), doubt, F.lit(")")), F.lit(""))),
            )
        if field.physical in scan.folders:
            bad = bad | ~agrees_with_folder(field, scan)
            shown = F.coalesce(shown, F.lit("NULL"))
            folder = F.concat(F.lit(f" (its folder says {field.physical}="), quoted(scan.folders[field.physical]))
            shown = F.concat(shown, F.coalesce(folder, F.lit(" (its folder says NULL")), F.lit(")"))
    rows = _numbered(scan).where(bad)
    cut = F.substring(shown, 1, _SHOWN_CHARACTERS)
    return rows.select(
        F.col(FILE).alias("file"), F.col(ROW).alias("row"), cut.alias("shown"), given.cast("string")
    ).take(_SHOWN)


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


def _problem(location: Location, table: Table, field: Field, offenders: list[Row], *, whole_row: bool) -> Problem:
    listed = "; ".join(
        _where(location, row) + ": " + ("NULL" if row.shown is None else f"'{row.shown}'") for row in offenders
    )
    if whole_row:
        message = f"rows of table '{table.name}' cannot be read: {listed}"
        return Problem("DataLoadError", message, hint=format_of(location).row_hint)
    message = f"column '{field.physical}' of table '{table.name}' is {field.type} and cannot hold {listed}"
    return Problem(
        "DataLoadError",
        message,
        hint=f"the column needs {wanted(field.type)}" + ("" if field.nullable else ", never NULL"),
    )


def _where(location: Location, row: Row) -> str:
    where = path_of(row.file) if row.file else str(location)
    return where if row.row is None else f"{where} row {row.row + 1}"


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
        return Problem("DataLoadError", f"{path} was removed while the run was reading it", "run again")
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
