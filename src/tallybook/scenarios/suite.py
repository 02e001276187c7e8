"""Runs scenarios of a workspace in one Spark session, several at a time, and judges them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from tallybook.engine.local import LocalEngine
from tallybook.engine.session import get_session
from tallybook.errors import Problem, ProblemError, TallybookError, report_bug
from tallybook.model.settings import SparkSettings
from tallybook.scenarios.compare import Difference, compare, compare_error
from tallybook.scenarios.load import Case
from tallybook.scenarios.run import Actual, run_case

Status = Literal["passed", "failed", "error"]

QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.constraintPropagation.enabled": "false",
}
"""Settings for a few rows, for which generating code, inferring filters from conditions, or a job for each joined table
takes longer than it saves."""
_QUICK_JVM = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC "
    "-XX:NewRatio=1"
}
"""Java options for a short process: compile fast rather than well, with room for much compiled code and many
short-lived objects."""

_THREADS = 4
"""More threads would only wait for each other, because one Python process builds all plans."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a scenario: passed, failed (an expectation does not hold) or error (it could not run)."""

    case: Case
    status: Status
    problems: tuple[Problem, ...] = ()
    differences: tuple[Difference, ...] = ()
    seconds: float = 0.0
    actual: Actual | None = None

    @property
    def can_be_recorded(self) -> bool:
        """True if the scenario ran and does not say yet what it expects."""
        return self.actual is not None and self.case.body.expect is None


def start_engine(settings: SparkSettings | None, *, warm: bool = False) -> LocalEngine:
    """Returns the active session, else starts one for a few rows; settings of the workspace win.

    With `warm`, it is one on the warm session, if that runs.
    """
    remote = settings is not None and settings.remote
    return LocalEngine(get_session(settings, conf=QUICK if remote else QUICK | _QUICK_JVM, warm=warm))


def judge_all(cases: Sequence[Case], engine: LocalEngine, threads: int | None = None) -> Iterator[Outcome]:
    """Yields the outcome of each scenario in order, as soon as it is known."""
    with ThreadPoolExecutor(threads or min(_THREADS, os.cpu_count() or 1)) as pool:
        try:
            yield from pool.map(lambda case: judge(case, engine), cases)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def judge(case: Case, engine: LocalEngine) -> Outcome:
    """Runs a scenario and compares the results with its expectations. Reports a bug of Tallybook as a problem of it."""
    begun = time.monotonic()
    try:
        outcome = _judged(case, engine)
    except TallybookError:
        raise
    except Exception as error:
        message, log = report_bug(error)
        outcome = Outcome(
            case, "error", (case.part.problem((), "InternalError", message, f"the traceback is in {log}"),)
        )
    return replace(outcome, seconds=time.monotonic() - begun)


def _judged(case: Case, engine: LocalEngine) -> Outcome:
    if case.problems:
        return Outcome(case, "error", case.problems)
    expected = case.body.expect
    actual: Actual | None = None
    problems: tuple[Problem, ...] = ()
    try:
        actual = run_case(case, engine)
    except ProblemError as error:
        problems = error.problems
    if expected is not None and expected.error is not None:
        unmet = tuple(compare_error(expected.error, problems))
        return Outcome(case, "failed" if unmet else "passed", problems if unmet else (), unmet)
    if actual is None:
        return Outcome(case, "error", problems)
    if expected is None:
        hint = "run `tallybook test --record` to record the results, then review them"
        problem = case.part.problem((), "InvalidArguments", "the scenario does not say what it expects", hint)
        return Outcome(case, "error", (problem,), actual=actual)
    differences = tuple(compare(case, actual))
    return Outcome(case, "failed" if differences else "passed", (), differences, actual=actual)
