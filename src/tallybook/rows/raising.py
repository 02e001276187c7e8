"""Reads the details of an error that a plan of ours raised, and raises the same from SQL."""

from __future__ import annotations

import json
import re
from typing import Any

from pyspark.errors import PySparkException

from tallybook.expressions.functions.raising import LONGEST, MARK, head, raising
from tallybook.rows import sql

__all__ = ["parse_raised", "raising", "raising_sql"]

_CONDITION = "USER_RAISED_EXCEPTION"
_OF_ROW = re.compile(r"((?:[0-9A-F]{2})+);")


def raising_sql(type: str, **details: str) -> str:
    """Returns SQL that does the same; the details are SQL that is evaluated on the row."""
    fields = ", ".join(f"'{name}', substring({detail}, 1, {LONGEST})" for name, detail in details.items())
    return f"raise_error(concat({sql.text(head(type, {}))}, hex(to_json(named_struct({fields}))), ';'))"


def parse_raised(error: Exception) -> dict[str, Any] | None:
    """Returns the details of an error that `raising` raised; None for any other error.

    If Spark names the error, the details are in the message that it was raised with. An error without a name may wrap
    ours, with our message somewhere in its text.
    """
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition is None:
        _, raised, text = str(error).partition(f"[{_CONDITION}] {MARK}")
        return _details(text) if raised else None
    if condition != _CONDITION:
        return None
    assert isinstance(error, PySparkException)
    message = (error.getMessageParameters() or {}).get("errorMessage") or str(error).removeprefix(f"[{_CONDITION}] ")
    return _details(message.removeprefix(MARK)) if message.startswith(MARK) else None


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
