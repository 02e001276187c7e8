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
from tallybook.model.columns import DELETED, UPDATED_AT
from tallybook.operations.base import BuildContext, Step
from tallybook.operations.flow import live_columns
from tallybook.operations.schema import SourceTable
from tallybook.rows.raising import parse_raised
from tallybook.rows.system import select_columns
from tallybook.storage.damage import failed_read
from tallybook.storage.diagnose import diagnose, diagnose_file
from tallybook.storage.failure import (
    SPARK_ERRORS,
    causes,
    error_condition,
    is_csv_fault,
    lost_process,
    reason,
    refused_colon,
)
from tallybook.storage.files import path_of
from tallybook.text import shortened

_DATA_EXCEPTION = "22"
"""The class of SQL states that are about values."""
_BAD_PATTERN = "INVALID_FORMAT"
"""About a value as well, the pattern of a LIKE, though its state is that of bad SQL."""


@contextmanager
def explained(pipeline: Pipeline, at: Callable[[], Step | None]) -> Iterator[None]:
    """Turns a failed job into the RunError that tells it."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise RunError([explain_failure(error, pipeline, at())]) from error
    except ConnectionError as error:  # the JVM is gone, which a damaged file can do by asking for too much memory
        raise RunError([_damage(error, pipeline) or _lost(error, at()) or _internal(error, at())]) from error


def explain_failure(error: Exception, pipeline: Pipeline, at: Step | None) -> Problem:
    """The problem behind a failed job; `at` is the step that was being executed."""
    raised = parse_raised(error)
    if raised is not None:
        return _of_facts(raised, pipeline, at)
    if colon := refused_colon(error):
        return _of_step(Problem("DataLoadError", colon, "rename the file or folder"), at)
    if not is_about_values(error):
        return _damage(error, pipeline) or _lost(error, at) or _internal(error, at)
    blamed = _Blame(pipeline).find(at) or _unreadable(error, pipeline)
    return blamed or _of_step(Problem("EvaluationError", _reason(error)), at)


def is_about_values(error: Exception) -> bool:
    """Whether a row, and not the plan or the machine, made the job fail."""
    name = error_condition(error)
    if name is None:
        return causes(error)[-1].type == "java.lang.ArithmeticException"
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    return (state or "").startswith(_DATA_EXCEPTION) or name.startswith(_BAD_PATTERN)


def _lost(error: Exception, at: Step | None) -> Problem | None:
    said = lost_process(error)
    hint = "give Spark more memory if it ran out of it, see that nobody ends its processes, then retry the run"
    return _of_step(Problem("SparkFailed", said, hint), at) if said else None


def _internal(error: Exception, at: Step | None) -> Problem:
    return _of_step(Problem("InternalError", f"Spark failed: {_sentence(error)}"), at)


def _of_step(problem: Problem, step: Step | None) -> Problem:
    return problem if step is None else step.attribute(problem)


def _of_facts(raised: dict[str, str], pipeline: Pipeline, at: Step | None) -> Problem:
    """The problem that a plan of ours raised."""
    match raised["type"]:
        case "JoinNotUnique":
            return _join_not_unique(raised, pipeline.calculation.steps)
        case "DataLoadError":
            return _bad_data(raised, pipeline)
    if "unlisted_file" in raised:
        message = f"a file appeared while the run was reading: {path_of(raised['unlisted_file'])}"
        return _of_step(Problem("DataLoadError", message, "run again when nothing writes to the place"), at)
    facts = ", ".join(f"{name} {value}" for name, value in raised.items())
    return _of_step(Problem("InternalError", f"a check of the plan failed: {facts}"), at)


def _bad_data(raised: dict[str, str], pipeline: Pipeline) -> Problem:
    """A value that cannot be, told as the problem of the operation that loads its table; the input has none."""
    reads = pipeline.tables.reads
    problem = diagnose(pipeline.spark, raised, [(place, source.table) for place, source in reads])
    asked = raised.get("location"), raised.get("table")
    return _of_loading(problem, pipeline, {s for place, s in reads if (place.target, s.table.name) == asked})


def _damage(error: Exception, pipeline: Pipeline) -> Problem | None:
    """A file that could not be read, as the problem of the operation that loads its table; the input has none."""
    reads = pipeline.tables.reads
    places = [place for place, _ in reads]
    found = failed_read(error, places)
    if found is None:
        return None
    problem, file = found
    if is_csv_fault(error):
        problem = diagnose_file(pipeline.spark, file, places) or problem
    return _of_loading(problem, pipeline, {s for place, s in reads if file.startswith(path_of(place.target))})


def _unreadable(error: Exception, pipeline: Pipeline) -> Problem | None:
    """The problem of input that fails before any operation: a damaged file can hold values its own columns cannot."""
    if _failure(pipeline.first(pipeline.build_context)[0]) is None:
        return None
    places = {path_of(place.target) for place, source in pipeline.tables.reads if source == pipeline.calculation.input}
    message = f"a value of the input cannot be read: {_reason(error)}; the data is in {', '.join(sorted(places))}"
    return Problem("DataLoadError", message, "a file there may be damaged; replace it with a good copy")


def _of_loading(problem: Problem, pipeline: Pipeline, loaded: set[SourceTable]) -> Problem:
    if pipeline.calculation.input in loaded:
        return problem
    loading = (step for step in pipeline.calculation.steps if loaded.intersection(step.sources))
    return _of_step(problem, next(loading, None))


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
        """Looks at what the failed job needed. If that does not fail, the job kept its frame: looks at all columns.

        At first only rows that are never deleted count: what an operation without a selector sets is overwritten.
        """
        reached = self.pipeline.calculation.steps
        reached = reached[: reached.index(at) + 1] if at in reached else reached
        last = reached[-1] if reached else None
        steps = [step for step in reached if step.publishes is None]
        stages = [self.pipeline.first(self.pipeline.build_context)]
        for step in steps:
            stages.append(self.pipeline.after(step, *stages[-1]))
        all_columns = [frozenset(frame.columns) for frame, _ in stages]
        publishing = last if last is not None and last.publishes is not None else None
        wanted = publishing.needs((), all_active=True) if publishing else all_columns[-1]
        return self._among(steps, publishing, stages, live_columns(steps, wanted, active_only=True)) or self._among(
            steps, publishing, stages, all_columns
        )

    def _among(
        self,
        steps: Sequence[Step],
        publishing: Step | None,
        stages: Sequence[tuple[DataFrame, BuildContext]],
        needed: Sequence[frozenset[str]],
    ) -> Problem | None:
        """The step that fails, where only these columns are looked at before, between and after the steps; if none
        does, the one that publishes."""
        frames = [_narrowed(frame, columns) for (frame, _), columns in zip(stages, needed, strict=True)]
        culprit = self._first_failing(frames)
        if culprit == 0:
            return None
        if culprit is None:
            return self._expression(publishing, *stages[-1], needed[-1]) if publishing else None
        step = steps[culprit - 1]
        error = _failure(frames[culprit])
        known = self._expression(step, *stages[culprit - 1], needed[culprit])
        return known or (_of_step(Problem("EvaluationError", _reason(error)), step) if error else None)

    def _first_failing(self, frames: Sequence[DataFrame]) -> int | None:
        """A frame needs what those before it need, so the first that fails can be found by halving."""
        low, high = 0, len(frames) - 1
        if _failure(frames[high]) is None:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if _failure(frames[middle]) else (middle + 1, high)
        return low

    def _expression(self, step: Step, before: DataFrame, build: BuildContext, needed: frozenset[str]) -> Problem | None:
        for path, reduced in step.per_expression.items():
            error = _failure(_narrowed(self._result(reduced, before, build), needed | {DELETED, UPDATED_AT}))
            if error is not None:
                place = step.expressions[path].node.span.place
                text = " ".join(step.expressions[path].node.span.text.split())
                message = f"{_target(step, path)}{_reason(error)}"
                return _of_step(Problem("EvaluationError", message, f"in: {text}", place, path=path), step)
        return None

    def _result(self, step: Step, before: DataFrame, build: BuildContext) -> DataFrame:
        build = replace(build, all_stamped=False)  # so that a selector is asked even where nothing is assigned
        if step.publishes is not None:
            return step.rows_to_publish(before, build)
        return step.apply(before, build)


def _narrowed(frame: DataFrame, columns: frozenset[str]) -> DataFrame:
    return select_columns(frame, [name for name in frame.columns if name in columns])


def _failure(frame: DataFrame) -> Exception | None:
    """Evaluates every cell without keeping any."""
    try:
        frame.write.format("noop").mode("overwrite").save()
    except SPARK_ERRORS as error:
        return error
    return None


def _target(step: Step, path: str) -> str:
    column = step.column_by_path.get(path)
    return f"column '{column}': " if column else ""


_REASONS: dict[str, Callable[[dict[str, str]], str]] = {
    "ARITHMETIC_OVERFLOW": lambda facts: (
        "a sum has more digits than a decimal can hold"
        if "decimal" in facts["message"]
        else "a result does not fit into a 64-bit integer"
    ),
    "NUMERIC_VALUE_OUT_OF_RANGE": lambda facts: (
        f"{facts['value'].strip()} does not fit into decimal({facts['precision']},{facts['scale']})"
    ),
    "CAST_INVALID_INPUT": lambda facts: (
        f"{_shown(facts['expression'])} is not a valid {_type_name(facts['targetType'])}"
    ),
    "CANNOT_PARSE_TIMESTAMP": lambda facts: shortened(facts["message"]),
    "DATETIME_FIELD_OUT_OF_BOUNDS": lambda facts: shortened(facts["rangeMessage"]),
}


def _shown(quoted: str) -> str:
    """A value as Spark quotes it, cut where it is long."""
    return f"'{shortened(quoted[1:-1])}'" if quoted.startswith("'") else shortened(quoted)


def _reason(error: Exception) -> str:
    if not isinstance(error, PySparkException):
        return _sentence(error)
    facts = error.getMessageParameters() or {}
    known = _REASONS.get((error_condition(error) or "").partition(".")[0])
    try:
        return known(facts) if known else _sentence(error)
    except KeyError:
        return _sentence(error)


def _type_name(spark_name: str) -> str:
    name = spark_name.strip('"').lower()
    return {"bigint": "integer"}.get(name, name)


def _sentence(error: Exception) -> str:
    """Spark's own words, without its advice to switch the check off. The advice comes last, after any value."""
    said = re.sub(r"^\[[^\]]+\]\s*", "", reason(error))
    for tail in (" SQLSTATE: ", " Use `", " If necessary set "):
        said = said.rpartition(tail)[0] or said
    return shortened(said.strip(), 500)
