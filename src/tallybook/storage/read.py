"""Reads the rows of a table, checked and typed: every declared column under its own name, and the system columns.

Checks of values are expressions in the plan that fail the job (`tallybook.rows.raising`), so good data is read only
once. `diagnose` turns such a failure into a problem that names the values. A column that is not used is neither read
nor checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from tallybook.errors import RunError, did_you_mean, fail
from tallybook.expressions.compile import spark_type
from tallybook.model.columns import PERIOD, TIMESTAMP, VALIDITY_COLUMNS, folded
from tallybook.model.dataset import Table
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.rows.ids import POSITION
from tallybook.rows.raising import raising
from tallybook.storage.folders import own_folder_values
from tallybook.storage.formats import format_of
from tallybook.storage.formats.column_reading import UnreadableType
from tallybook.storage.notation import ISO
from tallybook.storage.scan import ALL, ORIGIN, Field, Part, Scan, fields_of, quoted
from tallybook.storage.types import bound_of_validity, from_text, is_timestamp, widens

_EXPANDED_BY_HADOOP = re.compile(r"\$\{(env\.[^ $}]*|[^ $}:]+)\}")
"""Columnar readers pass column names in a setting of Hadoop, which replaces this form if the variable or setting
exists. Spark would then look for a column of another name and return NULL. Spark's own `${env:NAME}` is not replaced
there."""
_LISTED = 10
"""The most columns that one message names."""


def read(spark: SparkSession, location: Location, table: Table) -> DataFrame:
    """Returns the rows of one location; see `read_all`."""
    return read_all(spark, [location], table)


def read_all(
    spark: SparkSession, locations: Sequence[Location], table: Table, *, numbered: bool = True, part: Part = ALL
) -> DataFrame:
    """Returns the rows of a table at several locations, such as one for each month of a quarter.

    The frame has the declared columns and the system columns that the data has. If `numbered`, it also has POSITION,
    which orders the rows over all locations; it makes Spark read the index of each row. Rows of a `period` table
    without a period column belong to the period of their location. A system column that only some locations have is
    NULL on the rows of the others. Rows that are not in `part` may be among the result or not.
    """
    frames: list[DataFrame] = []
    files = 0
    by_format = True
    for location in locations:
        scans = scan_location(spark, location, fields_of(table, part), files)
        if not scans and location.on_missing != "empty":
            raise _not_found(location)
        frames += [_of_periods(_typed(scan, location, table, numbered), location) for scan in scans]
        files += sum(len(scan.files) for scan in scans)
        by_format = by_format and all(POSITION in scan.values for scan in scans)
    rows = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames or [_empty(spark, table)])
    return rows if by_format or not numbered else rows.withColumn(POSITION, F.monotonically_increasing_id())


def scan_location(spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
    """Returns the rows of a location, with the columns in the names of its own folders; see `Format.scan`.

    A rule with the path `lake/year={{YYYY}}/month={{MM}}` reads one folder of a lake, and its rows have a year and a
    month like those of the whole lake. A column of the files comes first. The period of a location is known already.
    """
    scans = format_of(location).scan(spark, location, fields, first)
    wanted = {field.physical for field in fields if field.name != PERIOD or location.period is None}
    named = own_folder_values(location) if location.source.path_prefix is not None else {}
    values = {name: value for name, value in named.items() if name in wanted}
    return tuple(_with_values(scan, values) for scan in scans) if values else scans


def _with_values(scan: Scan, values: Mapping[str, str | None]) -> Scan:
    present = set(map(folded, scan.column_names))
    added = {name: value for name, value in values.items() if folded(name) not in present}
    literals = {name: "CAST(NULL AS string)" if value is None else sql.text(value) for name, value in added.items()}
    return replace(
        scan,
        values={**scan.values, **literals},
        types={**scan.types, **dict.fromkeys(added, T.StringType())},
        column_names=scan.column_names.union(added),
        text={**scan.text, **dict.fromkeys(added, ISO)},
    )


def _of_periods(rows: DataFrame, location: Location) -> DataFrame:
    """Returns the rows of the periods that are read at the location; all rows if it names none."""
    return rows.filter(f"{PERIOD} IN ({', '.join(map(sql.text, location.periods))})") if location.periods else rows


def _not_found(location: Location) -> RunError:
    by = [f"resolver '{location.resolver}'"] if location.resolver else []
    by += [f"rule '{location.rule}'"] if location.rule else []
    found_by = f" ({', '.join(by)})" if by else ""
    return fail(
        "DataNotFound",
        f"there is no data at {location}{found_by}",
        hint="if missing data means no rows, set on_missing: empty in the rule",
    )


def _typed(scan: Scan, location: Location, table: Table, numbered: bool) -> DataFrame:
    fields = _fitting_fields(scan, location, table)
    period = _rendered_period(scan, fields, location, table)
    position = {POSITION: scan.values[POSITION]} if numbered and POSITION in scan.values else {}
    if all(_is_final(field, scan) for field in fields):
        values = {field.name: scan.values[field.physical] for field in fields} | position | period
        is_as_wanted = all(value == sql.name(name) for name, value in values.items())
        if is_as_wanted and values.keys() == set(scan.source.columns):  # a select costs Spark some milliseconds
            return scan.source
        return sql.select(scan.source, values)
    columns = (checked(field, scan, location, table).alias(field.name) for field in fields)
    origin = {*ORIGIN, POSITION} - position.keys()  # Spark reads the origin of each row even if nothing uses it
    frame = sql.select(scan.source, {name: value for name, value in scan.values.items() if name not in origin})
    return frame.select(*columns, *position, *(F.expr(value).alias(name) for name, value in period.items()))


def _rendered_period(scan: Scan, fields: Sequence[Field], location: Location, table: Table) -> dict[str, str]:
    """Returns SQL for PERIOD if rows need a period and have no column for it: the period of their location."""
    if table.temporal_mode != "period" or any(field.name == PERIOD for field in fields):
        return {}
    if location.period is None:
        raise fail(
            "SchemaMismatch",
            f"{location} is shared by all periods and has no column '{table.period_column}', so the period of its rows "
            f"is not known (table '{table.name}')",
            hint=did_you_mean(table.period_column, scan.column_names),
        )
    return {PERIOD: sql.text(location.period)}


def _is_final(field: Field, scan: Scan) -> bool:
    """True if no value needs a conversion and none can be wrong."""
    same = field.physical not in scan.text and scan.types[field.physical] == spark_type(field.type)
    trusted = field.physical not in scan.doubts and field.physical not in scan.folders
    return same and field.nullable and scan.broken is None and trusted


@dataclass(frozen=True)
class _Misfit:
    """A column that does not fit its table: a message for it alone, the same in a list of several, and a hint."""

    message: str
    listed: str
    hint: str | None


def _fitting_fields(scan: Scan, location: Location, table: Table) -> list[Field]:
    """Returns the fields that the data has. Raises SchemaMismatch with all columns that are missing or have another
    type."""
    fields = fields_of(table)
    misfits = [misfit for field in fields if (misfit := _misfit(field, scan, location, table))]
    if len(misfits) == 1:
        raise fail("SchemaMismatch", misfits[0].message, hint=misfits[0].hint)
    if misfits:
        more = f"; and {len(misfits) - _LISTED} more" if len(misfits) > _LISTED else ""
        listed = "; ".join(misfit.listed for misfit in misfits[:_LISTED])
        where = format_of(location).where(location, scan)
        message = f"{len(misfits)} columns of {where} do not fit table '{table.name}': {listed}{more}"
        raise fail("SchemaMismatch", message, hint="declare the names and types that the data has, or correct the data")
    return [field for field in fields if field.physical in scan.types]


def _misfit(field: Field, scan: Scan, location: Location, table: Table) -> _Misfit | None:
    """Returns what is wrong with a column: it is required and missing, or has another type."""
    format = format_of(location)
    where = format.where(location, scan)
    if field.physical not in scan.types:
        if field.required:
            message = f"{where} has no column '{field.physical}' of table '{table.name}'"
            near = did_you_mean(field.physical, scan.column_names, near_only=True)
            listed = f"'{field.physical}' is missing" + (f" ({near})" if near else "")
            return _Misfit(message, listed, did_you_mean(field.physical, scan.column_names))
        other = next((name for name in scan.column_names if folded(name) == folded(field.physical)), None)
        if other is None:
            return None
        where = where if len(scan.files) == 1 else str(location)
        differs = f"'{other}', which differs from '{field.physical}' only by case"
        hint = f"'{field.physical}' is a system column; rename the column in the data"
        return _Misfit(f"{where} has a column {differs}", differs, hint)
    if format.expands_names and _EXPANDED_BY_HADOOP.search(field.physical):
        why = "Spark would take '${...}' in its name for a variable"
        message = f"column '{field.physical}' of {where} cannot be read: {why}"
        return _Misfit(message, f"'{field.physical}' cannot be read: {why}", "rename the column in the data")
    type = scan.types[field.physical]
    any_text = field.physical in scan.text and isinstance(type, T.StringType)
    bound = field.name in VALIDITY_COLUMNS and is_timestamp(type)
    if any_text or bound or widens(type, field.type):
        return None
    return _Misfit(
        f"column '{field.physical}' of {where} is {type.simpleString()}; table '{table.name}' declares {field.type}",
        f"'{field.physical}' is {type.simpleString()}, declared as {field.type}",
        type.hint
        if isinstance(type, UnreadableType)
        else "declare the type that the data has, or write the data with the declared type",
    )


def checked(field: Field, scan: Scan, location: Location, table: Table) -> Column:
    """Returns the value in its declared type; the job fails on a row with another value."""
    details = {"table": table.name, "location": location.target, "column": field.name}
    given = quoted(field.physical)
    value = converted(field, scan)
    if not field.nullable:
        value = F.coalesce(value, raising("DataLoadError", **details, value=given.cast("string")))
    elif field.physical in scan.text:
        value = F.coalesce(value, F.when(given.isNotNull(), raising("DataLoadError", **details, value=given)))
    if field.physical in scan.doubts:
        failure = raising("DataLoadError", **details, value=given.cast("string"))
        value = F.when(quoted(scan.doubts[field.physical]).isNotNull(), failure).otherwise(value)
    if field.physical in scan.folders:
        failure = raising("DataLoadError", **details, value=given.cast("string"))
        value = F.when(agrees_with_folder(field, scan), value).otherwise(failure)
    if scan.broken is not None:
        failure = raising("DataLoadError", **details, of="row", value=scan.broken)
        value = F.when(scan.broken.isNotNull(), failure).otherwise(value)
    return value


def converted(field: Field, scan: Scan, given: Column | None = None) -> Column:
    """Returns the value in its declared type, NULL if a text is not such a value. Bounds of validity may be
    timestamps."""
    given = quoted(field.physical) if given is None else given
    bound, notation = field.name in VALIDITY_COLUMNS, scan.text.get(field.physical)
    if bound and notation is not None:
        timestamp = from_text(given, TIMESTAMP, notation)
        return F.coalesce(from_text(given, field.type, notation), bound_of_validity(timestamp))
    if bound and is_timestamp(scan.types[field.physical]):
        return bound_of_validity(given.cast(spark_type(TIMESTAMP)))
    return from_text(given, field.type, notation) if notation else given.cast(spark_type(field.type))


def agrees_with_folder(field: Field, scan: Scan) -> Column:
    """Returns a condition that is true if a value equals the one in the name of its folder."""
    folder = quoted(scan.folders[field.physical])
    stated = converted(field, replace(scan, text={**scan.text, field.physical: ISO}), folder)
    return converted(field, scan).eqNullSafe(stated)


def _empty(spark: SparkSession, table: Table) -> DataFrame:
    columns = [T.StructField(f.name, spark_type(f.type)) for f in fields_of(table) if f.required or f.name == PERIOD]
    return spark.createDataFrame([], T.StructType([*columns, T.StructField(POSITION, T.LongType())]))
