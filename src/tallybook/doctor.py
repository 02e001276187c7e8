"""Examines an installation and a workspace: `tallybook doctor`. Every part is examined, however broken the others are.

A check yields findings. One that raises an error is a finding too.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tallybook.documents.doctor import Examination, FindingDocument, FindingStatus
from tallybook.errors import SessionError, TallybookError, UsageError
from tallybook.exit_codes import WRONG, ExitCode, common_exit
from tallybook.model.settings import SparkSettings
from tallybook.secrets import hide_secrets
from tallybook.workspace import Workspace

_PACKAGES = ("pyspark", "deltalake", "pyarrow", "pydantic", "sqlalchemy")
_EXTRAS = {
    "postgresql": "psycopg",
    "databases": "adbc-driver-manager",
    "opentelemetry": "opentelemetry-sdk",
}
"""The extras of the package, each with a package that shows that it is installed."""
_MIB = 2**20
_TIGHT, _FULL = 1024 * _MIB, 100 * _MIB


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    check: str
    status: FindingStatus
    message: str
    hint: str | None = None
    duration_ms: int = 0
    exit: ExitCode = WRONG
    """The exit code of a command that this failure ends."""


Check = Callable[[], Iterator[Finding]]


@dataclass(frozen=True)
class _Subject:
    """What is examined: the workspace if there is one, and the settings of Spark."""

    workspace: Workspace | None
    error: UsageError | None
    """Why there is no workspace."""
    is_expected: bool
    """True if the user named a workspace or is inside one."""

    @property
    def spark(self) -> SparkSettings:
        settings = self.workspace.definitions.settings if self.workspace is not None else None
        return settings.spark if settings is not None else SparkSettings()

    @property
    def remote(self) -> str | None:
        return self.spark.remote or os.environ.get("SPARK_REMOTE")


def examine(folder: Path | None = None, *, spark: bool = False) -> Iterator[Finding]:
    """Yields the findings of all checks, as soon as each is made. With `spark`, a session is started for a query."""
    subject = _subject(folder)
    checks: dict[str, Check] = {
        "python": _python,
        "java": lambda: _java(subject),
        "class archive": lambda: _class_archive(subject),
        "workspace": lambda: _workspace(subject),
        "settings": _settings,
        "store": lambda: _store(subject),
        "folders": lambda: _folders(subject),
        "disk": lambda: _disk(subject),
        "datasource": lambda: _datasources(subject, spark=spark),
        "warm session": lambda: _warm_session(subject),
        "spark": lambda: _spark(subject, start=spark),
    }
    for name, check in checks.items():
        yield from _made(name, check)


def exit_of_findings(findings: list[Finding]) -> ExitCode:
    """Returns the exit code of a command with these findings."""
    return common_exit(finding.exit for finding in findings if finding.status == "failed")


def examination(findings: list[Finding]) -> Examination:
    """Returns the document of all findings."""
    return Examination(
        findings=tuple(
            FindingDocument(
                check=finding.check,
                status=finding.status,
                message=finding.message,
                hint=finding.hint,
                duration_ms=finding.duration_ms,
            )
            for finding in findings
        ),
        warnings=sum(finding.status == "warning" for finding in findings),
        failed=sum(finding.status == "failed" for finding in findings),
    )


def _subject(folder: Path | None) -> _Subject:
    is_expected = folder is not None
    try:
        workspace = Workspace.open(folder, warm=True)
        is_expected = True
        _ = workspace.definitions  # an unknown environment is one failure, not one of every check
        return _Subject(workspace, None, is_expected)
    except UsageError as error:
        return _Subject(None, error, is_expected)


def _made(name: str, check: Check) -> Iterator[Finding]:
    begun = time.monotonic()
    try:
        for finding in check():
            yield replace(finding, duration_ms=finding.duration_ms or round((time.monotonic() - begun) * 1000))
    except TallybookError as error:
        yield Finding(name, "failed", error.message, error.hint, exit=error.exit)
    except Exception as error:
        words = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
        yield Finding(name, "failed", hide_secrets(words))


def _python() -> Iterator[Finding]:
    yield Finding("python", "ok", f"Python {platform.python_version()} in {sys.prefix}")
    versions = ", ".join(f"{package} {version(package)}" for package in ("tallybook", *_PACKAGES))
    yield Finding("packages", "ok", versions)
    extras = [extra for extra, package in _EXTRAS.items() if _is_installed(package)]
    missing = [extra for extra in _EXTRAS if extra not in extras]
    absent = f"; not installed: {', '.join(missing)}" if missing else ""
    yield Finding("extras", "ok", f"installed: {', '.join(extras) or 'none'}{absent}")


def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _java(subject: _Subject) -> Iterator[Finding]:
    from tallybook.engine.java import choose_java

    if subject.remote:
        yield Finding("java", "skipped", "Spark runs elsewhere, so no Java is needed here")
        return
    java = choose_java()
    yield Finding("java", "ok", f"Java {java.version} in {java.home}")


def _class_archive(subject: _Subject) -> Iterator[Finding]:
    from tallybook.engine.archive import find_archive

    setting = subject.spark.class_archive
    if subject.remote or setting == "off":
        yield Finding("class archive", "skipped", "Spark is started without one")
        return
    try:
        archive = find_archive()
    except SessionError:
        yield Finding("class archive", "skipped", "there is no Java")
        return
    if archive is None:
        hint = "Spark starts without it, more slowly; see docs/reference/spark-session.md"
        yield Finding("class archive", "warning", "no archive can be kept for this Spark", hint)
    elif archive.is_complete():
        yield Finding("class archive", "ok", f"{archive.folder}")
    else:
        yield Finding("class archive", "ok", "not created yet; the next start of Spark creates it in the background")


def _workspace(subject: _Subject) -> Iterator[Finding]:
    workspace, error = subject.workspace, subject.error
    if workspace is None:
        assert error is not None
        status: FindingStatus = "failed" if subject.is_expected else "skipped"
        yield Finding("workspace", status, error.message, error.hint, exit=error.exit)
        return
    problems = workspace.validate()
    if problems:
        first = problems[0]
        where = f"{first.place}: " if first.place else ""
        message = f"{workspace.root} has {_counted(len(problems), 'problem')}; the first is {where}{first.type}"
        yield Finding("workspace", "failed", f"{message}: {first.message}", "run `tallybook validate`")
        return
    contents = ", ".join(_counted(number, kind) for kind, number in workspace.counts().items() if number)
    where = f", environment {workspace.environment}" if workspace.environment is not None else ""
    yield Finding("workspace", "ok", f"'{workspace.name}' in {workspace.root}{where}: {contents or 'no definitions'}")


def _settings() -> Iterator[Finding]:
    names = sorted(name for name in os.environ if name.startswith(("TALLYBOOK_", "SPARK_", "OTEL_")))
    yield Finding("settings", "ok", f"environment variables: {', '.join(names) or 'none'}")


def _store(subject: _Subject) -> Iterator[Finding]:
    if subject.workspace is None:
        yield _needs_workspace("store")
        return
    with subject.workspace.existing_store() as store:
        if store is None:
            yield Finding("store", "ok", "there is none yet; the first command that records something creates it")
            return
        newest = store.runs(limit=1)
        last = f", last run {newest[0].run_timestamp:%Y-%m-%d %H:%M} {newest[0].status}" if newest else ", no runs yet"
        yield Finding("store", "ok", f"{store}, tables at {store.revision()}{last}")
    listed = subject.workspace.runs(statuses=("queued", "running"))
    if listed.dead:
        message = f"{_counted(len(listed.dead), 'run')} did not end although the process is gone"
        yield Finding("store", "warning", message, "the next run records it as failed; see `tallybook runs`")


def _folders(subject: _Subject) -> Iterator[Finding]:
    from tallybook.private import cache_folder

    if subject.workspace is not None:
        root = subject.workspace.root
        for folder in dict.fromkeys([root / ".tallybook", subject.workspace.sandbox]):
            yield _writable("folder", folder)
    yield _writable("folder", Path(tempfile.gettempdir()))
    if cache_folder() is None:
        hint = "set XDG_CACHE_HOME to a folder that only you can write to"
        message = "the cache folder of this user cannot be used: no class archive and no warm session"
        yield Finding("folder", "warning", message, hint)


def _writable(check: str, folder: Path) -> Finding:
    """Tries to write a file into the folder, or finds the nearest folder in which it could be made."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        if existing == folder:
            with tempfile.TemporaryFile(dir=folder):
                pass
        elif not os.access(existing, os.W_OK | os.X_OK) or not existing.is_dir():
            raise PermissionError(13, "it cannot be created")
    except OSError as error:
        hint = f"give this user the right to write to {existing}"
        return Finding(check, "failed", f"{folder} cannot be written: {error.strerror}", hint)
    return Finding(check, "ok", f"{folder} {'can be written' if existing == folder else 'can be created'}")


def _disk(subject: _Subject) -> Iterator[Finding]:
    spark_local = subject.spark.conf.get("spark.local.dir") or os.environ.get("SPARK_LOCAL_DIRS")
    temporary = [Path(folder) for folder in spark_local.split(",")] if spark_local else [Path(tempfile.gettempdir())]
    folders = [] if subject.workspace is None else [("the workspace", subject.workspace.root)]
    folders += [("Spark's temporary files", folder) for folder in temporary if folder.is_dir()]
    for what, folder in folders:
        usage = shutil.disk_usage(folder)
        message = f"{usage.free / _MIB / 1024:.1f} of {usage.total / _MIB / 1024:.1f} GiB free for {what} ({folder})"
        status: FindingStatus = "failed" if usage.free < _FULL else "warning" if usage.free < _TIGHT else "ok"
        hint = None if status == "ok" else "free some space, or use another disk"
        yield Finding("disk", status, message, hint)


def _datasources(subject: _Subject, *, spark: bool) -> Iterator[Finding]:
    if subject.workspace is None:
        yield _needs_workspace("datasources")
        return
    for check in subject.workspace.check_datasources(spark=spark):
        message = check.message or _counted(len(check.names), "file or table", "files or tables")
        problem = check.problem
        yield Finding(
            "datasource",
            check.status,
            f"{check.source.id} ({check.source.type}): {message}",
            problem.hint if problem else None,
            round(check.seconds * 1000),
            problem.exit if problem else WRONG,
        )


def _warm_session(subject: _Subject) -> Iterator[Finding]:
    if subject.workspace is None:
        yield _needs_workspace("warm session")
        return
    try:
        running = subject.workspace.sessions()
    except SessionError:
        yield Finding("warm session", "skipped", "there is no Java")
        return
    fitting = running.fitting
    if fitting is not None:
        yield Finding("warm session", "ok", f"pid {fitting.pid}, Spark {fitting.spark}, Java {fitting.java}")
    else:
        others = f"; {_counted(len(running.sessions), 'session')} with other settings" if running.sessions else ""
        yield Finding("warm session", "ok", f"none; `tallybook session start` starts one{others}")


def _spark(subject: _Subject, *, start: bool) -> Iterator[Finding]:
    if not start:
        yield Finding("spark", "skipped", "not started", "`tallybook doctor --spark` starts Spark and runs a query")
        return
    from tallybook.engine.session import get_session

    session = get_session() if subject.workspace is None else subject.workspace.session
    total = session.range(1000).selectExpr("sum(id) AS total").collect()[0]["total"]
    if total != sum(range(1000)):
        raise SessionError(f"a query of Spark gave {total} instead of {sum(range(1000))}")
    yield Finding("spark", "ok", f"Spark {session.version} answered a query")


def _needs_workspace(check: str) -> Finding:
    return Finding(check, "skipped", "there is no workspace to look at")


def _counted(number: int, what: str, several: str | None = None) -> str:
    return f"{number:,} {what if number == 1 else several or what + 's'}"
