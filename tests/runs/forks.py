"""Many real processes over one Spark: a process starts a session once and forks a child for each run asked of it.

Each child talks to the JVM over a connection of its own, has a store of its own open, is its run's owner and may be
killed; the session outlives it. delta-rs refuses to work in forks of a process that has used it, which is why the
session of the tests themselves cannot be the one.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import IO, Any

SECONDS = 120


@dataclass(frozen=True)
class Job:
    """A run to make in a process of its own, and the moment to be killed or stopped at."""

    root: str
    period: str
    project: str = "close"
    dies: str | None = None
    stops: str | None = None
    dies_after: float | None = None
    """Seconds after the workspace is opened, whatever the process does then."""
    again: bool = False


class Forks:
    """The process that forks."""

    def __init__(self) -> None:
        root = Path(__file__).parents[2]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.runs.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
        )

    def run(self, *jobs: Job) -> list[str]:
        """What came of each: `completed`, the type of the problem, or `killed`. All begin at once; those that got a
        run go on when every other has been refused one."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([asdict(job) for job in jobs]) + "\n")
        self.process.stdin.flush()
        answer: list[str] = json.loads(self.process.stdout.readline())
        return answer

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


MOMENTS = {
    "loading": ("before", "tallybook.engine.tables", "read_all"),
    "computing": ("before", "tallybook.operations.output:OutputStep", "rows_to_publish"),
    "writing": ("after", "tallybook.storage.formats.delta_changes", "stage"),
    "committing": ("before", "tallybook.storage.formats.delta_commit", "_commit"),
    "committed": ("after", "tallybook.storage.formats.delta_commit", "_commit"),
    "registering": ("before", "tallybook.store.store:Store", "register_dataset"),
    "registered": ("after", "tallybook.store.store:Store", "register_dataset"),
    "publishing": ("before", "tallybook.storage.file_writer", "publish"),
    "published": ("after", "tallybook.storage.file_writer", "publish"),
    "completing": ("before", "tallybook.store.store:Store", "complete_run"),
}
"""When a child dies or stops: before or after something is called."""


DATABASE_MOMENTS = {
    "copied": ("after", "tallybook.storage.formats.database_write_postgresql", "_copy"),
    "inserted": ("after", "tallybook.storage.formats.database_write_postgresql:PostgreSQLPublishing", "insert"),
    "committed": ("after", "tallybook.storage.formats.database:Database", "write"),
}
"""The same for a run that writes to a database."""


def _signal_at(moment: str, number: signal.Signals) -> None:
    """Sends this process a signal at a moment; it goes on from there if it survives."""
    when, owner, name = (MOMENTS | {f"database {key}": at for key, at in DATABASE_MOMENTS.items()})[moment]
    found = resolve_name(owner)
    real = getattr(found, name)

    def signalled(*args: Any, **options: Any) -> Any:
        if when == "before":
            os.kill(os.getpid(), number)
        answer = real(*args, **options)
        if when == "after":
            os.kill(os.getpid(), number)
        return answer

    setattr(found, name, signalled)


def _serve() -> None:
    from tests.conftest import TINY

    from tallybook.engine.session import get_session
    from tallybook.model.settings import SparkSettings

    spark = get_session(SparkSettings(master="local[2]", conf=TINY))
    for line in sys.stdin:
        jobs = [Job(**each) for each in json.loads(line)]
        print(json.dumps(_all(spark, jobs)), flush=True)


def _all(spark: Any, jobs: Sequence[Job]) -> list[str]:
    children = [_Child(spark, job) for job in jobs]
    waiting = list(children)
    while any(child.word is None for child in waiting):
        heard, _, _ = select.select([child.hears for child in waiting if child.word is None], [], [], SECONDS)
        assert heard, "a child is silent"
        for child in waiting:
            if child.hears in heard:
                child.word = child.hears.readline().strip() or "killed"
    for child in children:
        if child.word == "running":
            print("go", file=child.says, flush=True)
    return [child.end() for child in children]


class _Child:
    """One fork, with a pipe each way."""

    def __init__(self, spark: Any, job: Job) -> None:
        self.word: str | None = None
        heard, said, told, asked = *os.pipe(), *os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _run(spark, job, os.fdopen(told), os.fdopen(said, "w"))
            finally:
                os._exit(0)
        os.close(said)
        os.close(told)
        self.hears: IO[str] = os.fdopen(heard)
        self.says: IO[str] = os.fdopen(asked, "w")

    def end(self) -> str:
        last = self.hears.readline().strip() if self.word == "running" else self.word
        _, status = os.waitpid(self.pid, 0)
        return "killed" if os.WIFSIGNALED(status) else last or "nothing"


def _run(spark: Any, job: Job, hears: IO[str], says: IO[str]) -> None:
    from tallybook.engine.events import Event, RunStarted
    from tallybook.errors import ProblemError
    from tallybook.workspace import Workspace

    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    kept = own_connection(spark)

    def announce(event: Event) -> None:
        if isinstance(event, RunStarted):
            print("running", file=says, flush=True)
            hears.readline()

    if job.dies is not None:
        _signal_at(job.dies, signal.SIGKILL)
    if job.stops is not None:
        _signal_at(job.stops, signal.SIGSTOP)
    if job.dies_after is not None:
        threading.Timer(job.dies_after, os.kill, (os.getpid(), signal.SIGKILL)).start()
    outcome: str
    try:
        workspace = Workspace.open(job.root)
        outcome = workspace.run(job.project, job.period, again=job.again, observers=[announce]).run.status
    except ProblemError as error:
        outcome = error.problem.type if error.problem.type == "ConcurrentRun" else str(error)
    except Exception as error:
        outcome = repr(error)
    print(outcome.replace("\n", " "), file=says, flush=True)
    del kept


def own_connection(spark: Any) -> object:
    """A new connection for this process; the parent's are kept untouched, for closing one would close it for both."""
    client = spark.sparkContext._gateway._gateway_client
    kept = client.thread_connection, list(client.deque)
    client.thread_connection = threading.local()
    client.deque.clear()
    return kept


if __name__ == "__main__":
    _serve()
