"""The events of a run. Observers get them in order: the recorder of a run, progress on a terminal, a file of events.

`RunRefused` comes alone. Otherwise `RunOpened` is the first event and `RunEnded` the last. Those in between are the
events of the execution; scenarios and replays have only those.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tallybook.errors import Problem, TallybookError
from tallybook.model.run import CheckResult, OutputResult, Run, RunStatus
from tallybook.operations.base import Step


@dataclass(frozen=True)
class RunRefused:
    """No run was recorded, because of an error."""

    project_id: str
    period: str
    error: TallybookError


@dataclass(frozen=True)
class RunOpened:
    """A run is recorded. It has read no rows yet."""

    run: Run


@dataclass(frozen=True)
class RunEnded:
    """A run is completed, failed or cancelled."""

    run: Run
    status: RunStatus
    error: BaseException | None = None
    """What ended it, if it is not completed."""


@dataclass(frozen=True)
class RunStarted:
    """The steps are about to be executed."""

    steps: tuple[Step, ...]


@dataclass(frozen=True)
class StepStarted:
    """A step is being planned, or an output computed and written."""

    step: Step


@dataclass(frozen=True)
class StepPlanned:
    """A step is part of the Spark plan. Its rows are computed with the first output that needs them."""

    step: Step


@dataclass(frozen=True)
class CheckTested:
    """A check is computed."""

    step: Step
    result: CheckResult


@dataclass(frozen=True)
class OutputWritten:
    """The rows of an output are computed and published."""

    step: Step
    result: OutputResult | None
    """None if nothing is written, as in a scenario."""
    seconds: float
    """The time that the output took, with all steps that had to be computed for it."""


@dataclass(frozen=True)
class Warned:
    """Something that a user should know and that does not stop the run."""

    message: str


@dataclass(frozen=True)
class Failed:
    """The execution ended with problems, or was interrupted and has none."""

    step: Step | None
    """The step to blame, or the one that was under way."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Finished:
    """Every step is done."""


Execution = RunStarted | StepStarted | StepPlanned | CheckTested | OutputWritten | Warned | Failed | Finished
Event = RunRefused | RunOpened | Execution | RunEnded
Observer = Callable[[Event], None]
