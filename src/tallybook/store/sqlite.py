"""The file of an SQLite store: makes it in one step, refuses a damaged one, and reads it where it is read-only."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import event

from tallybook.errors import StoreError
from tallybook.private import make_private_file, make_private_folder

BUSY_TIMEOUT_MS = 30_000
_ATTEMPT_MS = 100
"""How long SQLite itself waits for a writer. Python handles no signal meanwhile, so a long wait is many short ones."""
RESTORE = (
    "put back a copy of the file from a backup; or delete it to begin anew, without the versions, runs and closed "
    "periods it held"
)
_SMALLEST = 512
"""Bytes of the smallest page, hence of the smallest database."""
_SIDE_FILES = ("-wal", "-shm", "-journal")


def writing_engine(file: Path, **options: Any) -> sa.Engine:
    """Returns an engine for an existing file; SQLite must not create one. Each transaction is refused if the file has
    been removed or replaced: SQLite would go on writing to a file that nobody can open any more."""
    engine = _engine(lambda: _connect(file, "mode=rw"), **options)

    def note(_connection: Any, record: Any) -> None:
        record.info["file"] = _identity(file)

    def compare(connection: sa.Connection) -> None:
        if _identity(file) != connection.info["file"]:
            what = "was replaced by another file" if file.exists() else "is gone"
            raise StoreError(
                f"the metadata store {file} {what} while it was in use",
                "put the file back as it was, together with its -wal file, and try again",
            )

    event.listen(engine, "connect", note)
    event.listen(engine, "begin", compare, insert=True)
    return engine


def _identity(file: Path) -> tuple[int, int] | None:
    """Returns device and inode, which differ if a file was replaced; None if there is no file."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def reading_engine(file: Path, **options: Any) -> sa.Engine:
    """Returns an engine that changes neither the file nor its folder: both may be read-only."""

    def connect() -> sqlite3.Connection:
        connection = _connect_to_read(file)
        connection.execute("PRAGMA query_only = ON")
        return connection

    return _engine(connect, **options)


def _engine(connect: Callable[[], sqlite3.Connection], **options: Any) -> sa.Engine:
    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.QueuePool, **options)
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _connect(file: Path, query: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?{query}", uri=True, check_same_thread=False)


def _connect_to_read(file: Path) -> sqlite3.Connection:
    """Opens the file to read it.

    In write-ahead mode a reader needs a file of shared memory next to the store. If that cannot be made, the folder is
    read-only and nobody writes: the file is read as it is or, if its log has rows, as a copy.
    """
    with suppress(sqlite3.OperationalError):
        connection = _connect(file, "mode=ro")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        return connection
    log = _sibling(file, "-wal")
    if not log.exists() or not log.stat().st_size:
        return _connect(file, "mode=ro&immutable=1")
    with tempfile.TemporaryDirectory(prefix="tallybook-store-") as folder:
        copied = Path(shutil.copyfile(file, Path(folder) / file.name))
        shutil.copyfile(log, _sibling(copied, "-wal"))
        connection = _connect(copied, "mode=rw")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        return connection  # the open files outlive their names


def _configure(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


def _begin(connection: sa.Connection) -> None:
    """Begins a transaction. A writer takes its lock at once, so it never has to give up half-way; Python's driver would
    begin late and as a reader."""
    options = connection.get_execution_options()
    writes = options.get("tallybook_writes", False)
    connection.exec_driver_sql(f"PRAGMA foreign_keys = {'OFF' if options.get('tallybook_rebuilds') else 'ON'}")
    if writes:
        _wait_to_write(connection.connection.driver_connection)
    else:
        connection.exec_driver_sql("BEGIN")


def _wait_to_write(connection: Any) -> None:
    """Takes the lock of the writer, as soon as nobody else has it. A signal ends the wait."""
    last = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    connection.execute(f"PRAGMA busy_timeout = {min(_ATTEMPT_MS, BUSY_TIMEOUT_MS)}")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > last:
                    raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


def refuse_damaged(file: Path) -> None:
    """Raises StoreError if the file has lost its content, or is gone while its log still exists. A new store in its
    place would open closed periods without a word."""
    log = _sibling(file, "-wal")
    left = log.exists() and log.stat().st_size > 0
    size = file.stat().st_size if file.is_file() else _SMALLEST
    if size < _SMALLEST:
        what = f"is damaged: only {size} bytes of it are left" if size else "is empty: its content is lost"
        raise StoreError(f"the metadata store {file} {what}", RESTORE)
    if left and not file.exists():
        raise StoreError(
            f"the metadata store {file} is gone, but its log {log.name} still exists",
            f"put back a copy of {file.name} from a backup; or delete {log.name} to begin anew, without the versions, "
            "runs and closed periods the store held",
        )


@contextmanager
def new_file(file: Path) -> Iterator[Path]:
    """Yields a temporary file to make a store in, and gives it its name when the block ends. If another process was
    first, its file is kept. No process ever sees a half-made store."""
    try:
        make_private_folder(file.parent)
        draft = make_private_file(file.with_name(f".{file.name}.{uuid4().hex}"))
    except OSError as error:
        raise StoreError(f"the metadata store {file} cannot be created: {error.strerror}") from error
    try:
        yield draft
        with suppress(FileExistsError):
            _put(draft, file)
    finally:
        for path in (draft, *(_sibling(draft, side) for side in _SIDE_FILES)):
            path.unlink(missing_ok=True)


def _put(draft: Path, file: Path) -> None:
    """Gives the draft its name unless the name is taken. On a file system without links it reserves the name first."""
    try:
        os.link(draft, file)
    except FileExistsError:
        raise
    except OSError:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        draft.replace(file)


def _sibling(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)
