"""What a failed Spark job says, in one line: the JVM's trace belongs into the log."""

from __future__ import annotations

import re
from urllib.parse import unquote

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tallybook.storage.files import condition

SPARK_ERRORS = (PySparkException, Py4JError)
"""PySpark translates what it knows of the JVM's exceptions; of the others it lets py4j's own through."""
_NAMED = re.compile(r"\[[A-Z][A-Z0-9_.]+\] [^\n]*")
_CAUSE = re.compile(r"^(?:Caused by)?: ([^\n]+)", re.MULTILINE)
_FILE_SYSTEM = re.compile(r"\b(?:java\.n?io|org\.apache\.hadoop)\.[\w.$]+(?:Exception|Error): ([^\n]+)")
_COLON = re.compile(r"java\.net\.URISyntaxException: Relative path in absolute URI: (\S+)")
_WRITING = "TASK_WRITE_FAILED"
_READING = "[FAILED_READ_FILE"


def reason(error: Exception) -> str:
    """The one line of a Spark error that says what happened: its named one, else its innermost cause."""
    text = str(error)
    if named := _NAMED.search(text):
        return named[0]
    if causes := _CAUSE.findall(text):
        return str(causes[-1])
    return (text.strip().splitlines() or [type(error).__name__])[0]


def refused_colon(error: Exception) -> str | None:
    """Says that a name has a colon, where that made Spark fail: Hadoop takes what is before it for the scheme of a url,
    when it lists a pattern and when it looks for the checksum beside a file."""
    named = _COLON.search(str(error))
    return named and f"Spark cannot use the name '{unquote(named[1])}', because it has a colon"


def refused_files(error: Exception) -> str | None:
    """Why files could not be written; None when the job failed for any other reason: for a value, or for what it read.

    Found in the text, for Spark Connect hands out nothing else.
    """
    text = str(error)
    if colon := refused_colon(error):
        return colon
    if condition(error) not in (None, _WRITING) or _READING in text:
        return None
    said = _FILE_SYSTEM.findall(text)
    if said:
        return str(said[-1])
    return reason(error) if _WRITING in text else None
