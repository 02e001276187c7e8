"""The result of the checks, which they also share while they run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tallybook.errors import Problem
from tallybook.model.period import Calendar
from tallybook.project.bind import BoundProject
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.load import Definitions


@dataclass(frozen=True)
class CheckResult:
    """The definitions of a workspace, the datasets they may name, each project bound to these, and every problem."""

    definitions: Definitions
    datasets: DatasetVersions
    bound: Mapping[str, BoundProject] = field(default_factory=lambda: MappingProxyType({}))
    problems: tuple[Problem, ...] = ()

    def knows(self, kind: str, id: str, definitions: Mapping[str, object]) -> bool:
        """True if something is defined under an id, or may be in a file that could not be read."""
        return id in definitions or any(unread.may_define(kind, id) for unread in self.definitions.unread)

    @property
    def calendar(self) -> Calendar | None:
        """The workspace's calendar; None when it names one that does not exist."""
        return self.definitions.calendar
