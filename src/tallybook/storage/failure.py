"""Reads the reason of a failed Spark job in one line; the JVM's stack trace belongs in the log.

Messages quote data, so an error is never recognised by text in the middle of a message, only by the name that Spark
gives it, by the classes of its causes, or by the beginning of a message.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import convert_exception

from tallybook.errors import RunError, fail
from tallybook.exit_codes import UNAVAILABLE, ExitCode
from tallybook.model.location import Location
from tallybook.secrets import hide_secrets

SPARK_ERRORS = (PySparkException, Py4JError)
"""The exceptions of PySpark, and those of py4j for exceptions of the JVM that PySpark does not translate."""
_NAME = re.compile(r"\[([A-Z][A-Z0-9_.]*)\] ")
_STATE = re.compile(r" SQLSTATE: ([0-9A-Z]{5})$")
_CAUSED_BY = re.compile(r"^\t(?:at |\.\.\. )[^\n]*\nCaused by: ([\w.$]+): ([^\n]*)", re.MULTILINE)
_OF_TASK = re.compile(
    r"Job aborted due to stage failure: Task \d+ in stage [\d.]+ failed \d+ times?, most recent failure: "
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^()\n]*\): ([\w.$]+): ([^\n]*)"
)
_LOST = re.compile(
    r"(?:org\.apache\.spark\.SparkException: )?Job aborted due to stage failure: (?:Master removed our application|"
    r"Task \d+ in stage [\d.]+ failed (\d+) times?, most recent failure: Lost task [\d.]+ in stage [\d.]+ "
    r"\(TID \d+\) \([^()\n]*\): ExecutorLostFailure \(executor \d+ exited [^()\n]*\) Reason: ([^\n]*))"
)
_FILE_SYSTEM = re.compile(r"(?:java\.n?io|org\.apache\.hadoop)\.[\w.$]+(?:Exception|Error)")
_COLON = re.compile(r"(?:java\.net\.URISyntaxException: )?Relative path in absolute URI: (\S+)")
_FULL = "No space left on device"
_SYSTEM_FAULTS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTUNREACH})
"""What the system says of a disk that is full or gone; other errors of files are about names and permissions."""
_CSV_PARSER = "com.univocity.parsers.common.TextParsingException"
_IN_PYTHON = "PYTHON_EXCEPTION"
_DATABASE_FAULT = re.compile(r"^(?:[\w.]+\.)?DatabaseError: (\{.*\})\s*$", re.MULTILINE)
"""The last line of the traceback of a `DatabaseError` of `formats.database_source`."""
_READING, _WRITING = "FAILED_READ_FILE", "TASK_WRITE_FAILED"


@dataclass(frozen=True)
class Cause:
    """An exception of the JVM: its class and the first line of its message."""

    type: str
    message: str

    @property
    def condition(self) -> str | None:
        """The name that Spark gave it, which is the beginning of its message."""
        named = _NAME.match(self.message) if self.type.startswith("org.apache.spark.") else None
        return named[1] if named else None

    @property
    def state(self) -> str | None:
        """The SQL state that Spark gave it, which ends its message."""
        state = _STATE.search(self.message) if self.condition else None
        return state[1] if state else None


def unwrapped(error: Exception) -> Exception:
    """Returns the named error inside one that PySpark does not translate. Spark wraps the failure of a broadcast."""
    exception = error.java_exception if isinstance(error, Py4JJavaError) else None
    while exception is not None:
        converted = convert_exception(exception)
        if error_condition(converted) is not None:
            return converted
        exception = exception.getCause()
    return error


def error_condition(error: Exception) -> str | None:
    """Returns the name that Spark gives an error, such as PATH_NOT_FOUND; None if it has none."""
    named = getattr(error, "getCondition", None)
    return named() if named else None


def causes(error: Exception) -> tuple[Cause, ...]:
    """Returns the exceptions behind an error that Spark has no name for, the outermost first.

    A Connect server sends them as text. A line of that text begins a cause only below a line of a stack trace.
    """
    if isinstance(error, Py4JJavaError):
        return tuple(_of_jvm(error.java_exception))
    message, trace = _first_line(str(error)), getattr(error, "getStackTrace", lambda: None)() or ""
    type = _first_line(trace)
    outermost = Cause(type, message.removeprefix(f"({type}) "))
    inner = [Cause(*match) for match in _CAUSED_BY.findall(trace)]
    of_task = _OF_TASK.match(message)
    return (outermost, *(inner or ([Cause(of_task[1], of_task[2])] if of_task else [])))


def _of_jvm(exception: Any) -> Iterator[Cause]:
    while exception is not None:
        yield Cause(exception.getClass().getName(), _first_line(exception.getMessage() or ""))
        exception = exception.getCause()


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def reason(error: Exception) -> str:
    """Returns the line of a Spark error that says what happened: the one with its name, else its innermost cause."""
    if error_condition(error) is not None:
        return _first_line(str(error))
    chain = causes(error)
    named = next((cause.message for cause in chain if cause.condition), None)
    if named is not None:
        return named
    innermost = chain[-1]
    text = ": ".join(part for part in (innermost.type, innermost.message) if part)
    return text or type(error).__name__


def database_fault(error: Exception) -> dict[str, str] | None:
    """Returns what a worker of Spark reports of a database: `doing`, `location` and `reason`. None if a job failed
    otherwise."""
    if error_condition(error) not in (None, _IN_PYTHON):
        return None
    reports = _DATABASE_FAULT.findall(str(error))
    try:
        return dict(json.loads(reports[-1])) if reports else None
    except ValueError:
        return None


def is_csv_fault(error: Exception) -> bool:
    """True if a job failed because Spark's CSV parser could not read a file."""
    return any(cause.type == _CSV_PARSER for cause in causes(error))


def lost_process(error: Exception) -> str | None:
    """Returns a message if a job failed because a process of Spark ended; None for other failures."""
    if isinstance(error, (ConnectionError, Py4JNetworkError)):
        return "the Java process of Spark ended during the run"
    lost = next((match for cause in causes(error) if (match := _LOST.match(cause.message))), None)
    if lost is None:
        return None
    if lost[1] is None:
        return "the cluster stopped the processes that compute"
    return f"the processes that computed a part of the job were lost {lost[1]} times, the last time with: {lost[2]}"


def refused_colon(error: Exception) -> str | None:
    """Returns a message if Spark failed because a name has a colon; None for other failures.

    Hadoop reads the text before a colon as the scheme of a url when it lists a pattern or looks for the checksum of a
    file.
    """
    named = next((match for cause in causes(error) if (match := _COLON.match(cause.message))), None)
    return named and f"Spark cannot use the name '{unquote(named[1])}', because it has a colon"


_CONNECTORS = {
    "org.apache.hadoop.fs.s3a.": ("S3", "hadoop-aws"),
    "org.apache.hadoop.fs.azurebfs.": ("Azure", "hadoop-azure"),
    "org.apache.hadoop.fs.gs.": ("Google Cloud Storage", "hadoop-gcp"),
}
"""The packages of Hadoop's connectors, by the beginning of their classes."""
_NO_CLASS = re.compile(r"Class (org\.apache\.hadoop\.fs\.\w+\.)\w+ not found")


def missing_connector(error: Exception, path: str) -> tuple[str, str] | None:
    """Returns message and hint if Spark has no connector for the object store of a path; None for other failures."""
    chain = causes(error)
    found = next((match for cause in reversed(chain) if (match := _NO_CLASS.fullmatch(cause.message))), None)
    if found is None or found[1] not in _CONNECTORS:
        return None
    store, package = _CONNECTORS[found[1]]
    coordinates = f"org.apache.hadoop:{package}:{_hadoop_version()}"
    return (
        f"Spark cannot open {path}: its connector for {store} is missing",
        f"add `spark.jars.packages: {coordinates}` to `spark: {{conf: …}}` of tallybook.yaml; without access to Maven, "
        "add the jar and those it needs with `spark.jars`",
    )


def _hadoop_version() -> str:
    """Returns the version of Hadoop in the installed PySpark, which its connectors must have, too."""
    jars = Path(pyspark.__file__).parent / "jars"
    name = next((jar.stem for jar in jars.glob("hadoop-client-api-*.jar")), "hadoop-client-api-VERSION")
    return name.removeprefix("hadoop-client-api-")


def could_not_write(location: Location, error: OSError) -> RunError:
    """Returns the problem of an output that the file system refused."""
    if error.errno is None:
        refused, cause = refused_by_store(error)
        return fail("WriteFailed", f"{location} could not be written: {refused}", cause=cause)
    cause = UNAVAILABLE if error.errno in _SYSTEM_FAULTS else None
    return fail("WriteFailed", f"{location} could not be written: {error}", cause=cause)


_ARROW = re.compile(r"(?:\x1b\[\d*m|\s|↳)+")
_UNANSWERED = ("error sending request", "retries")


def refused_by_store(error: OSError) -> tuple[str, ExitCode | None]:
    """Returns why an object store refused delta-rs, in one line, and the cause if a retry may help.

    delta-rs draws a tree over several lines, with colours.
    """
    text = hide_secrets(_ARROW.sub(" ", str(error)).strip())
    return text, UNAVAILABLE if any(words in text for words in _UNANSWERED) else None


def refused_files(error: Exception) -> str | None:
    """Returns why files could not be written; None if the job failed for another reason, such as a value it read."""
    if colon := refused_colon(error):
        return colon
    if error_condition(error) not in (None, _WRITING):
        return None
    chain = causes(error)
    names = [error_condition(error), *(cause.condition for cause in chain)]
    if any(name is not None and name.startswith(_READING) for name in names):
        return None
    messages = [cause.message for cause in chain if _FILE_SYSTEM.fullmatch(cause.type)]
    in_hadoop = any(cause.type.startswith("org.apache.hadoop.") for cause in chain)
    if messages and messages[-1].startswith(_FULL) and not in_hadoop:
        where = "at the destination or " if _WRITING in names else ""
        return f"{messages[-1]}, {where}in the folder where Spark keeps its temporary files (spark.local.dir)"
    if messages:
        return messages[-1]
    return reason(error) if _WRITING in names else None


def is_full(reason: str) -> bool:
    """True if a reason of `refused_files` is a full disk."""
    return reason.startswith(_FULL)
