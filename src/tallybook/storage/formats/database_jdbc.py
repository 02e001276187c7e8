"""Reads tables of other databases with Spark's JDBC source, where the user brings the driver.

Spark's source can neither share a snapshot nor replace rows in one transaction. So a table is read by one query, and is
not written.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from tallybook.errors import RunError, fail
from tallybook.model.datasource import DatabaseSource, name_parts
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.credentials import secret_parts
from tallybook.storage.failure import SPARK_ERRORS, causes, reason
from tallybook.storage.formats.database_dialect import source_of
from tallybook.storage.scan import FILE, Field, Scan

_SCHEME = "jdbc:"
_BACKTICKS = ("jdbc:mysql:", "jdbc:mariadb:")
"""Databases whose names are in backticks; the others follow standard SQL."""
_NO_DRIVER = "No suitable driver"


def is_jdbc(source: DatabaseSource) -> bool:
    """True if a datasource is reached with a JDBC driver."""
    return source.options.url.lower().startswith(_SCHEME)


def scan_jdbc(spark: SparkSession, location: Location, fields: Sequence[Field]) -> tuple[Scan, ...]:
    """Returns the rows of a table. Spark asks for the needed columns, and for the needed rows where it can."""
    source = source_of(location)
    options = {"url": source.options.url, "dbtable": _quoted(source, location.target)}
    options |= secret_parts(source, ("password",), ("user",))
    try:
        frame = spark.read.format("jdbc").options(**options).load()
        frame.schema  # noqa: B018  # Spark Connect looks for the table only when it needs the schema
    except SPARK_ERRORS as error:
        raise _refused(location, options.get("password"), error) from error
    present = list(dict.fromkeys(field.physical for field in fields if field.physical in frame.columns))
    types = {name: frame.schema[name].dataType for name in present}
    values = {name: sql.name(name) for name in present} | {FILE: "CAST(NULL AS string)"}
    return (Scan(frame, values, types, frozenset(frame.columns)),)


def not_written(location: Location) -> RunError:
    """Returns the error for an output to such a database."""
    return fail(
        "WriteFailed",
        f"{location} cannot be written in one step: Spark's JDBC source cannot replace rows in one transaction",
        hint="write to PostgreSQL with a postgresql:// url, to SQLite, or to a Delta table",
    )


def _quoted(source: DatabaseSource, target: str) -> str:
    mark = "`" if source.options.url.lower().startswith(_BACKTICKS) else '"'
    return ".".join(mark + part.replace(mark, 2 * mark) + mark for part in name_parts(target))


def _refused(location: Location, password: str | None, error: Exception) -> RunError:
    messages = [cause.message for cause in causes(error)]
    if any(message.startswith(_NO_DRIVER) for message in messages):
        kind = ":".join(source_of(location).options.url.split(":")[:2])
        return fail(
            "DataLoadError",
            f"{location} cannot be read: Spark has no driver for {kind}:",
            hint="name the jar of the driver in `spark.conf` of tallybook.yaml: spark.jars: /path/to/driver.jar",
        )
    text = reason(error)
    return fail("DataLoadError", f"{location} could not be read: {text.replace(password, '***') if password else text}")
