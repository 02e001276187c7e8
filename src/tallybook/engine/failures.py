"""A failed Spark job, told as the operation, column and expression that caused it.

Failures our own plans raise carry their facts. For any other failure of data (an overflow, text that is no number)
Spark names no operation, so the steps are evaluated again, fewer and fewer, until one is left to blame. That costs
jobs, but only in runs that have failed already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tallybook.engine.pipeline import Pipeline
from tallybook.errors import Problem, RunError
from tallybook.operations.base import Applying, Step
from tallybook.operations.output import OutputStep
from tallybook.rows.raising import parse_raised
from tallybook.storage.diagnose import diagnose

_DATA_EXCEPTION = "22"
"""The class of SQL states that are about values."""


@contextmanager
def explained(pipeline: Pipeline, at: Callable[[], Step | None]) -> Iterator[None]:
    """Turns a failed job into the RunError that tells it."""
    try:
        yield
    except PySparkException as error:
        raise RunError([explain_failure(error, pipeline, at())]) from error


def explain_failure(error: PySparkException, pipeline: Pipeline, at: Step | None) -> Problem:
    """The problem behind a failed job; `at` is the step that was being executed."""
    raised = parse_raised(str(error))
    if raised is not None and raised["type"] == "JoinNotUnique":
        return _join_not_unique(raised, pipeline.steps)
    if raised is not None:
        return _bad_data(raised, pipeline)
    if not (error.getSqlState() or "").startswith(_DATA_EXCEPTION):
        return _of_step(Problem("InternalError", f"Spark failed: {_sentence(error)}"), at)
    return _Blame(pipeline).find(at) or _of_step(Problem("EvaluationError", _reason(error)), at)


def _of_step(problem: Problem, step: Step | None) -> Problem:
    return problem if step is None else step.own(problem)


def _bad_data(raised: dict[str, str], pipeline: Pipeline) -> Problem:
    """A value that cannot be, told as the problem of the operation that loads its table; the input has none."""
    reads = pipeline.tables.reads
    problem = diagnose(pipeline.spark, raised, [(place, source.table) for place, source in reads])
    asked = raised.get("location"), raised.get("table")
    loaded = {source for place, source in reads if (place.target, source.table.name) == asked}
    if pipeline.input in loaded:
        return problem
    return _of_step(problem, next((step for step in pipeline.steps if loaded.intersection(step.sources)), None))


def _join_not_unique(raised: dict[str, str], steps: Sequence[Step]) -> Problem:
    step = next((step for step in steps if str(step.seq) == raised["seq"]), None)
    key = f" for key '{raised['key']}'" if raised.get("key") else ""
    typed = step.join_condition(raised["alias"]) if step is not None else None
    problem = Problem(
        "JoinNotUnique",
        f"'{raised['alias']}' has more than one matching row{key}",
        "make the condition say which one, or remove the duplicates",
        typed.node.span.place if typed is not None else None,
    )
    return _of_step(problem, step)


@dataclass
class _Blame:
    """Finds the step, and in it the expression, that fails."""

    pipeline: Pipeline

    def find(self, at: Step | None) -> Problem | None:
        steps = list(self.pipeline.steps)
        upto = steps.index(at) + 1 if at in steps else len(steps)
        stages = [self.pipeline.first(self.pipeline.applying)]
        for step in steps[:upto]:
            stages.append(self.pipeline.after(step, *stages[-1]))
        culprit = self._first_failing([frame for frame, _ in stages])
        if culprit == 0:
            return None
        if culprit is None:
            return self._expression(at, *stages[-1]) if isinstance(at, OutputStep) else None
        step = steps[culprit - 1]
        error = _failure(stages[culprit][0])
        known = self._expression(step, *stages[culprit - 1])
        return known or (_of_step(Problem("EvaluationError", _reason(error)), step) if error else None)

    def _first_failing(self, frames: Sequence[DataFrame]) -> int | None:
        """A frame contains all before it, so the first that fails can be found by halving."""
        low, high = 0, len(frames) - 1
        if _failure(frames[high]) is None:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if _failure(frames[middle]) else (middle + 1, high)
        return low

    def _expression(self, step: Step, before: DataFrame, applying: Applying) -> Problem | None:
        for path, alone in step.alone.items():
            error = _failure(self._result(alone, before, applying))
            if error is not None:
                place = step.expressions[path].node.span.place
                text = step.expressions[path].node.span.text
                message = f"{_target(step, path)}{_reason(error)}"
                return _of_step(Problem("EvaluationError", message, f"in: {text}", place, path=path), step)
        return None

    def _result(self, step: Step, before: DataFrame, applying: Applying) -> DataFrame:
        applying = replace(applying, all_stamped=False)  # so that a selector is asked even where nothing is assigned
        if isinstance(step, OutputStep):
            return step.projected(before, applying)
        return step.apply(before, applying)


def _failure(frame: DataFrame) -> PySparkException | None:
    """Evaluates every cell without keeping any."""
    try:
        frame.write.format("noop").mode("overwrite").save()
    except PySparkException as error:
        return error
    return None


def _target(step: Step, path: str) -> str:
    column = step.column_at(path)
    return f"column '{column}': " if column else ""


_REASONS: dict[str, Callable[[dict[str, str]], str]] = {
    "ARITHMETIC_OVERFLOW": lambda _facts: "a result does not fit into a 64-bit integer",
    "NUMERIC_VALUE_OUT_OF_RANGE": lambda facts: (
        f"{facts['value'].strip()} does not fit into decimal({facts['precision']},{facts['scale']})"
    ),
    "CAST_INVALID_INPUT": lambda facts: f"{facts['expression']} is not a valid {_type_name(facts['targetType'])}",
    "CANNOT_PARSE_TIMESTAMP": lambda facts: facts["message"],
    "DATETIME_FIELD_OUT_OF_BOUNDS": lambda facts: facts["rangeMessage"],
}


def _reason(error: PySparkException) -> str:
    condition = (error.getCondition() or "").split(".")[0]
    facts = error.getMessageParameters() or {}
    known = _REASONS.get(condition)
    try:
        return known(facts) if known else _sentence(error)
    except KeyError:
        return _sentence(error)


def _type_name(spark_name: str) -> str:
    name = spark_name.strip('"').lower()
    return {"bigint": "integer"}.get(name, name)


def _sentence(error: PySparkException) -> str:
    """Spark's own words, without its advice to switch the check off."""
    first = str(error).splitlines()[0]
    return re.split(r" (?:Use|If necessary|SQLSTATE)", re.sub(r"^\[[^\]]+\]\s*", "", first))[0].strip()
