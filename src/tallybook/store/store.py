"""The metadata store: one class, put together from its subjects."""

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

    `Store.open(...)` is the door for every command that writes: tables checked, runs whose process died recognised.
    `Store.look(...)` changes nothing. `Store.at(...)` opens no more than the connection, for the store itself.
    """

    @classmethod
    def at(cls, setting: str | None, root: Path, environ: Mapping[str, str] = os.environ) -> Store:
        """The store of the workspace at `root`, its tables not looked at."""
        return cls(store_url(setting, root, environ))

    @classmethod
    def open(
        cls,
        setting: str | None,
        root: Path,
        environ: Mapping[str, str] = os.environ,
        workspace: WorkspaceRef = ONLY_WORKSPACE,
    ) -> Store:
        """The store of the workspace at `root`, ready for use; `setting` is its `store` setting."""
        return cls.open_url(store_url(setting, root, environ), workspace)

    @classmethod
    def look(
        cls,
        setting: str | None,
        root: Path,
        environ: Mapping[str, str] = os.environ,
        workspace: WorkspaceRef = ONLY_WORKSPACE,
    ) -> Store | None:
        """The store of the workspace at `root`, to look at: it is neither made nor changed, so it may be read-only.
        None when it is an SQLite file that was never made, or does not know the workspace."""
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
        """The store at a url with everything it needs, ready for use."""
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
