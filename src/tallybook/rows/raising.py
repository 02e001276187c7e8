"""Failing a Spark job from inside its plan, with facts the driver can read back.

Checks that belong to rows (a value that does not parse, a join with two matches) are expressions, so that good data
is passed over once. `raising` builds the expression that ends the job; `parse_raised` reads its facts from the error.

No value can imitate such an error. The mark before the facts is drawn by chance for every process; it is the same for
all plans of a process, because Spark would compile a plan with another literal anew. What comes from a row is written
in hexadecimal, so that nothing in it can end the field or look like text of ours or of Spark.
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
"""Characters of a value that travel: a Connect server may cut long messages, and nobody reads more."""


def raising(type: str, **facts: str | Column) -> Column:
    """An expression that fails the job with a problem of this type; facts that are Columns are taken from the row.

    A fact that is NULL on the row is left out. Stand it in a branch: `F.when(bad, raising(...)).otherwise(value)`.
    """
    text = F.lit(_head(type, {name: fact for name, fact in facts.items() if isinstance(fact, str)}))
    of_row = [
        F.substring(fact.cast("string"), 1, _LONGEST).alias(name)
        for name, fact in facts.items()
        if isinstance(fact, Column)
    ]
    return F.raise_error(F.concat(text, F.hex(F.to_json(F.struct(*of_row))), F.lit(";")) if of_row else text)


def raising_sql(type: str, **facts: str) -> str:
    """The same in SQL; the facts are SQL that is evaluated on the row."""
    fields = ", ".join(f"'{name}', substring({fact}, 1, {_LONGEST})" for name, fact in facts.items())
    return f"raise_error(concat({sql.text(_head(type, {}))}, hex(to_json(named_struct({fields}))), ';'))"


def _head(type: str, facts: dict[str, str]) -> str:
    return _MARK + json.dumps({"type": type, **facts})


def parse_raised(error: Exception) -> dict[str, Any] | None:
    """The facts of an error that `raising` raised, None for any other error.

    Where Spark names the error, the facts are the message that it was raised with. An error without a name may wrap
    ours, with its message somewhere in the text.
    """
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition is None:
        _, raised, text = str(error).partition(f"[{_CONDITION}] {_MARK}")
        return _facts(text) if raised else None
    if condition != _CONDITION:
        return None
    assert isinstance(error, PySparkException)
    said = (error.getMessageParameters() or {}).get("errorMessage") or str(error).removeprefix(f"[{_CONDITION}] ")
    return _facts(said.removeprefix(_MARK)) if said.startswith(_MARK) else None


def _facts(text: str) -> dict[str, Any] | None:
    """The facts a message begins with: those of the plan, then those of the row, unless Spark cut the latter off."""
    facts: dict[str, Any]
    try:
        facts, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None
    of_row = _OF_ROW.match(text, end)
    return facts | (json.loads(bytes.fromhex(of_row[1]).decode(errors="replace")) if of_row else {})
