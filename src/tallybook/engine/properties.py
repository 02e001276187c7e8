"""Collects the settings that Spark would read, and passes them to the JVM in a file.

PySpark would write every setting on the command line of the JVM, where all users of the machine can read it. The JVM
gets a properties file instead, which only its owner can read and which is removed when the JVM runs.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tallybook.secrets import hide_secrets

_PYSPARK = Path(pyspark.__file__).resolve().parent
JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")


@dataclass(frozen=True)
class Submission:
    """What Spark would take from its files and the environment: settings, and arguments of `spark-submit`."""

    conf: Mapping[str, str]
    arguments: tuple[str, ...]

    def arguments_with(self, conf: Mapping[str, str], folder: Path) -> str:
        """Returns the PYSPARK_SUBMIT_ARGS that start Spark with exactly these settings. Writes files into `folder`.

        Java options are part of the command line. Those with a secret in them are replaced by a file of arguments.
        """
        conf = dict(conf)
        for name in JAVA_OPTIONS:
            if name in conf and hide_secrets(conf[name]) != conf[name]:
                options = _write(folder / name, (_quoted(option) for option in shlex.split(conf[name])))
                conf[name] = shlex.quote(f"@{options}")
        file = _write(
            folder / "spark.properties", (f"{_escaped(key)}={_escaped(value)}" for key, value in conf.items())
        )
        return shlex.join(["--properties-file", str(file), *self.arguments])


def spark_home() -> Path:
    """Returns the folder of the Spark that starts: by default the one in the package pyspark."""
    return Path(os.environ.get("SPARK_HOME") or _PYSPARK)


def configuration_folder() -> Path:
    """Returns the folder of Spark's configuration files, which need not exist."""
    return Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf")


def read_submission() -> Submission:
    """Reads `spark-defaults.conf`, the environment, and PYSPARK_SUBMIT_ARGS, which overrides them."""
    conf = _read(configuration_folder() / "spark-defaults.conf")
    arguments: list[str] = []
    given: dict[str, str] = {}
    words = iter(shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")))
    for word in words:
        option, equals, value = word.partition("=")
        if option in ("--conf", "-c"):
            key, _, setting = (value if equals else next(words, "")).partition("=")
            given[key] = setting
        elif option == "--properties-file":
            conf = _read(Path(value if equals else next(words, "")))
        elif option == "--master":
            given["spark.master"] = value if equals else next(words, "")
            arguments += ["--master", given["spark.master"]]
        else:
            arguments.append(word)
    for variable, key in (("MASTER", "spark.master"), ("SPARK_DRIVER_MEMORY", "spark.driver.memory")):
        if variable in os.environ:
            conf.setdefault(key, os.environ[variable])
    return Submission(conf | given, tuple(arguments))


def _read(file: Path) -> dict[str, str]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {key: value for key, value in parse_properties(text) if key.startswith("spark.")}


def parse_properties(text: str) -> Iterator[tuple[str, str]]:
    """Yields the keys and values of a Java properties file."""
    joined = re.sub(r"(?<!\\)((?:\\\\)*)\\\r?\n[ \t\f]*", r"\1", text)
    for line in joined.splitlines():
        bare = line.lstrip(" \t\f")
        if not bare or bare[0] in "#!":
            continue
        pair = re.match(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", bare)
        if pair:
            yield _unescaped(pair[1]), _unescaped(pair[2]).strip()


_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


def _unescaped(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        return chr(int(escape[1], 16)) if escape[1] else _LETTERS.get(escape[2], escape[2])

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", character, text)


def _escaped(text: str) -> str:
    letters = {character: f"\\{letter}" for letter, character in _LETTERS.items()}
    return re.sub(r"[\\ =:#!\n\r\t\f]", lambda match: letters.get(match[0], f"\\{match[0]}"), text)


def _quoted(option: str) -> str:
    """Returns an option as a line of a Java argument file."""
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _write(file: Path, lines: Iterator[str]) -> Path:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
        opened.writelines(f"{line}\n" for line in lines)
    return file
