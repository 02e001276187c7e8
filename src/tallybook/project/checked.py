"""What the checks share, and leave behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tallybook.errors import Problem
from tallybook.model.period import GREGORIAN, Calendar
from tallybook.project.bind import BoundProject
from tallybook.project.catalog import Catalog
from tallybook.project.load import Definitions


@dataclass
class Checked:
    """What the checks share and leave behind: the catalog, and each project bound to it."""

    definitions: Definitions
    catalog: Catalog
    bound: dict[str, BoundProject] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def knows(self, id: str, definitions: Mapping[str, object]) -> bool:
        """Whether something is defined under an id, readable or not."""
        return id in definitions or id in self.definitions.unreadable

    @property
    def calendar(self) -> Calendar | None:
        """The workspace's calendar; None when it names one that does not exist."""
        settings = self.definitions.settings
        if settings is None or settings.calendar is None or settings.calendar == GREGORIAN.id:
            return GREGORIAN
        entry = self.definitions.calendars.get(settings.calendar)
        return entry.entity if entry else None
