"""The order of many runs: which runs a run needs, and which must only come before it.

Pure functions of what projects read and register. They open no store and start no Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import islice

from tallybook.errors import Problem, RunError, UsageError, ValidationError
from tallybook.model.period import Calendar, Period
from tallybook.model.relative_period import RelativePeriod, RunPeriod
from tallybook.operations.flow import publications
from tallybook.project.bind import BoundProject
from tallybook.project.load import ProjectEntry
from tallybook.project.needs import datasets_named

RANGE = ".."


@dataclass(frozen=True)
class Item:
    """A project and a period to run it for."""

    project: str
    period: str

    def __str__(self) -> str:
        return f"{self.project} {self.period}"


@dataclass(frozen=True)
class Read:
    """A dataset that a project reads."""

    dataset: str
    by_period: bool
    """True if it reads the rows of certain periods; False if it reads the newest version."""
    period: RelativePeriod | None = None


@dataclass(frozen=True)
class ProjectFlow:
    """What a project reads, what it registers, and whether it runs in the sandbox."""

    reads: frozenset[Read] = frozenset()
    registers: frozenset[str] = frozenset()
    sandbox: bool = False

    @classmethod
    def of(cls, entry: ProjectEntry, bound: BoundProject, *, sandbox: bool) -> ProjectFlow:
        """Returns the flow of a project. A dataset whose version is written in the project does not change. Of a
        dataset that could not be found only the name is known."""
        steps = (source for step in bound.steps for source in step.sources)
        sources = [*steps, *([bound.input] if bound.input is not None else [])]
        reads = {
            Read(source.dataset.id, source.table.temporal_mode == "period", source.period)
            for source in sources
            if not source.pinned
        }
        missing = datasets_named(entry) - {source.dataset.id for source in sources}
        registers = (output.register_as for output in publications(bound.steps))
        return cls(
            frozenset(reads | {Read(id, by_period=True) for id in missing}),
            frozenset(name for name in registers if name is not None),
            sandbox,
        )


@dataclass(frozen=True)
class PlannedRun:
    """A run of a batch, with the runs that come before it."""

    item: Item
    needs: tuple[Item, ...] = ()
    """The runs whose results it reads. If one of them fails, it is skipped."""
    after: tuple[Item, ...] = ()
    """Other runs that must have ended: it writes what they read or write."""


def chosen_periods(written: Sequence[str], calendar: Calendar) -> tuple[Period, ...]:
    """Returns the periods that are named, alone or as ranges such as `2026-01..2026-12`, each once and in order: by
    their last day, parts before the whole."""
    periods = dict.fromkeys(period for text in written for period in _one_or_range(text, calendar))
    return tuple(sorted(periods, key=lambda period: (period.end_date, period.days)))


def _one_or_range(text: str, calendar: Calendar) -> Iterable[Period]:
    first_name, dots, last_name = text.partition(RANGE)
    if not dots:
        return (calendar.period(text),)
    if not first_name or not last_name:
        raise UsageError(f"'{text}' is not a range of periods", "write the first and the last, as in 2026-01..2026-12")
    first, last = calendar.period(first_name), calendar.period(last_name)
    if first.level != last.level:
        raise UsageError(
            f"the range '{text}' begins with a {first.level} and ends with a {last.level}",
            f"use two of one level: both a {first.level}, or both a {last.level}",
        )
    if last.start_date < first.start_date:
        raise UsageError(f"the range '{text}' ends before it begins", f"write {last_name}{RANGE}{first_name}")
    between = calendar.between(first.level, first.start_date, last.end_date)
    return tuple(p for p in between if first.start_date <= p.start_date and p.end_date <= last.end_date)


def order_runs(
    flows: Mapping[str, ProjectFlow],
    periods: Sequence[Period],
    calendar: Calendar,
    only: Collection[Item] | None = None,
) -> tuple[PlannedRun, ...]:
    """Returns a run of every project for every period, or `only` some of them, in an order in which each comes after
    those it needs: period by period, and in the order of `flows` where that is free. Raises ValidationError if they
    need each other in a circle."""
    items = [Item(project, period.identifier) for period in periods for project in flows]
    items = items if only is None else [item for item in items if item in only]
    edges = _Edges(flows, periods, calendar, frozenset(items))
    rank = {item: number for number, item in enumerate(items)}
    needs = {item: sorted(edges.needs(item), key=rank.__getitem__) for item in items}
    after: dict[Item, set[Item]] = {item: set(edges.before(item)) for item in items}
    for item in items:
        for later in edges.writes_later(item):
            after[later].add(item)
    planned = [
        PlannedRun(item, tuple(needs[item]), tuple(sorted(after[item] - set(needs[item]), key=rank.__getitem__)))
        for item in items
    ]
    return _sorted({run.item: run for run in planned}, rank)


class _Edges:
    """Finds the runs that must come before a run."""

    def __init__(
        self,
        flows: Mapping[str, ProjectFlow],
        periods: Sequence[Period],
        calendar: Calendar,
        items: Collection[Item],
    ) -> None:
        self._flows = flows
        self._items = items
        self._calendar = calendar
        self._periods = {period.identifier: period for period in periods}
        self._turn = {period.identifier: turn for turn, period in enumerate(periods)}
        self._names = [period.identifier for period in periods]
        levels = {period.level for period in periods}
        self._others = {level: [period for period in periods if period.level != level] for level in levels}
        self._makers: dict[str, list[str]] = {}
        for name, flow in flows.items():
            for dataset in flow.registers:
                self._makers.setdefault(dataset, []).append(name)
        self._related: dict[tuple[str, RelativePeriod | None], tuple[str, ...]] = {}

    def needs(self, item: Item) -> set[Item]:
        """Returns the runs whose rows a run reads."""
        found: set[Item] = set()
        for read in self._flows[item.project].reads:
            names = self._read_for(item.period, read.period) if read.by_period else (item.period,)
            found |= {Item(maker, name) for maker in self._makers_for(item, read) for name in names}
        return {other for other in found if other in self._items and other != item}

    def before(self, item: Item) -> Iterator[Item]:
        """Yields the run of the same project for the period before: both may write to the same destination."""
        earlier = (Item(item.project, name) for name in reversed(self._names[: self._turn[item.period]]))
        yield from islice((other for other in earlier if other in self._items), 1)

    def writes_later(self, item: Item) -> Iterator[Item]:
        """Yields the next runs that replace the newest version of what a run reads."""
        newest = (read for read in self._flows[item.project].reads if not read.by_period)
        makers = {maker for read in newest for maker in self._makers_for(item, read)} - {item.project}
        for maker in makers:
            later = (Item(maker, name) for name in self._names[self._turn[item.period] + 1 :])
            yield from islice((other for other in later if other in self._items), 1)

    def _makers_for(self, item: Item, read: Read) -> list[str]:
        """Returns the projects whose rows a project sees: rows in the sandbox are for drafts only."""
        flows, sees_sandbox = self._flows, self._flows[item.project].sandbox
        return [name for name in self._makers.get(read.dataset, ()) if sees_sandbox or not flows[name].sandbox]

    def _read_for(self, period: str, relative: RelativePeriod | None) -> tuple[str, ...]:
        """Returns the periods of the batch whose rows are read for a period: the ones meant, their parts, and those
        around them."""
        if (period, relative) not in self._related:
            try:
                wanted = RunPeriod(self._periods[period], self._calendar).relative(relative)
            except RunError:  # the run itself reports it
                wanted = ()
            self._related[period, relative] = tuple(name for one in wanted for name in self._overlapping(one))
        return self._related[period, relative]

    def _overlapping(self, period: Period) -> Iterator[str]:
        if period.identifier in self._periods:
            yield period.identifier
        for other in self._others.get(period.level, ()):
            if other.contains(period) or period.contains(other):
                yield other.identifier


def _sorted(planned: Mapping[Item, PlannedRun], rank: Mapping[Item, int]) -> tuple[PlannedRun, ...]:
    """Sorts runs so that each comes after those before it, and otherwise by rank."""
    followers: dict[Item, list[Item]] = {item: [] for item in planned}
    waiting = dict.fromkeys(planned, 0)
    for item, run in planned.items():
        for before in (*run.needs, *run.after):
            followers[before].append(item)
            waiting[item] += 1
    ready = [rank[item] for item, count in waiting.items() if count == 0]
    heapify(ready)
    by_rank = list(rank)
    done: list[PlannedRun] = []
    while ready:
        item = by_rank[heappop(ready)]
        done.append(planned[item])
        for follower in followers[item]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heappush(ready, rank[follower])
    if len(done) < len(planned):
        raise ValidationError([_circle(planned, {run.item for run in done})])
    return tuple(done)


def _circle(planned: Mapping[Item, PlannedRun], done: set[Item]) -> Problem:
    """Returns the problem of runs that need each other in a circle, with one circle written out."""
    item = next(item for item in planned if item not in done)
    path: list[Item] = []
    while item not in path:
        path.append(item)
        run = planned[item]
        item = next(before for before in (*run.needs, *run.after) if before not in done)
    circle = [*path[path.index(item) :], item]
    return Problem(
        "ProjectNotRunnable",
        f"these runs need each other in a circle: {' needs '.join(map(str, circle))}",
        "remove one of these reads: two projects cannot read each other's results for the same period",
        project=item.project,
    )


def with_followers(planned: Sequence[PlannedRun], chosen: Collection[Item]) -> frozenset[Item]:
    """Returns the items that are chosen and those that need one of them, directly or through others."""
    kept: set[Item] = set()
    for run in planned:
        if run.item in chosen or not kept.isdisjoint(run.needs):
            kept.add(run.item)
    return frozenset(kept)
