"""Builds Spark expressions that fail the job with details that the driver can read back.

Checks of rows (a value that does not parse, a join with two matches) are expressions, so that good data is read only
once. `rows/raising.py` reads the details from the error.

No value can imitate such an error. A random mark precedes the details. It is the same for all plans of a process,
because Spark compiles a plan again if a literal changes. Values from rows are written in hexadecimal, so that they can
neither end the field nor look like text of ours or of Spark.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

from tallybook.expressions.functions.spark import F

if TYPE_CHECKING:
    from pyspark.sql import Column

MARK = f"TALLYBOOK-{secrets.token_hex(8)}:"
LONGEST = 200
"""The most characters of a value that are reported, because a Connect server may cut long messages."""


def raising(type: str, **details: str | Column) -> Column:
    """Returns an expression that fails the job with a problem of this type. Details that are Columns come from the row.

    A detail that is NULL on the row is left out. Use the expression in a branch:
    `F.when(bad, raising(...)).otherwise(value)`.
    """
    text = F.lit(head(type, {name: detail for name, detail in details.items() if isinstance(detail, str)}))
    of_row = [
        F.substring(detail.cast("string"), 1, LONGEST).alias(name)
        for name, detail in details.items()
        if not isinstance(detail, str)
    ]
    return F.raise_error(F.concat(text, F.hex(F.to_json(F.struct(*of_row))), F.lit(";")) if of_row else text)


def refusing(function: str, value: Column, reason: str) -> Column:
    """Returns an expression that fails the job because a function cannot compute its result from a value.

    The reason follows the value in the message: "is not a date written as dd.mm.yyyy".
    """
    return raising("EvaluationError", function=function, reason=reason, value=value)


def head(type: str, details: dict[str, str]) -> str:
    """Returns the beginning of the error's text: the mark, and the details that are the same for all rows."""
    return MARK + json.dumps({"type": type, **details})
