"""The metadata store: one class that combines all its parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from sqlalchemy.engine import URL

from tallybook.store.changes import ChangeStore
from tallybook.store.periods import Periods
from tallybook.store.results import Results
from tallybook.store.runs import Runs
from tallybook.store.schema import Schema
from tallybook.store.sqlite import refuse_damaged
from tallybook.store.url import store_url
from tallybook.store.workspaces import ONLY_WORKSPACE, WorkspaceRef, Workspaces

_Answer = TypeVar("_Answer")


class Store(Schema, Workspaces, ChangeStore, Periods, Runs, Results):
    """Versions of definitions, the state of projects and periods, and all runs, of one workspace.

    Commands that write use `Store.open(...)`: it checks the tables, and records runs as failed whose process has died.
    `Store.look(...)` changes nothing. `Store.at(...)` only connects, for commands about the store itself.
    """

    @classmethod
    def at(cls, setting: str | None, root: Path, environ: Mapping[str, str] = os.environ) -> Store:
        """Returns the store of the workspace at `root` without checking its tables."""
        return cls(store_url(setting, root, environ))

    @classmethod
    def open(
        cls,
        setting: str | None,
        root: Path,
        environ: Mapping[str, str] = os.environ,
        workspace: WorkspaceRef = ONLY_WORKSPACE,
    ) -> Store:
        """Opens the store of the workspace at `root`; `setting` is its `store` setting."""
        return cls.open_url(store_url(setting, root, environ), workspace)

    @classmethod
    def look(
        cls,
        setting: str | None,
        root: Path,
        environ: Mapping[str, str] = os.environ,
        workspace: WorkspaceRef = ONLY_WORKSPACE,
    ) -> Store | None:
        """Opens the store of the workspace at `root` to read it. Nothing is made or changed, so it may be read-only.
        Returns None if the SQLite file does not exist, or the store has no such workspace."""
        url = store_url(setting, root, environ)
        if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
            refuse_damaged(Path(str(url.database)))
            return None
        store = cls(url, look=True)

        def check() -> bool:
            store.check_current()
            return store.enter_to_look(workspace)

        if store._closed_on_error(check):
            return store
        store.close()
        return None

    @classmethod
    def open_url(cls, url: URL, workspace: WorkspaceRef = ONLY_WORKSPACE) -> Store:
        """Opens the store at a url, and makes or upgrades it if needed."""
        store = cls(url)

        def prepare() -> None:
            store.ensure_current()
            store.enter(workspace)
            store.fail_dead_runs()

        store._closed_on_error(prepare)
        return store

    def _closed_on_error(self, work: Callable[[], _Answer]) -> _Answer:
        try:
            return work()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
