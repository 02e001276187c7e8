"""The contract of a format, and the registry of all formats.

The `type` of a datasource names its format. Code that reads or writes rows calls `format_of(location)` and never
compares names. A new format is one file here, with a subclass of `Format` and a registered instance, and an import in
`formats/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import ClassVar, TypeVar

from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import Problem, RunError, fail
from tallybook.model.location import Location
from tallybook.model.state import Json
from tallybook.resolve.overlap import Area
from tallybook.storage.formats.signature import Signature
from tallybook.storage.output import Output
from tallybook.storage.scan import Field, Scan
from tallybook.storage.stage import Written


@dataclass(frozen=True)
class _Refusal:
    """The problem that a user sees if a format lacks an ability."""

    problem: str
    message: str
    hint: str | None = None


class Ability(Enum):
    """What a format may be able to do. The value is the refusal of a format that lacks the ability."""

    SCAN = _Refusal("DataLoadError", "cannot be read yet", "use files, a Delta table or a spark_catalog table")
    WRITE = _Refusal(
        "WriteFailed",
        "cannot be written yet",
        "write to a datasource of type delta; Spark and databases can read it from there",
    )
    REPLACE_PERIOD = _Refusal(
        "WriteFailed",
        "cannot replace the rows of one period in one step",
        "write to a datasource of type delta, or to one location for each period with `mode: overwrite`",
    )
    """An output with `mode: replace_period` replaces the rows of `Output.periods` and keeps all others, in one step.
    The writer calls `Output.periods.given` with the periods of the rows that it has staged, replaces the periods that
    the call returns, and reports them in `Written.periods`."""
    FINGERPRINT = _Refusal("InternalError", "has no files that could be compared later")
    VERSIONS = _Refusal("InternalError", "keeps no versions of its rows")


class Format:
    """A format of rows. It has no state: everything about the rows is in the location.

    The methods of an ability raise its refusal unless a format overrides them and lists the ability in `can`. Callers
    that can do without an ability check `can` first. The other methods and attributes have a default for every format.
    """

    type: ClassVar[str]
    can: ClassVar[frozenset[Ability]] = frozenset()

    signature: ClassVar[Signature | None] = None
    """How to recognise its data files, for columnar formats."""
    row_hint: ClassVar[str | None] = None
    """Describes a valid row, for formats in which a whole row can be invalid."""
    expands_names: ClassVar[bool] = False
    """True if Spark passes column names in a setting of Hadoop, which replaces `${...}` in them."""

    def require(self, ability: Ability, location: Location) -> None:
        """Raises the refusal of an ability that the format lacks."""
        if ability not in self.can:
            raise self.refusal(ability, location)

    def refusal(self, ability: Ability, location: Location) -> RunError:
        """Returns the error for a location whose format lacks an ability."""
        refusal = ability.value
        message = f"datasource '{location.source.id}' is of type {location.source.type}, which {refusal.message}"
        return fail(refusal.problem, message, hint=refusal.hint)

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        """Returns the rows of a location, one Scan for each set of files that are read alike; none if there is no data.

        `first` is the ordinal of the first file among all files of the table.
        """
        raise self.refusal(Ability.SCAN, location)

    def check_destination(self, location: Location, output: Output) -> None:
        """Raises WriteFailed if what is at the location forbids the output. It needs no rows and changes nothing."""
        raise self.refusal(Ability.WRITE, location)

    def write(self, spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
        """Writes the rows of an output, so that a reader sees all of them or none."""
        raise self.refusal(Ability.WRITE, location)

    def written_by(self, location: Location, output: Output) -> Location:
        """Returns the location of the rows of one output, without those that others have added."""
        raise self.refusal(Ability.WRITE, location)

    def has_written(self, location: Location, output: Output) -> bool | None:
        """True if an output of a run is visible at its destination; None if that cannot be found out."""
        raise self.refusal(Ability.WRITE, location)

    def fingerprint(self, spark: SparkSession, location: Location) -> list[Json]:
        """Returns what every file of a location is recognised by: name, size, time, and a hash if it is local; the
        number of rows of a table in a database."""
        raise self.refusal(Ability.FINGERPRINT, location)

    def hold(self, locations: Sequence[Location]) -> AbstractContextManager[Mapping[Location, Location]]:
        """Keeps the rows of locations as they are while a run reads them, if the format can and versions do not do it.

        Returns the location to read instead of each one.
        """
        return nullcontext({})

    def probe(self, location: Location) -> list[str] | None:
        """Connects to the datasource of a location and returns the names of its tables or files; None if only Spark
        can. Raises the problem of a datasource that does not answer."""
        return None

    def probe_with_spark(self, session: Callable[[], SparkSession], location: Location) -> list[str] | None:
        """Returns the same with the help of Spark, which is started only if it is needed."""
        return self.probe(location)

    def owned_files(self, location: Location) -> tuple[Path, ...]:
        """Returns the local files that outputs have written to a location; none if others have written there too."""
        return ()

    def unneeded_files(
        self, location: Location, versions: Collection[int], before: datetime, runs: Collection[str]
    ) -> tuple[Path, ...]:
        """Returns the local files that the runs wrote before a time, and that these versions, the newest one and those
        since that time do not need. Raises a problem if that cannot be known."""
        return ()

    def local_size(self, location: Location) -> int | None:
        """Returns the size in bytes of all files of a location; None if they are not on this machine."""
        return None

    def current_version(self, location: Location) -> int:
        """Returns the newest version at a location, ABSENT if there is no table."""
        raise self.refusal(Ability.VERSIONS, location)

    def areas_read(self, location: Location) -> Iterable[Area]:
        """Returns the areas of a file system that reading a location reaches, as far as they are known without
        Spark."""
        return ()

    def table_folders(self, spark: SparkSession, location: Location) -> set[str]:
        """Returns the folders that reading a location reaches and that only Spark knows."""
        return set()

    def where(self, location: Location, scan: Scan) -> str:
        """Returns the text that names the rows of a scan in a message about its columns."""
        return str(location)

    def parser_fault(self, spark: SparkSession, location: Location, path: str) -> Problem | None:
        """Returns the problem of a file that Spark's parser could not read; None if it is not a file of the
        location."""
        return None

    def column_names(self, location: Location) -> frozenset[str] | None:
        """Returns the columns that the rows of a location can have, with those in folder names; None if only Spark can
        find that out."""
        return None

    def parquet_files(self, location: Location) -> Sequence[str]:
        """Returns the Parquet files on this machine that have the rows of a location, and no others; none if the rows
        are elsewhere. Something can then be found out about the rows without Spark."""
        return ()


FORMATS: dict[str, Format] = {}
"""All formats by the `type` of their datasources."""
AnyFormat = TypeVar("AnyFormat", bound=Format)


def register(format: AnyFormat) -> AnyFormat:
    """Adds a format to the registry and returns it."""
    if format.type in FORMATS:
        raise ValueError(f"the format {format.type} is already registered")
    FORMATS[format.type] = format
    return format


def format_of(location: Location) -> Format:
    """Returns the format of the rows at a location."""
    return FORMATS[location.source.type]
