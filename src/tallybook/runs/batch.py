"""Executes a batch of runs in order, several at a time where there is room, and reports how each ended.

A failed run stops the runs that need its results, and no others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tallybook.engine.events import Event, Observer, RunOpened
from tallybook.engine.interrupt import interruptible, was_interrupted
from tallybook.errors import ProblemError, RunError, TallybookError
from tallybook.model.batch import Batch, ItemStatus
from tallybook.runs.batch_order import Item, PlannedRun
from tallybook.runs.batch_plan import BatchPlan, LeftOut
from tallybook.runs.runner import RunResult
from tallybook.store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class BatchRun:
    """How a run of a batch ended."""

    item: Item
    status: ItemStatus
    run_id: str | None = None
    """The run; None if it was refused, skipped or not started."""
    result: RunResult | None = None
    """The results of a completed run."""
    error: TallybookError | None = None
    """Why it failed."""
    because: Item | None = None
    """The run that failed and whose results a skipped run needs."""
    seconds: float = 0.0

    @property
    def rows(self) -> int | None:
        """The rows it wrote to all its outputs; None if it is not completed."""
        return None if self.result is None else sum(output.rows_written or 0 for output in self.result.outputs)

    @property
    def reason(self) -> str | None:
        """Why it is not completed, in a line."""
        if self.because is not None:
            return f"it needs {self.because}, which is not completed"
        if isinstance(self.error, ProblemError) and self.error.problems:
            return f"{self.error.problem.type}: {self.error.problem.message}"
        return self.error.message if self.error is not None else None


@dataclass(frozen=True)
class BatchResult:
    """What a batch did."""

    id: str | None
    """The id to retry it with; None if there was nothing to run."""
    runs: tuple[BatchRun, ...]
    """In the order in which they were planned."""
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_completed(self) -> bool:
        """True if every run is completed."""
        return all(run.status == "completed" for run in self.runs)

    @property
    def problems(self) -> tuple[TallybookError, ...]:
        """Why runs failed, in order."""
        return tuple(run.error for run in self.runs if run.error is not None)


StartRun = Callable[[Item, "Sequence[Observer]"], RunResult]
"""Runs a project for a period with these observers. Raises TallybookError if it fails."""


@dataclass(frozen=True)
class Progress:
    """What a batch tells while it runs. The functions may be called from several threads, one at a time for a run."""

    observers: Callable[[Item], Sequence[Observer]] = lambda _item: ()
    """Makes the observers of a run."""
    started: Callable[[Item, int, int], None] = lambda _item, _number, _count: None
    """Is told the item, its number and the number of all."""
    ended: Callable[[BatchRun], None] = lambda _run: None


@dataclass
class BatchExecution:
    """One execution of a batch."""

    store: Store
    batch: Batch
    plan: BatchPlan
    start: StartRun
    session: Callable[[], SparkSession]
    progress: Progress = field(default_factory=Progress)
    parallel: int = 1
    _ended: dict[Item, BatchRun] = field(default_factory=dict)
    _begun: int = 0

    def execute(self) -> BatchResult:
        """Executes every run of the plan that can be. An interrupt cancels what is running and leaves the rest."""
        if self.parallel == 1:
            for run in self.plan.runs:
                self._end(self._skipped(run) or self._run(run))
        elif self.plan.runs:
            self._execute_parallel()
        results = tuple(self._ended.get(run.item) or BatchRun(run.item, "pending") for run in self.plan.runs)
        return BatchResult(self.batch.id, results, self.plan.left_out, self.plan.warnings)

    def _execute_parallel(self) -> None:
        """Spark's default scheduler gives free cores to later jobs, and a session that is already there keeps its
        scheduler. So threads over one session need no pools of their own."""
        spark = self.session()
        waiting = list(self.plan.runs)
        under_way: dict[Future[BatchRun], PlannedRun] = {}
        with interruptible(spark), ThreadPoolExecutor(self.parallel, "run") as pool:
            while (waiting or under_way) and not (was_interrupted() and not under_way):
                for run in [] if was_interrupted() else self._ready(waiting, self.parallel - len(under_way)):
                    under_way[pool.submit(self._run, run)] = run
                if not under_way:
                    break
                done, _ = wait(under_way, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    del under_way[future]
                    if not isinstance(future.exception(), KeyboardInterrupt | SystemExit):
                        self._end(future.result())

    def _ready(self, waiting: list[PlannedRun], room: int) -> list[PlannedRun]:
        """Removes from `waiting` the first runs that can start, and ends those that must be skipped."""
        chosen: list[PlannedRun] = []
        for run in list(waiting):
            if any(item not in self._ended for item in (*run.needs, *run.after)):
                continue
            skipped = self._skipped(run)
            if skipped is not None:
                waiting.remove(run)
                self._end(skipped)
            elif len(chosen) < room:
                waiting.remove(run)
                chosen.append(run)
        return chosen

    def _skipped(self, run: PlannedRun) -> BatchRun | None:
        """Returns the end of a run that needs one which is not completed; None if it can start."""
        for need in run.needs:
            ended = self._ended[need]
            if ended.status != "completed":
                return BatchRun(run.item, "skipped", because=ended.because or need)
        return None

    def _run(self, planned: PlannedRun) -> BatchRun:
        item = planned.item
        self._begun += 1
        self.progress.started(item, self._begun, len(self.plan.runs))
        opened = _Opened(self.store, self.batch, self._numbers[item])
        begun = time.monotonic()
        try:
            result = self.start(item, (opened, *self.progress.observers(item)))
        except TallybookError as error:
            run_id = opened.run_id or (error.run_id if isinstance(error, RunError) else None)
            return BatchRun(item, "failed", run_id, error=error, seconds=time.monotonic() - begun)
        except BaseException:
            self.store.change_item(self.batch, self._numbers[item], "cancelled", run_id=opened.run_id)
            raise
        return BatchRun(item, "completed", result.run.id, result, seconds=time.monotonic() - begun)

    def _end(self, run: BatchRun) -> None:
        number = self._numbers[run.item]
        self.store.change_item(self.batch, number, run.status, reason=run.reason, run_id=run.run_id)
        self._ended[run.item] = run
        self.progress.ended(run)

    @cached_property
    def _numbers(self) -> Mapping[Item, int]:
        return {Item(item.project_id, item.period): item.number for item in self.batch.items}


_POLL_SECONDS = 0.2
"""How often the main thread looks for a signal: waiting for threads without a limit would delay it."""


@dataclass
class _Opened:
    """An observer that records which run belongs to an item, as soon as there is one."""

    store: Store
    batch: Batch
    number: int
    run_id: str | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunOpened):
            self.run_id = event.run.id
            self.store.change_item(self.batch, self.number, "running", run_id=event.run.id)
