"""Documents about runs: `run`, `runs`, `replay`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field

from tallybook.documents.base import Document, json_value
from tallybook.model.run import CheckResult, OperationResult, OutputResult, Run, RunEvent, Snapshot

if TYPE_CHECKING:
    from tallybook.runs.history import RunDetails, RunList
    from tallybook.runs.replay import CheckComparison, OutputComparison, Replay
    from tallybook.runs.runner import RunResult


def _rows(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    return tuple({name: json_value(value) for name, value in row.items()} for row in rows)


_Rows = Annotated[tuple[dict[str, Any], ...], BeforeValidator(_rows)]


class RunDocument(Document):
    """A completed run."""

    run: Run
    """The run itself."""
    operations: tuple[OperationResult, ...]
    """What each operation did."""
    outputs: tuple[OutputResult, ...]
    """What each output wrote."""
    checks: tuple[CheckResult, ...]
    """What each check found."""
    warnings: tuple[str, ...]
    """What a user should know."""

    @classmethod
    def of(cls, result: RunResult) -> RunDocument:
        return cls(
            run=result.run,
            operations=tuple(result.operations),
            outputs=tuple(result.outputs),
            checks=tuple(result.checks),
            warnings=tuple(result.warnings),
        )


class CompletedRuns(Document):
    """The completed runs of one command."""

    runs: tuple[RunDocument, ...]
    """The runs, in their order."""


class RunListDocument(Document):
    """Runs, newest first."""

    runs: tuple[Run, ...]
    """The runs."""
    dead: tuple[str, ...] = Field((), exclude_if=lambda dead: not dead)
    """The ids of listed runs that are queued or running though their process is gone; left out where there are none.
    The next command that writes to the store records them as failed."""
    stale: dict[str, tuple[str, ...]] = Field({}, exclude_if=lambda stale: not stale)
    """What was written anew since, in words, by the id of the listed run that read it before; left out where there is
    nothing."""
    rows: dict[str, int] = Field({}, exclude_if=lambda rows: not rows)
    """The rows that all outputs of a run wrote, by its id; a run that finished no output is left out, and the whole key
    where there are none."""
    more: int = Field(0, exclude_if=lambda more: not more)
    """The number of older runs that meet the conditions and are not listed, because of `--limit`; left out where there
    are none."""

    @classmethod
    def of(cls, listed: RunList) -> RunListDocument:
        dead = tuple(run.id for run in listed.runs if run.id in listed.dead)
        return cls(runs=listed.runs, dead=dead, stale=dict(listed.stale), rows=dict(listed.rows), more=listed.more)


class NoSnapshot(Document):
    """An empty object: the run ended before its snapshot was taken."""


class RunDetailsDocument(Document):
    """One run in full."""

    run: Run
    """The run itself."""
    operations: tuple[OperationResult, ...]
    """What each operation did."""
    outputs: tuple[OutputResult, ...]
    """What each output wrote, or was about to write."""
    checks: tuple[CheckResult, ...]
    """What each check found."""
    events: tuple[RunEvent, ...]
    """What happened to the run, in the order of time."""
    snapshot: Snapshot | NoSnapshot
    """Everything needed to execute the run again."""
    dead: bool = Field(False, exclude_if=lambda dead: not dead)
    """True if the run is queued or running though its process is gone; left out otherwise."""
    stale: tuple[str, ...] = Field((), exclude_if=lambda stale: not stale)
    """What was written anew since the run read it, in words; left out where there is nothing."""

    @classmethod
    def of(cls, details: RunDetails) -> RunDetailsDocument:
        return cls(
            run=details.run,
            operations=details.operations,
            outputs=details.outputs,
            checks=details.checks,
            events=details.events,
            snapshot=details.snapshot or NoSnapshot(),
            dead=details.is_dead,
            stale=details.stale,
        )


class ComparedOutput(Document):
    """One output: what the run wrote and what the replay did."""

    seq: int
    """The number of the output operation."""
    location: str
    """Where the run wrote."""
    rows: int
    """The number of rows that the replay wrote."""
    identical: bool | None
    """True if every cell is the same; null if they could not be compared."""
    unknown: str | None
    """Why they could not be compared."""
    only_then: _Rows
    """The first rows that only the run wrote."""
    only_now: _Rows
    """The first rows that only the replay wrote."""

    @classmethod
    def of(cls, output: OutputComparison) -> ComparedOutput:
        return cls.model_validate(output, from_attributes=True)


class ComparedCheck(Document):
    """One check: what it found in the run and in the replay."""

    seq: int
    """The number of the check."""
    identical: bool
    """True if the same number was tested, and the same number failed."""
    then: CheckResult | None
    """What it found in the run; null if the run has no result of it."""
    now: CheckResult
    """What it found in the replay."""

    @classmethod
    def of(cls, check: CheckComparison) -> ComparedCheck:
        return cls(seq=check.now.seq, identical=check.identical, then=check.then, now=check.now)


class ReplayDocument(Document):
    """A run executed again, compared with what it wrote."""

    run: str
    """The id of the run."""
    identical: bool | None
    """True if every output and check is the same, false if one differs; null if nothing differs but something could not
    be compared."""
    changed_inputs: tuple[str, ...]
    """The inputs that changed since the run."""
    outputs: tuple[ComparedOutput, ...]
    """The outputs, each compared."""
    checks: tuple[ComparedCheck, ...]
    """The checks, each compared."""

    @classmethod
    def of(cls, replay: Replay) -> ReplayDocument:
        return cls(
            run=replay.run.id,
            identical=replay.identical,
            changed_inputs=tuple(replay.changed_inputs),
            outputs=tuple(map(ComparedOutput.of, replay.outputs)),
            checks=tuple(map(ComparedCheck.of, replay.checks)),
        )
