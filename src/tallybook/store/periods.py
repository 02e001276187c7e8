"""The status of periods: open, closed, locked, in this order only."""

from __future__ import annotations

import sqlalchemy as sa

from tallybook.model.period import PeriodStatus
from tallybook.project.lifecycle import PERIOD_MOVES, check_move
from tallybook.store.active import ActiveRuns, refuse_while_active
from tallybook.store.database import now
from tallybook.store.tables import PERIODS, RUNS


class Periods(ActiveRuns):
    """Records changes of status only. Any other period has the status that its calendar gives it."""

    def period_status(self, calendar_id: str, identifier: str, initial: PeriodStatus = "open") -> PeriodStatus:
        """Returns the status of a period; `initial` is the one that its calendar gives it."""
        with self._read() as connection:
            return period_status(connection, self.workspace_id, calendar_id, identifier, initial)

    def period_statuses(self, calendar_id: str) -> dict[str, PeriodStatus]:
        """Returns the status of each period of a calendar that was closed or locked."""
        query = sa.select(PERIODS.c.identifier, PERIODS.c.status).where(
            PERIODS.c.workspace_id == self.workspace_id, PERIODS.c.calendar_id == calendar_id
        )
        with self._read() as connection:
            return {row.identifier: row.status for row in connection.execute(query.order_by(PERIODS.c.identifier))}

    def set_period_status(
        self, calendar_id: str, identifier: str, status: PeriodStatus, initial: PeriodStatus = "open"
    ) -> PeriodStatus:
        """Closes or locks a period, for good. Refused while a run of the period is active."""
        self.fail_dead_runs()
        with self._write() as connection:
            old = period_status(connection, self.workspace_id, calendar_id, identifier, initial)
            check_move(f"period {identifier}", PERIOD_MOVES, old, status)
            of_period = (RUNS.c.calendar_id == calendar_id, RUNS.c.period == identifier)
            refuse_while_active(
                connection, self.workspace_id, f"period {identifier} cannot become {status}", *of_period
            )
            values = {"status": status, "changed_at": now()}
            key = {"workspace_id": self.workspace_id, "calendar_id": calendar_id, "identifier": identifier}
            change = sa.update(PERIODS).filter_by(**key)
            if connection.execute(change.values(values)).rowcount == 0:
                connection.execute(sa.insert(PERIODS).values(**key, **values))
            return status


def period_status(
    connection: sa.Connection, workspace_id: str, calendar_id: str, identifier: str, initial: PeriodStatus
) -> PeriodStatus:
    """Returns the status of a period, in an open transaction."""
    return changed_status(connection, workspace_id, calendar_id, identifier) or initial


def changed_status(
    connection: sa.Connection, workspace_id: str, calendar_id: str, identifier: str
) -> PeriodStatus | None:
    """Returns the status that was set for a period; None if none was."""
    key = {"workspace_id": workspace_id, "calendar_id": calendar_id, "identifier": identifier}
    query = sa.select(PERIODS.c.status).filter_by(**key)
    status: PeriodStatus | None = connection.execute(query).scalar()
    return status
