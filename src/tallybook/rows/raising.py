"""Failing a Spark job from inside its plan, with facts the driver can read back.

Checks that belong to rows (a value that does not parse, a join with two matches) are expressions, so that good data
is passed over once. `raising` builds the expression that ends the job; `parse_raised` finds its facts again in
whatever text Spark wraps around them.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from tallybook.rows import sql

_MARK = "TALLYBOOK:"
_RAISED = f"[USER_RAISED_EXCEPTION] {_MARK}"
"""What stands before the facts in a message. The mark alone is no proof: where Spark refuses a plan, it prints it."""


def raising(type: str, **facts: str | Column) -> Column:
    """An expression that fails the job with a problem of this type; facts that are Columns are taken from the row.

    A fact that is NULL on the row is left out. Stand it in a branch: `F.when(bad, raising(...)).otherwise(value)`.
    """
    known = {"type": type} | {name: fact for name, fact in facts.items() if isinstance(fact, str)}
    text = F.lit(_MARK + json.dumps(known))
    of_row = [fact.alias(name) for name, fact in facts.items() if isinstance(fact, Column)]
    return F.raise_error(F.concat(text, F.to_json(F.struct(*of_row))) if of_row else text)


def raising_sql(type: str, **facts: str) -> str:
    """The same in SQL; the facts are, too."""
    fields = ", ".join(f"'{name}', {fact}" for name, fact in {"type": sql.text(type), **facts}.items())
    return f"raise_error(concat('{_MARK}', to_json(named_struct({fields}))))"


def parse_raised(message: str) -> dict[str, Any] | None:
    """The facts inside the message of a failed job, or None when the failure is not one of `raising`'s."""
    _, raised, facts = message.partition(_RAISED)
    return _objects(facts) if raised else None


def _objects(message: str) -> dict[str, Any]:
    """The fields of the JSON objects that it begins with, one after the other."""
    fields: dict[str, Any] = {}
    start = 0
    while message.startswith("{", start):
        try:
            found, start = json.JSONDecoder().raw_decode(message, start)
        except ValueError:
            break
        fields |= found
    return fields
