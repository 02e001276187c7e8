"""Class-data archives: the classes that Spark loads, stored as the JVM lays them out in memory.

A JVM that maps such a file starts Spark with about half the work. An archive fits one Java and one set of jars. It is
made once, by a process in the background (`archive_maker.py`), in a cache folder that only its owner can change: what
is in it runs as code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from tallybook.engine.background import start_module
from tallybook.engine.java import Java, choose_java, make_home
from tallybook.engine.locks import locked
from tallybook.engine.properties import JAVA_OPTIONS, configuration_folder, spark_home
from tallybook.model.settings import ClassArchive
from tallybook.private import cache_folder, make_private_file

_QUIET = "-Xshare:auto -Xlog:cds*=off"
"""A JVM that cannot use the archive starts without it, and does not complain."""
_USERS_OWN = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit", "DumpLoadedClassList")
_NAMED_BY_SPARK = "slf4j-api-"
_OTHER_SETTINGS = (
    "MASTER",
    "PYSPARK_",
    "SPARK_CONNECT_",
    "SPARK_DRIVER_",
    "SPARK_LOCAL_",
    "SPARK_REMOTE",
    "SPARK_SUBMIT_",
)
"""Environment variables that concern the session of this process."""
_NEEDED_BYTES = 2**30
_SECONDS_UNTIL_NEXT_TRY = 24 * 3600
_MAKERS: list[subprocess.Popen[bytes]] = []
"""Kept until this process ends: the makers wait for the end of their standard input."""


@dataclass(frozen=True)
class Archive:
    """The archive of one Java and one Spark, finished or not.

    A list of files and their sizes is written last, and makes the archive complete. Sizes are checked before each use:
    a JVM that maps a file cut short crashes.
    """

    folder: Path
    java: Java

    @property
    def classes(self) -> Path:
        return self.folder / "spark.jsa"

    @property
    def base(self) -> Path | None:
        """The archive of Java's own classes, which ours builds on; None for a Java that brings one."""
        brought = self.java.home / "lib" / "server" / "classes.jsa"
        return None if brought.exists() else self.folder / "java.jsa"

    @property
    def configuration(self) -> Path:
        """An empty folder that takes the place of an empty or missing one of Spark: Java 21 rejects an archive if the
        class path names a folder that does not exist."""
        return self.folder / "conf"

    @property
    def home(self) -> Path:
        """A home whose `java` names each jar of Spark once on the class path: Java 21 rejects an archive if one is
        named twice, as Spark does with that of slf4j."""
        return self.folder / "home"

    @property
    def variables(self) -> dict[str, str | None]:
        """The environment variables of a Spark that uses the archive, or that makes it."""
        return {"JAVA_HOME": str(self.home), "SPARK_CONF_DIR": str(self.configuration)}

    @property
    def log(self) -> Path:
        return self.folder / "making.log"

    @property
    def failure(self) -> Path:
        return self.folder / "failed"

    @property
    def listing(self) -> Path:
        return self.folder / "files.json"

    @property
    def options(self) -> str:
        """The Java options that use the archive."""
        files = [str(file) for file in (self.base, self.classes) if file is not None]
        return f"{_QUIET} {shlex.quote('-XX:SharedArchiveFile=' + os.pathsep.join(files))}"

    def is_complete(self) -> bool:
        """True if every file has the size that it was made with."""
        try:
            sizes = json.loads(self.listing.read_text(encoding="utf-8"))
            return bool(sizes) and all((self.folder / name).stat().st_size == size for name, size in sizes.items())
        except (OSError, ValueError, AttributeError):
            return False

    def is_wanted(self) -> bool:
        """True if making the archive is likely to succeed and to be of use: not on a machine of a CI service, which is
        gone after the job."""
        with suppress(OSError):
            if time.time() - self.failure.stat().st_mtime < _SECONDS_UNTIL_NEXT_TRY:
                return False
        return not os.environ.get("CI") and shutil.disk_usage(self.folder).free > _NEEDED_BYTES

    def locked(self) -> AbstractContextManager[bool]:
        """Yields True in the one process that may make the archive."""
        return locked(self.folder / "lock")


def ready_archive(conf: Mapping[str, str], setting: ClassArchive) -> Archive | None:
    """Returns the archive of this installation if it is complete. If it is not, `auto` makes it in another process.

    Returns None if the user's own Java options concern archives.
    """
    if setting == "off" or any(word in conf.get(name, "") for name in JAVA_OPTIONS for word in _USERS_OWN):
        return None
    try:
        archive = find_archive()
        if archive is None:
            return None
        if archive.is_complete():
            os.utime(archive.listing)
            return archive
        if setting == "auto" and archive.is_wanted():
            _make_in_background(archive)
    except OSError:
        return None
    return None


def find_archive() -> Archive | None:
    """Returns the archive for the Java and the Spark that would start now; None if there can be none.

    A JVM makes no archive if there are files in the configuration folder of Spark, which comes first on its class path.
    """
    configuration = configuration_folder()
    if configuration.is_dir() and any(configuration.iterdir()):
        return None
    home, java = spark_home(), choose_java()
    jars = sorted((home / "jars").glob("*.jar"))
    parts = [_stamp(file) for file in (java.home / "lib" / "modules", java.home / "lib" / "server" / "libjvm.so")]
    installation = [str(java.home), java.version, parts, [(str(jar), _stamp(jar)) for jar in jars]]
    key = hashlib.sha256(json.dumps(installation).encode()).hexdigest()[:16]
    folder = cache_folder(f"java-{java.major}-{key}")
    if folder is None or os.pathsep in str(folder):
        return None
    archive = Archive(folder, java)
    if not archive.home.exists():
        archive.configuration.mkdir(mode=0o700, exist_ok=True)
        archive.home.mkdir(mode=0o700, exist_ok=True)
        make_home(java, archive.home, [jar for jar in jars if not jar.name.startswith(_NAMED_BY_SPARK)])
    return archive


def _stamp(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_size, status.st_mtime_ns


def _make_in_background(archive: Archive) -> None:
    with archive.locked() as free:
        if not free:
            return
    archive.log.unlink(missing_ok=True)
    with make_private_file(archive.log).open("ab") as log:
        _MAKERS.append(start_module("tallybook.engine.archive_maker", archive.folder, log, without=_OTHER_SETTINGS))
