"""What the commit of a Delta output changes: the files that it adds, and those that it removes.

Spark writes the files into a folder named after the run and the operation, each attempt into its own subfolder, because
Spark may still be writing after its driver has died.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql import DataFrame, SparkSession

from tallybook.errors import TallybookError
from tallybook.model.columns import PERIOD
from tallybook.model.location import Location
from tallybook.storage.credentials import reader
from tallybook.storage.failure import SPARK_ERRORS
from tallybook.storage.files import escape_pattern
from tallybook.storage.formats.delta_log import ADDED_ROWS
from tallybook.storage.formats.delta_periods import (
    FilesOfPeriods,
    PeriodRange,
    files_of_periods,
    other_rows,
    range_in_footer,
    range_in_partition,
)
from tallybook.storage.formats.delta_table import table_root
from tallybook.storage.formats.parquet import PARQUET
from tallybook.storage.output import UNGUARDED, Output
from tallybook.storage.scan import quoted
from tallybook.storage.stage import StagedFile, clear, stage

RUN, OPERATION = "tallybook.run", "tallybook.operation"
OUTPUT_ROWS, PERIODS = "tallybook.output_rows", "tallybook.periods"


@dataclass(frozen=True)
class AddedFile:
    """A file that Spark has written for an output."""

    path: str
    """Its path in the folder of the table, not encoded: delta-rs encodes it."""
    size: int
    rows: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    """The values of the partition columns in its rows."""
    periods: PeriodRange = field(default_factory=PeriodRange)
    """What its footer or its partition says of the periods of its rows."""

    def action(self, now: int) -> AddAction:
        """Returns the entry of the log."""
        of_periods = {} if PERIOD in self.partition else self.periods.statistics(PERIOD)
        statistics = {"numRecords": self.rows, **of_periods}
        return AddAction(self.path, self.size, self.partition, now, True, json.dumps(statistics))


@dataclass
class Changes:
    """The files that the commit of an output adds and removes."""

    spark: SparkSession
    location: Location
    output: Output
    added: Sequence[AddedFile] = ()
    """The files of the output."""
    periods: tuple[str, ...] = ()
    """The periods that the output replaces, with `mode: replace_period`."""
    removed: FilesOfPeriods = field(default_factory=FilesOfPeriods)
    """The files of the table that have rows of these periods."""
    rewritten: Mapping[frozenset[str], Sequence[AddedFile]] = field(default_factory=dict)
    """New files with the other rows of files that are removed, by the paths of the latter."""

    @classmethod
    def staged(cls, spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> Changes:
        """Stages the rows of an output. Raises WriteFailed if a row may not be written because of its period."""
        changes = cls(spark, location, output)
        try:
            changes.added = _stage(spark, frame, location, output)
            if output.periods is not None:
                changes.periods = output.periods.given(changes._written_periods(output.periods.column))
        except (*SPARK_ERRORS, TallybookError):
            if location.local_path is not None:  # elsewhere it takes a job, which the next attempt can pay for
                changes.clear()
            raise
        return changes

    def look(self, table: DeltaTable | None) -> None:
        """Finds the files to remove in a version of the table. Other rows in these files are written anew, once for
        all versions that have the same files."""
        self.removed = FilesOfPeriods()
        if self.output.periods is None or table is None:
            return
        column = self.output.periods.column
        self.removed = files_of_periods(self.spark, self.location, table, column, self.periods)
        if self.removed.mixed and self._mixed not in self.rewritten:
            others = other_rows(self.spark, self.location, table, self.removed.mixed, column, self.periods)
            self.rewritten = {self._mixed: _stage(self.spark, others, self.location, self.output)}

    def clear(self) -> None:
        """Removes the staged files. Call it only if no commit can name them."""
        clear(self.spark, self.location, f"{table_root(self.location)}/{self.output.name}")

    @property
    def add_actions(self) -> list[AddAction]:
        """The entries of the log for the files that are added."""
        now = _milliseconds()
        return [file.action(now) for file in self._files]

    @property
    def remove_actions(self) -> list[RemoveAction]:
        """The entries of the log for the files that are removed."""
        now = _milliseconds()
        files = (*self.removed.whole, *self.removed.mixed)
        return [RemoveAction(unquote(file.path), True, now, file.size, dict(file.partition)) for file in files]

    @property
    def properties(self) -> CommitProperties:
        """What the commit says about its run. delta-rs must not retry by itself: the files to remove are those of the
        version that was opened."""
        run_id, seq, guard = self.output.run_id, self.output.seq, self.output.guard
        facts = {
            RUN: run_id,
            OPERATION: seq,
            ADDED_ROWS: sum(file.rows for file in self._files),
            OUTPUT_ROWS: sum(file.rows for file in self.added),
            PERIODS: list(self.periods),
        }
        fence = [] if guard is UNGUARDED else [Transaction(guard.output, guard.claim)]
        return CommitProperties(
            custom_metadata=facts, max_commit_retries=0, app_transactions=[Transaction(run_id, seq), *fence]
        )

    @property
    def _mixed(self) -> frozenset[str]:
        return frozenset(file.path for file in self.removed.mixed)

    @property
    def _files(self) -> list[AddedFile]:
        return [*self.added, *(self.rewritten[self._mixed] if self.removed.mixed else ())]

    def _written_periods(self, column: str) -> set[str | None]:
        """Returns the periods of the staged rows. Spark reads the column only if the footers do not tell them."""
        if all(file.periods.only is not None for file in self.added):
            return {file.periods.only or None for file in self.added}
        paths = [escape_pattern(f"{table_root(self.location)}/{file.path}") for file in self.added]
        rows = reader(self.spark, self.location).schema(f"`{column}` string").parquet(*paths)
        return {row[0] for row in rows.select(quoted(column)).distinct().collect()}


def _milliseconds() -> int:
    return int(time.time() * 1000)


def _stage(spark: SparkSession, frame: DataFrame, location: Location, output: Output) -> list[AddedFile]:
    """Writes rows into a new subfolder of the output's folder."""
    folder, root = f"{output.name}/{uuid4().hex}", table_root(location)
    staged = stage(PARQUET, spark, frame, location, f"{root}/{folder}", partition_by=output.partition_by)

    def periods(file: StagedFile) -> PeriodRange:
        if PERIOD in file.partition:
            return range_in_partition(file.partition[PERIOD])
        in_footer = location.local_path is not None and PERIOD in frame.columns
        return range_in_footer(Path(root, folder, file.name), PERIOD) if in_footer else PeriodRange()

    return [AddedFile(f"{folder}/{file.name}", file.size, file.rows, file.partition, periods(file)) for file in staged]
