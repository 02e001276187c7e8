"""The contract of a format, and the registry of all formats.

A format is what the `type` of a datasource names. Whoever reads or writes rows asks `format_of(location)` and never
compares names. A new format is one file here: a subclass of `Format` with an instance that is registered, and its
import in `formats/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
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
    """What a user sees of a format that lacks an ability."""

    problem: str
    message: str
    hint: str | None = None


class Ability(Enum):
    """What a format may be able to do; the value is the refusal of a format that is not."""

    SCAN = _Refusal("DataLoadError", "cannot be read yet", "use files, a Delta table or a spark_catalog table")
    WRITE = _Refusal(
        "WriteFailed",
        "cannot be written yet",
        "write to a datasource of type delta; Spark and databases can read it from there",
    )
    FINGERPRINT = _Refusal("InternalError", "has no files that could be compared later")
    VERSIONS = _Refusal("InternalError", "keeps no versions of its rows")


class Format:
    """A format of rows. It has no state: everything about the rows is in the location.

    The methods of an ability raise its refusal until a format overrides them and names the ability in `can`. Callers
    that can do without an ability look into `can` first. The other methods and attributes have an answer for every
    format.
    """

    type: ClassVar[str]
    can: ClassVar[frozenset[Ability]] = frozenset()

    signature: ClassVar[Signature | None] = None
    """How its data files are recognised, for formats of columnar files."""
    row_hint: ClassVar[str | None] = None
    """What a row must look like, for formats in which a row can be broken as a whole."""
    expands_names: ClassVar[bool] = False
    """True if column names go through a setting of Hadoop's, which replaces `${...}` in them."""

    def require(self, ability: Ability, location: Location) -> None:
        """Raises the refusal of an ability that the format lacks."""
        if ability not in self.can:
            raise self.refusal(ability, location)

    def refusal(self, ability: Ability, location: Location) -> RunError:
        """The error for a location whose format lacks an ability."""
        said = ability.value
        message = f"datasource '{location.source.id}' is of type {location.source.type}, which {said.message}"
        return fail(said.problem, message, hint=said.hint)

    def scan(self, spark: SparkSession, location: Location, fields: Sequence[Field], first: int) -> tuple[Scan, ...]:
        """The rows of a location, one Scan for each set of files that are read alike; none if there is nothing.

        `first` is the ordinal of the first file among all files of the table.
        """
        raise self.refusal(Ability.SCAN, location)

    def check_destination(self, location: Location, output: Output) -> None:
        """Raises WriteFailed if what is at the location forbids the output. Needs no rows and changes nothing."""
        raise self.refusal(Ability.WRITE, location)

    def write(self, spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Written:
        """Writes the rows of an output, so that a reader sees all of them or none."""
        raise self.refusal(Ability.WRITE, location)

    def written_by(self, location: Location, output: Output) -> Location:
        """The location of the rows of one output among those that others have added."""
        raise self.refusal(Ability.WRITE, location)

    def has_written(self, location: Location, output: Output) -> bool | None:
        """True if an output of a run is visible at its destination; None if the destination cannot be asked."""
        raise self.refusal(Ability.WRITE, location)

    def fingerprint(self, spark: SparkSession, location: Location) -> list[Json]:
        """Name, size and time of every file of a location."""
        raise self.refusal(Ability.FINGERPRINT, location)

    def local_size(self, location: Location) -> int | None:
        """The bytes of all files of a location; None if they are not on this machine."""
        raise self.refusal(Ability.FINGERPRINT, location)

    def current_version(self, location: Location) -> int:
        """The newest version at a location, ABSENT if there is nothing."""
        raise self.refusal(Ability.VERSIONS, location)

    def areas_read(self, location: Location) -> Iterable[Area]:
        """The areas of a file system that reading a location reaches, as far as they are known without Spark."""
        return ()

    def table_folders(self, spark: SparkSession, location: Location) -> set[str]:
        """The folders that reading a location reaches and that only Spark knows."""
        return set()

    def where(self, location: Location, scan: Scan) -> str:
        """How a message about the columns of a scan names its rows."""
        return str(location)

    def parser_fault(self, spark: SparkSession, location: Location, path: str) -> Problem | None:
        """The problem of a file that Spark's parser gave up; None if it is not a file of the location."""
        return None

    def never_blank(self, path: str, column: str) -> bool:
        """True if the statistics of a data file show that every value of a text column begins with a visible
        character. A file that cannot be read may raise an error."""
        return False


FORMATS: dict[str, Format] = {}
"""All formats by the `type` of their datasources."""
AnyFormat = TypeVar("AnyFormat", bound=Format)


def register(format: AnyFormat) -> AnyFormat:
    """Adds a format to the registry and returns it."""
    if format.type in FORMATS:
        raise ValueError(f"the format {format.type} is registered already")
    FORMATS[format.type] = format
    return format


def format_of(location: Location) -> Format:
    """The format of the rows at a location."""
    return FORMATS[location.source.type]
