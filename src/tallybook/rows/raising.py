"""Fails a Spark job from inside its plan, with details that the driver can read back.

Checks of rows (a value that does not parse, a join with two matches) are expressions, so that good data is read only
once. `raising` builds the expression that fails the job; `parse_raised` reads the details from the error.

No value can imitate such an error. A random mark precedes the details. It is the same for all plans of a process,
because Spark compiles a plan again if a literal changes. Values from rows are written in hexadecimal, so that they can
neither end the field nor look like text of ours or of Spark.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F

from tallybook.rows import sql

_MARK = f"TALLYBOOK-{secrets.token_hex(8)}:"
_CONDITION = "USER_RAISED_EXCEPTION"
_OF_ROW = re.compile(r"((?:[0-9A-F]{2})+);")
_LONGEST = 200
"""The most characters of a value that are reported, because a Connect server may cut long messages."""


def raising(type: str, **details: str | Column) -> Column:
    """Returns an expression that fails the job with a problem of this type. Details that are Columns come from the row.

    A detail that is NULL on the row is left out. Use the expression in a branch:
    `F.when(bad, raising(...)).otherwise(value)`.
    """
    text = F.lit(_head(type, {name: detail for name, detail in details.items() if isinstance(detail, str)}))
    of_row = [
        F.substring(detail.cast("string"), 1, _LONGEST).alias(name)
        for name, detail in details.items()
        if isinstance(detail, Column)
    ]
    return F.raise_error(F.concat(text, F.hex(F.to_json(F.struct(*of_row))), F.lit(";")) if of_row else text)


def raising_sql(type: str, **details: str) -> str:
    """Returns SQL that does the same; the details are SQL that is evaluated on the row."""
    fields = ", ".join(f"'{name}', substring({detail}, 1, {_LONGEST})" for name, detail in details.items())
    return f"raise_error(concat({sql.text(_head(type, {}))}, hex(to_json(named_struct({fields}))), ';'))"


def _head(type: str, details: dict[str, str]) -> str:
    return _MARK + json.dumps({"type": type, **details})


def parse_raised(error: Exception) -> dict[str, Any] | None:
    """Returns the details of an error that `raising` raised; None for any other error.

    If Spark names the error, the details are in the message that it was raised with. An error without a name may wrap
    ours, with our message somewhere in its text.
    """
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition is None:
        _, raised, text = str(error).partition(f"[{_CONDITION}] {_MARK}")
        return _details(text) if raised else None
    if condition != _CONDITION:
        return None
    assert isinstance(error, PySparkException)
    message = (error.getMessageParameters() or {}).get("errorMessage") or str(error).removeprefix(f"[{_CONDITION}] ")
    return _details(message.removeprefix(_MARK)) if message.startswith(_MARK) else None


def _details(text: str) -> dict[str, Any] | None:
    """Returns the details that a message begins with: those of the plan, then those of the row unless Spark cut
    them."""
    details: dict[str, Any]
    try:
        details, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None
    of_row = _OF_ROW.match(text, end)
    return details | (json.loads(bytes.fromhex(of_row[1]).decode(errors="replace")) if of_row else {})
