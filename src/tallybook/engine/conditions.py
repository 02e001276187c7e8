"""Evaluates a resolver's `when` on Spark: the same language with the same meaning, and no job, as there are no rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from tallybook.errors import ProblemError
from tallybook.expressions.check import Checker
from tallybook.expressions.compile import Compiler, cast
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Resolved
from tallybook.resolve.match import Evaluate, fact_scope


def evaluator(session: Callable[[], SparkSession]) -> Evaluate:
    """A function that says whether a condition is true of the facts; the session is asked for at the first one."""

    def evaluate(text: str, facts: Mapping[str, object]) -> bool | None:
        values = {name.partition(".")[2]: value for name, value in facts.items()}

        def read(column: Resolved) -> Column:
            return cast(F.lit(values[column.column]), column.type)

        checker = Checker(fact_scope())
        typed = checker.check(parse(text))
        if typed is None:
            raise ProblemError(checker.problems)
        compiler = replace(Compiler(datetime.now(UTC), str(facts["period.identifier"])), read=read)
        row = session().sql("SELECT 1").select(compiler.column(typed)).first()
        assert row is not None
        verdict: bool | None = row[0]
        return verdict

    return evaluate
