"""Documents about many runs: what `run` prints for several projects or periods, and with `--plan-only`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tallybook.documents.base import Document, IfKnown
from tallybook.documents.problems import ErrorDocument, ProblemDocument, Problems
from tallybook.documents.runs import CompletedRuns, RunDocument
from tallybook.model.batch import ItemStatus

if TYPE_CHECKING:
    from tallybook.runs.batch import BatchResult, BatchRun
    from tallybook.runs.batch_order import Item
    from tallybook.runs.batch_plan import BatchPlan, LeftOut


class BatchItemRef(Document):
    """A project and a period."""

    project: str
    """The project."""
    period: str
    """The period."""

    @classmethod
    def of(cls, item: Item) -> BatchItemRef:
        return cls(project=item.project, period=item.period)


class LeftOutDocument(Document):
    """A project, or one period of it, that does not run."""

    project: str
    """The project."""
    period: IfKnown[str] = None
    """The period; left out if it concerns all periods."""
    reason: str
    """Why it does not run."""

    @classmethod
    def of(cls, left_out: LeftOut) -> LeftOutDocument:
        return cls(project=left_out.project, period=left_out.period, reason=left_out.reason)


class BatchItemDocument(BatchItemRef):
    """How one run of a batch ended."""

    status: ItemStatus
    """`completed`, `failed`, `skipped` (it needs one that failed), `cancelled`, or `pending` if it never began."""
    run_id: str | None
    """The run; null if it was refused, skipped or did not begin."""
    rows: int | None
    """The rows it wrote to all its outputs; null if it is not completed."""
    seconds: float
    """How long it took."""
    because: IfKnown[BatchItemRef] = None
    """The run that failed and that a skipped one needs."""
    problems: tuple[ProblemDocument, ...]
    """Why it failed."""

    @classmethod
    def of_run(cls, run: BatchRun) -> BatchItemDocument:
        return cls(
            project=run.item.project,
            period=run.item.period,
            status=run.status,
            run_id=run.run_id,
            rows=run.rows,
            seconds=round(run.seconds, 3),
            because=BatchItemRef.of(run.because) if run.because is not None else None,
            problems=_problems(run),
        )


def _problems(run: BatchRun) -> tuple[ProblemDocument, ...]:
    if run.error is None:
        return ()
    document = ErrorDocument.of(run.error)
    if document.error is None:
        return document.problems
    details = document.error
    empty = {"file": None, "line": None, "column": None, "path": None}
    return (ProblemDocument(type=details.type, message=details.message, hint=details.hint, **empty),)


class BatchDocument(CompletedRuns, Problems):
    """Many runs: how each ended, and the problems of those that failed."""

    batch: str | None
    """The id of the batch, for `run --retry`; null if there was nothing to run."""
    items: tuple[BatchItemDocument, ...]
    """Every run that was asked for, in the order in which they were planned."""
    left_out: tuple[LeftOutDocument, ...]
    """What does not run, and why."""
    warnings: tuple[str, ...]
    """What a user should know of the batch."""

    @classmethod
    def of(cls, result: BatchResult) -> BatchDocument:
        items = tuple(map(BatchItemDocument.of_run, result.runs))
        problems = tuple(problem for item in items for problem in item.problems)
        return cls(
            runs=tuple(RunDocument.of(run.result) for run in result.runs if run.result is not None),
            problems=problems,
            count=len(problems),
            batch=result.id,
            items=items,
            left_out=_left_out(result.left_out),
            warnings=result.warnings,
        )


class PlannedRunDocument(BatchItemRef):
    """A run of a batch, before it begins."""

    number: int
    """Its place in the order."""
    needs: tuple[BatchItemRef, ...]
    """The runs whose results it reads: if one fails, it is skipped."""
    after: tuple[BatchItemRef, ...]
    """Other runs that end before it begins, whether they fail or not."""


class BatchPlanDocument(Document):
    """The order in which many runs would be executed."""

    order: tuple[PlannedRunDocument, ...]
    """The runs, in their order."""
    left_out: tuple[LeftOutDocument, ...]
    """What would not run, and why."""
    warnings: tuple[str, ...]
    """What a user should know of the batch."""

    @classmethod
    def of(cls, plan: BatchPlan) -> BatchPlanDocument:
        order = tuple(
            PlannedRunDocument(
                number=number,
                project=run.item.project,
                period=run.item.period,
                needs=tuple(map(BatchItemRef.of, run.needs)),
                after=tuple(map(BatchItemRef.of, run.after)),
            )
            for number, run in enumerate(plan.runs, start=1)
        )
        return cls(order=order, left_out=_left_out(plan.left_out), warnings=plan.warnings)


def _left_out(left_out: Iterable[LeftOut]) -> tuple[LeftOutDocument, ...]:
    return tuple(map(LeftOutDocument.of, left_out))
