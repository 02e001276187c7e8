"""The events of an execution. Observers get them in order: the recorder of a run, or progress on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tallybook.errors import Problem
from tallybook.model.run import OutputResult
from tallybook.operations.base import Step


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


Event = RunStarted | StepStarted | StepPlanned | OutputWritten | Warned | Failed | Finished
Observer = Callable[[Event], None]
