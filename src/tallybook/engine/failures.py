"""Explains a failed Spark job: finds the operation, column and expression that caused it.

Failures that our own plans raise contain these details. For any other failure caused by data (an overflow, text that is
not a number) Spark names no operation, so the steps are evaluated again, by bisection, until the one that fails is
found. That costs jobs, but only in runs that have already failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tallybook.engine.pipeline import Pipeline, Version, Working
from tallybook.engine.reasons import sentence, value_reason
from tallybook.errors import Problem, RunError
from tallybook.exit_codes import BUSY
from tallybook.model.columns import DELETED, ROW_ID, STRING, TIMESTAMP, UPDATED_AT
from tallybook.model.replaced_periods import outside_period
from tallybook.operations.base import Step
from tallybook.operations.flow import live_columns
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.rows.raising import parse_raised
from tallybook.rows.segments import Constant
from tallybook.storage.diagnose import diagnose, diagnose_file, failed_read
from tallybook.storage.failure import (
    SPARK_ERRORS,
    causes,
    database_fault,
    error_condition,
    is_csv_fault,
    lost_process,
    refused_colon,
    unwrapped,
)
from tallybook.storage.files import path_of

_DATA_EXCEPTION = "22"
"""The class of SQL states for bad values."""


@contextmanager
def explained(pipeline: Pipeline, at: Callable[[], Step | None]) -> Iterator[None]:
    """Turns a failed job into a RunError that names its cause."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise RunError([explain_failure(error, pipeline, at())]) from error
    except ConnectionError as error:  # the JVM is gone, which a damaged file can do by asking for too much memory
        raise RunError([_damage(error, pipeline) or _lost(error, at()) or _internal(error, at())]) from error


def explain_failure(error: Exception, pipeline: Pipeline, at: Step | None) -> Problem:
    """Returns the problem that made a job fail. `at` is the step that was being executed."""
    raised = parse_raised(error)
    if raised is not None and raised["type"] != "EvaluationError":
        return _raised_problem(raised, pipeline, at)
    if colon := refused_colon(error):
        return _of_step(Problem("DataLoadError", colon, "rename the file or folder"), at)
    if raised is None and not is_about_values(error):
        return _damage(error, pipeline) or _lost(error, at) or _internal(error, at)
    if at is not None and at.seq in pipeline.passes:  # the first of them computes the groups of all
        at = pipeline.passes[at.seq][-1]
    blamed = _Blame(replace(pipeline, keep_groups=None)).find(at) or _unreadable(error, pipeline)
    return blamed or _of_step(Problem("EvaluationError", value_reason(error)), at)


def is_about_values(error: Exception) -> bool:
    """True if a value made the job fail, and not the plan or the machine."""
    error = unwrapped(error)
    name = error_condition(error)
    if name is None:
        innermost = causes(error)[-1]
        return innermost.type == "java.lang.ArithmeticException" or (innermost.state or "").startswith(_DATA_EXCEPTION)
    state = error.getSqlState() if isinstance(error, PySparkException) else None
    return (state or "").startswith(_DATA_EXCEPTION)


def _lost(error: Exception, at: Step | None) -> Problem | None:
    message = lost_process(error)
    hint = "if Spark ran out of memory, give it more; make sure that nothing ends its processes; then retry the run"
    return _of_step(Problem("SparkFailed", message, hint), at) if message else None


def _internal(error: Exception, at: Step | None) -> Problem:
    return _of_step(Problem("InternalError", f"Spark failed: {sentence(error)}"), at)


def _of_step(problem: Problem, step: Step | None) -> Problem:
    return problem if step is None else step.attribute(problem)


def _raised_problem(raised: dict[str, str], pipeline: Pipeline, at: Step | None) -> Problem:
    """Returns the problem that one of our own plans raised."""
    match raised["type"]:
        case "JoinNotUnique":
            return _join_not_unique(raised, pipeline)
        case "DataLoadError":
            return _bad_data(raised, pipeline)
        case "AllocationFailed":
            return _allocation_failed(raised, pipeline)
        case "OutsidePeriod":
            outside = outside_period(raised.get("period"), pipeline.calculation.context.period.identifier)
            return _of_step(Problem("WriteFailed", *outside), _raising_step(raised, pipeline))
    if "unlisted_file" in raised:
        message = f"a file appeared while the run was reading: {path_of(raised['unlisted_file'])}"
        hint = "run again when nothing writes to that folder"
        return _of_step(Problem("DataLoadError", message, hint, cause=BUSY), at)
    details = ", ".join(f"{name} {value}" for name, value in raised.items())
    return _of_step(Problem("InternalError", f"a check of the plan failed: {details}"), at)


def _bad_data(raised: dict[str, str], pipeline: Pipeline) -> Problem:
    """Attributes a bad value to the operation that loads its table; to none if that is the input."""
    reads = pipeline.tables.reads
    problem = diagnose(pipeline.spark, raised, [(location, source.table) for location, source in reads])
    asked = raised.get("location"), raised.get("table")
    return _of_loading(problem, pipeline, {s for location, s in reads if (location.target, s.table.name) == asked})


def _damage(error: Exception, pipeline: Pipeline) -> Problem | None:
    """Attributes an unreadable file to the operation that loads its table; to none if that is the input."""
    reads = pipeline.tables.reads
    locations = [location for location, _ in reads]
    if (fault := database_fault(error)) is not None:
        tables = {source for location, source in reads if str(location) == fault["location"]}
        problem = Problem("DataLoadError", f"{fault['location']} could not be read: {fault['reason']}")
        return _of_loading(problem, pipeline, tables)
    failure = failed_read(error, locations)
    if failure is None:
        return None
    problem, file = failure
    if is_csv_fault(error):
        problem = diagnose_file(pipeline.spark, file, locations) or problem
    return _of_loading(problem, pipeline, {s for location, s in reads if file.startswith(path_of(location.target))})


def _unreadable(error: Exception, pipeline: Pipeline) -> Problem | None:
    """Returns the problem if reading the input fails on its own: a damaged file can contain impossible values."""
    if _failure(pipeline.frame(pipeline.first(), pipeline.calculation.schema.columns)) is None:
        return None
    input = pipeline.calculation.input
    targets = sorted({path_of(location.target) for location, source in pipeline.tables.reads if source == input})
    message = f"a value of the input cannot be read: {value_reason(error)}; the data is in {', '.join(targets)}"
    return Problem("DataLoadError", message, "a file there may be damaged; replace it with a good copy")


def _of_loading(problem: Problem, pipeline: Pipeline, loaded: set[SourceTable]) -> Problem:
    if pipeline.calculation.input in loaded:
        return problem
    loading = (step for step in pipeline.calculation.steps if loaded.intersection(step.sources))
    return _of_step(problem, next(loading, None))


def _raising_step(raised: dict[str, str], pipeline: Pipeline) -> Step | None:
    return next((step for step in pipeline.calculation.steps if str(step.seq) == raised["seq"]), None)


def _join_not_unique(raised: dict[str, str], pipeline: Pipeline) -> Problem:
    step = _raising_step(raised, pipeline)
    value = _key_of_join(raised, step, pipeline) if step is not None else None
    key = f" for key '{value}'" if value else ""
    typed = step.join_condition(raised["alias"]) if step is not None else None
    is_join = step is not None and raised["alias"] in {join.alias for join in step.joins}
    problem = Problem(
        "JoinNotUnique",
        f"'{raised['alias']}' has more than one matching row{key}",
        "make the condition match one row only, or "
        + ("summarise the rows with an `aggregation` of the join" if is_join else "remove the duplicates"),
        typed.node.span.place if typed is not None else None,
    )
    return _of_step(problem, step)


_ALLOCATION: dict[str, tuple[str, str]] = {
    "target": ("there is no target for the row with {row}", "check `match` and the rows of the targets"),
    "zero": ("all drivers are zero for the row with {row}", "give at least one target a driver above zero"),
    "null": ("the driver of the target with {target} is NULL", "fill it, or leave the target out with a `selector`"),
    "negative": ("the driver of the target with {target} is {driver}", "a driver must be zero or more"),
}
"""Messages and hints, by the reason that the plan gives."""


def _allocation_failed(raised: dict[str, str], pipeline: Pipeline) -> Problem:
    step = _raising_step(raised, pipeline)
    message, hint = _ALLOCATION[raised["reason"]]
    problem = Problem("AllocationFailed", message.format(**raised), hint)
    path = "arguments.match" if raised["reason"] == "target" else "arguments.driver"
    typed = step.expressions.get(path) if step is not None else None
    if typed is not None:
        problem = replace(problem, place=typed.node.span.place, path=path)
    return _of_step(problem, step)


def _key_of_join(raised: dict[str, str], step: Step, pipeline: Pipeline) -> str | None:
    """Finds a key of a join that is not unique, in a job that makes the join once more."""
    naming = replace(pipeline, names_keys=True)
    working = naming.first()
    for earlier in pipeline.calculation.steps:
        if earlier.seq < step.seq:
            working = naming.after(earlier, working)
    if step.takes_rows:
        error = _failure(naming.taken(step, working))
    else:
        error = _failure(naming.frame(naming.after(step, working), {ROW_ID: STRING}))
    again = (parse_raised(error) if error is not None else None) or {}
    same = all(again.get(name) == raised[name] for name in ("type", "seq", "alias"))
    return again.get("key") if same else None


@dataclass
class _Blame:
    """Finds the step, and in it the expression, that fails."""

    pipeline: Pipeline

    def find(self, at: Step | None) -> Problem | None:
        """Evaluates the columns that the failed job needed. If they do not fail, evaluates all columns: the job may
        have cached its whole frame.

        The first try leaves out columns that an operation without a selector overwrites on all rows not deleted.
        """
        reached = self.pipeline.calculation.steps
        reached = reached[: reached.index(at) + 1] if at in reached else reached
        last = reached[-1] if reached else None
        steps = [step for step in reached if not step.takes_rows]
        stages = [self.pipeline.first()]
        for step in steps:
            stages.append(self.pipeline.after(step, stages[-1]))
        all_columns = [frozenset(schema.columns) for schema in self._schemas(steps)]
        taking = last if last is not None and last.takes_rows else None
        wanted = taking.needs((), all_active=True) if taking else all_columns[-1]
        return self._among(steps, taking, stages, live_columns(steps, wanted, active_only=True)) or self._among(
            steps, taking, stages, all_columns
        )

    def _schemas(self, steps: Sequence[Step]) -> list[WorkingSchema]:
        """The schema before the first step and after each one."""
        return [self.pipeline.calculation.schema, *(step.after for step in steps)]

    def _among(
        self,
        steps: Sequence[Step],
        taking: Step | None,
        stages: Sequence[Working],
        needed: Sequence[frozenset[str]],
    ) -> Problem | None:
        """Returns the problem of the first step that fails when only the needed columns are evaluated; if none does, of
        the step that takes them."""
        frames = [
            self._narrowed(working, schema, columns)
            for working, schema, columns in zip(stages, self._schemas(steps), needed, strict=True)
        ]
        culprit = self._first_failing(frames)
        if culprit == 0:
            return None
        if culprit is None:
            return self._expression(taking, stages[-1], needed[-1]) if taking else None
        step = steps[culprit - 1]
        error = _failure(frames[culprit])
        problem = self._expression(step, stages[culprit - 1], needed[culprit])
        return problem or (_of_step(Problem("EvaluationError", value_reason(error)), step) if error else None)

    def _first_failing(self, frames: Sequence[DataFrame]) -> int | None:
        """Finds the first frame that fails by bisection: if a frame fails, so do those after it."""
        low, high = 0, len(frames) - 1
        if _failure(frames[high]) is None:
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if _failure(frames[middle]) else (middle + 1, high)
        return low

    def _expression(self, step: Step, before: Working, needed: frozenset[str]) -> Problem | None:
        for path, reduced in step.per_expression.items():
            error = _failure(self._result(reduced, before, needed | {DELETED, UPDATED_AT}))
            if error is not None:
                place = step.expressions[path].node.span.place
                text = " ".join(step.expressions[path].node.span.text.split())
                message = f"{_target(step, path)}{value_reason(error, step.expressions[path].node)}"
                return _of_step(Problem("EvaluationError", message, f"in: {text}", place, path=path), step)
        return None

    def _result(self, step: Step, before: Working, needed: frozenset[str]) -> DataFrame:
        if step.takes_rows:
            return self.pipeline.taken(step, before)
        return self._narrowed(self.pipeline.after(step, _unstamped(before)), step.after, needed)

    def _narrowed(self, working: Working, schema: WorkingSchema, columns: frozenset[str]) -> DataFrame:
        return self.pipeline.frame(working, {name: type for name, type in schema.columns.items() if name in columns})


def _unstamped(working: Working) -> Working:
    """The rows with no `_updated_at`, so that a step that sets it evaluates its selector even if it assigns nothing."""
    none = {UPDATED_AT: Constant(TIMESTAMP)}
    settled = [version.rows.settled() for version in working]
    return tuple(Version.of(replace(rows, segment=rows.segment.with_constants(none))) for rows in settled)


def _failure(frame: DataFrame) -> Exception | None:
    """Returns the error of evaluating every cell; None if it succeeds."""
    try:
        frame.write.format("noop").mode("overwrite").save()
    except SPARK_ERRORS as error:
        return error
    return None


def _target(step: Step, path: str) -> str:
    column = step.column_by_path.get(path)
    return f"column '{column}': " if column else ""
