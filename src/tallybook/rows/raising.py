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

_MARK = "TALLYBOOK:"


def raising(type: str, **facts: str | Column) -> Column:
    """An expression that fails the job with a problem of this type; facts that are Columns are taken from the row.

    A fact that is NULL on the row is left out. Stand it in a branch: `F.when(bad, raising(...)).otherwise(value)`.
    """
    fields = {"type": type, **facts}
    struct = F.struct(*((v if isinstance(v, Column) else F.lit(v)).alias(name) for name, v in fields.items()))
    return F.raise_error(F.concat(F.lit(_MARK), F.to_json(struct)))


def parse_raised(message: str) -> dict[str, Any] | None:
    """The facts inside the message of a failed job, or None when the failure is not one of `raising`'s."""
    start = message.find(_MARK)
    while start >= 0:
        start += len(_MARK)
        try:
            facts = json.JSONDecoder().raw_decode(message, start)[0]
        except ValueError:
            facts = None
        if isinstance(facts, dict) and "type" in facts:
            return facts
        start = message.find(_MARK, start)
    return None
