"""Runs one scenario: the project's own steps over the given rows, outputs captured instead of written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tallybook.engine.collect import Values
from tallybook.engine.local import LocalEngine
from tallybook.engine.plan import RunContext
from tallybook.errors import ValidationError
from tallybook.expressions.parameters import parameter_values
from tallybook.model.columns import DELETED, OPERATION_SEQ, SYSTEM_COLUMNS, ColumnType
from tallybook.model.run import CheckResult
from tallybook.operations.base import Step
from tallybook.operations.publication import Publication
from tallybook.scenarios.load import Case
from tallybook.scenarios.scenario_inputs import ScenarioInputs


@dataclass(frozen=True)
class Captured:
    """Result rows, each with the operation that made it; `seq` is the output's, None for the working dataset."""

    title: str
    seq: int | None
    columns: Mapping[str, ColumnType]
    rows: Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class Actual:
    """The results of a scenario: rows of its outputs and of the working dataset."""

    outputs: Mapping[int, Captured]
    working: Captured | None
    """None if the scenario does not look at it. A run does not compute it either."""
    checks: Mapping[int, CheckResult] = field(default_factory=dict)
    """The results of checks, by seq."""

    @property
    def result(self) -> Captured:
        """The last output; without one, the rows that are not deleted."""
        if self.outputs:
            return self.outputs[max(self.outputs)]
        assert self.working is not None, "without outputs the working dataset is the result"
        active = [row for row in self.working.rows if not row[DELETED]]
        return replace(self.working, title="the rows not deleted", rows=active)


def run_case(case: Case, engine: LocalEngine) -> Actual:
    """Runs a scenario without problems of its own; raises the problems that stop its project."""
    if case.refused:
        raise ValidationError(case.refused)
    bound, period, body = case.bound, case.period, case.body
    assert bound is not None and period is not None
    moment = body.run_timestamp
    data = ScenarioInputs(case, period)
    parameters = parameter_values(bound.head.parameters, body.parameters)
    epoch_ms = int(moment.timestamp() * 1000)
    as_of = body.as_of or period.start_date
    context = RunContext("scenario", period, as_of, moment, epoch_ms, parameters, data.calendar)
    steps = tuple(_with_origin(step) for step in bound.steps)
    needed = not case.outputs or (body.expect is not None and body.expect.working is not None)
    results = engine.evaluate(replace(bound, steps=steps), context, data.tables(), data.periods(), needs_working=needed)
    outputs = {output.seq: _of_output(output, results.outputs[output.seq]) for output in case.outputs}
    final = steps[-1].after.columns
    working = Captured("the working dataset", None, final, _rows(final, results.working)) if needed else None
    return Actual(outputs, working, {result.seq: result for result in results.checks})


def _with_origin(step: Step) -> Step:
    """Adds the operation that made a row to the columns of outputs, so that a difference can name its cause."""
    output = step.publishes
    return step if output is None else replace(step, publishes=replace(output, columns=_columns(output)))


def _columns(output: Publication) -> dict[str, ColumnType]:
    return {**output.columns, OPERATION_SEQ: SYSTEM_COLUMNS[OPERATION_SEQ]}


def _of_output(output: Publication, rows: Sequence[Values]) -> Captured:
    title = f"output {output.seq} '{output.name}'"
    return Captured(title, output.seq, output.columns, _rows(_columns(output), rows))


def _rows(columns: Iterable[str], rows: Sequence[Values]) -> list[dict[str, object]]:
    names = tuple(columns)
    return [dict(zip(names, row, strict=True)) for row in rows]
