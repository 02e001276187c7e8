"""Connects to datasources and lists what they contain, all at the same time and each with a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Literal

from tallybook.errors import Problem, ProblemError, TallybookError
from tallybook.exit_codes import UNAVAILABLE
from tallybook.model.datasource import DataSource
from tallybook.model.location import Location
from tallybook.resolve.targets import path_target, usable_source
from tallybook.secrets import hide_secrets
from tallybook.storage.formats import format_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CheckStatus = Literal["ok", "warning", "failed", "skipped"]


@dataclass(frozen=True)
class DatasourceCheck:
    """What a datasource answered."""

    source: DataSource
    status: CheckStatus
    message: str = ""
    names: tuple[str, ...] = ()
    """The files or tables in it."""
    seconds: float = 0
    problem: Problem | None = None


def check_datasources(
    sources: Iterable[DataSource],
    root: Path,
    session: Callable[[], SparkSession] | None = None,
    *,
    seconds: float,
) -> list[DatasourceCheck]:
    """Returns what each datasource answered within so many seconds. Without a session, those that only Spark can list
    are skipped."""
    probes = [_Probe(source, root, session) for source in sources]
    for probe in probes:
        probe.start()
    deadline = time.monotonic() + seconds
    for probe in probes:
        probe.join(max(0, deadline - time.monotonic()))
    return [probe.result or _silent(probe.source, seconds) for probe in probes]


class _Probe(Thread):
    """Asks one datasource. A thread that hangs does not keep the process alive."""

    def __init__(self, source: DataSource, root: Path, session: Callable[[], SparkSession] | None) -> None:
        super().__init__(daemon=True)
        self.source = source
        self.result: DatasourceCheck | None = None
        self._root, self._session = root, session

    def run(self) -> None:
        begun = time.monotonic()
        try:
            if self.source.status == "disabled":
                self.result = DatasourceCheck(self.source, "skipped", "it is disabled")
                return
            names = self._names()
        except ProblemError as error:
            status: CheckStatus = "warning" if error.problem.type == "DataNotFound" else "failed"
            took = time.monotonic() - begun
            self.result = DatasourceCheck(self.source, status, error.problem.message, (), took, error.problem)
        except Exception as error:
            words = error.message if isinstance(error, TallybookError) else f"{type(error).__name__}: {error}"
            problem = Problem("DataLoadError", hide_secrets(words.strip().partition("\n")[0]))
            took = time.monotonic() - begun
            self.result = DatasourceCheck(self.source, "failed", problem.message, (), took, problem)
        else:
            took = time.monotonic() - begun
            if names is None:
                how = "only Spark can list its tables: add --spark"
                how = how if self._session is None else "its tables cannot be listed; a run can read them by name"
                self.result = DatasourceCheck(self.source, "skipped", how)
            else:
                self.result = DatasourceCheck(self.source, "ok", "", tuple(names), took)

    def _names(self) -> Sequence[str] | None:
        source = usable_source(self.source.id, {self.source.id: self.source}, self._root)
        prefix = source.path_prefix
        location = Location(source, "" if prefix is None else path_target("", self._root, prefix))
        if self._session is None:
            return format_of(location).probe(location)
        return format_of(location).probe_with_spark(self._session, location)


def _silent(source: DataSource, seconds: float) -> DatasourceCheck:
    message = f"it did not answer within {seconds:g} second{'' if seconds == 1 else 's'}"
    problem = Problem("DataLoadError", message, "check the network, or wait longer with --timeout", cause=UNAVAILABLE)
    return DatasourceCheck(source, "failed", message, (), seconds, problem)
