"""Computes checks: how many rows or groups were tested, how many failed, and a few of those.

The checks between two outputs are counted in one job, and those of the same rows in one pass over the rows. It is a job
of its own, immediately before the second output, and not a part of the job that writes it. Spark can count rows that
pass through a job (`DataFrame.observe`), but a job computes a row again if a task is retried, if a sort samples its
rows or if two parts of the plan read them, and leaves out rows that a later filter or an empty join side makes
unnecessary. A count would then be wrong without notice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tallybook.engine.collect import collected
from tallybook.engine.pipeline import Pipeline, Working
from tallybook.errors import Problem
from tallybook.expressions.compile import column_named
from tallybook.expressions.show import show
from tallybook.model.run import CheckResult
from tallybook.model.written import plain
from tallybook.operations.assertion import PASSED
from tallybook.operations.base import Step

EXAMPLES = 5
"""The most failures that are shown."""


@dataclass(frozen=True)
class PlannedCheck:
    """A step that tests, and the rows or groups that it tests."""

    step: Step
    rows: DataFrame
    working: Working
    """The working dataset at its place."""

    @property
    def pass_key(self) -> object:
        """Equal for checks that one pass over the rows can count: those of rows, over the same frames."""
        if self.step.tests is None or self.step.tests.unit != "row" or self.step.joined:
            return id(self)
        return tuple((id(version.rows.frame), id(version.rows.waiting)) for version in self.working)


def count_all(pipeline: Pipeline, checks: Sequence[PlannedCheck]) -> list[tuple[int, int]]:
    """Returns for each check how many rows or groups are tested, and how many of them fail. That is one job."""
    passes: dict[object, list[int]] = {}
    for index, check in enumerate(checks):
        passes.setdefault(check.pass_key, []).append(index)
    counts = [_counts(pipeline, {index: checks[index] for index in indices}) for indices in passes.values()]
    rows = reduce(DataFrame.union, counts).collect()
    by_index = {count["index"]: (count["tested"], count["failed"]) for row in rows for count in row["counts"]}
    return [by_index[index] for index in range(len(checks))]


def _counts(pipeline: Pipeline, checks: Mapping[int, PlannedCheck]) -> DataFrame:
    """Returns one row with the counts of checks that share a pass, each with its index."""
    if len(checks) == 1:
        (check,) = checks.values()
        frame, verdicts = check.rows, [F.col(_PASSED)]
    else:
        frame = pipeline.verdicts([check.step for check in checks.values()], next(iter(checks.values())).working)
        verdicts = [F.col(name) for name in frame.columns]
    counts = [
        F.struct(F.lit(index).alias("index"), F.count(verdict).alias("tested"), F.count_if(~verdict).alias("failed"))
        for index, verdict in zip(checks, verdicts, strict=True)
    ]
    return frame.agg(F.array(*counts).alias("counts"))


_PASSED = f"`{PASSED}`"


def result_of(check: PlannedCheck, tested: int, failed: int) -> CheckResult:
    """Returns the result of a check. If something failed, a job finds the first ones, in the order of what is shown."""
    test = check.step.tests
    assert test is not None, "only steps that test are planned as checks"
    examples: list[dict[str, object]] = []
    if failed:
        columns = [column_named(name) for name in test.columns.values()]
        first = check.rows.filter(~F.col(_PASSED)).select(*columns).orderBy(*columns).limit(EXAMPLES)
        examples = [dict(zip(test.shown, map(plain, values), strict=True)) for values in collected(first)]
    return CheckResult(
        seq=check.step.seq,
        name=check.step.name,
        condition=show(test.condition.node),
        unit=test.unit,
        tested=tested,
        failed=failed,
        on_failure=test.on_failure,
        examples=tuple(examples),
    )


def problem_of(step: Step, result: CheckResult) -> Problem:
    """Returns the problem of a check that failed and must not."""
    assert step.tests is not None
    return step.attribute(
        Problem(
            "CheckFailed",
            f"{result.summary}: {result.condition}; {result.shown_examples}",
            "correct the rows or the rule; `on_failure: warn` lets the run go on",
            step.tests.condition.node.span.place,
            path="arguments.assert",
        )
    )
