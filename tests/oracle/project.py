"""A whole project: the input rows, then each operation in ascending seq."""

from __future__ import annotations

from dataclasses import dataclass, field

from tallybook.model.dataset import DatasetRef
from tallybook.operations.aggregate import Aggregate
from tallybook.operations.allocate import Allocate
from tallybook.operations.append import Append
from tallybook.operations.check import Check
from tallybook.operations.delete import Delete
from tallybook.operations.output import Output
from tallybook.operations.update import Update
from tallybook.project.model import Project

from . import operations
from .allocation import allocate
from .operations import Tested, Written
from .readings import all_needed
from .tables import Run, Working
from .values import FailedError, RefusedError


@dataclass(frozen=True)
class Result:
    """Where a project ends: the working dataset, what each output wrote, by seq, and what checks found."""

    working: Working
    outputs: dict[int, Written]
    checks: dict[int, Tested] = field(default_factory=dict)
    """What each check found, by seq."""
    stopped: bool = False
    """True if a check failed that must not."""


def interpret(project: Project, run: Run) -> Result:
    """Runs the project. RefusedError when it is wrong, FailedError when a row makes it fail.

    A wrong operation is wrong whatever the rows are, so the project is first run on no rows at all.
    """
    _run(project, Run(**{**vars(run), "tables": {name: [] for name in run.tables}}))
    result = _run(project, run)
    if result.stopped:
        raise FailedError("CheckFailed")
    return result


def _run(project: Project, run: Run) -> Result:
    numbers = [operation.seq for operation in project.operations]
    if len(set(numbers)) < len(numbers):
        raise RefusedError("DuplicateSeq")
    dataset = run.dataset(
        DatasetRef(dataset_id=project.input_dataset_id, dataset_version=project.input_dataset_version)
    )
    table = dataset.main_table
    working = Working(dataset, table.business_types, dict(table.system_types), run.load(dataset, table))
    written: dict[int, Written] = {}
    checks: dict[int, Tested] = {}
    stopped = False
    for operation in sorted(project.operations, key=lambda each: each.seq):
        match operation:
            case Update():
                working = operations.update(operation, working, run)
            case Allocate():
                working = allocate(operation, working, run)
            case Aggregate():
                working = operations.aggregate(operation, working, run)
            case Append():
                working = operations.append(operation, working, run)
            case Delete():
                working = operations.delete(operation, working, run)
            case Check():
                checks[operation.seq] = operations.check(operation, working, run)
                stopped |= operation.arguments.on_failure == "fail" and checks[operation.seq].failed > 0
            case Output():
                written[operation.seq] = operations.output(operation, working, run)
    for row in working.rows:
        all_needed(row.values())
    return Result(working, written, checks, stopped)
