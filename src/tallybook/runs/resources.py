"""Opens the store, the Spark session and the folders of a workspace as its settings say."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tallybook.errors import Problem, ValidationError
from tallybook.model.settings import SparkSettings
from tallybook.private import close_folder, make_private_folder
from tallybook.project.files import SETTINGS_FILE
from tallybook.project.load import Definitions, find_root
from tallybook.project.recorded import content_hash
from tallybook.project.versions import bodies
from tallybook.store.database import URL_VARIABLE, store_url
from tallybook.store.store import Store
from tallybook.store.workspaces import WorkspaceRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from sqlalchemy.engine import URL

PRIVATE = ".tallybook"
"""The folder of a workspace that belongs to the product."""


@dataclass(frozen=True)
class WorkspaceResources:
    """The store, the Spark session and the folders of one workspace."""

    definitions: Definitions
    warm: bool = False
    """Whether the warm session is used, if it runs."""

    @property
    def root(self) -> Path:
        return self.definitions.root

    @property
    def sandbox(self) -> Path:
        """The folder for outputs of drafts. Each environment has a folder of its own in it, which no project has: their
        ids do not begin with `@`."""
        settings, environment = self.definitions.settings, self.definitions.environment
        folder = self.root / (settings.sandbox if settings else f"{PRIVATE}/sandbox")
        return folder if environment is None else folder / f"@{environment}"

    @property
    def scratch(self) -> Path:
        """The folder for outputs of replays."""
        return self.root / PRIVATE / "scratch"

    @property
    def spark_settings(self) -> SparkSettings:
        settings = self.definitions.settings
        return settings.spark if settings else SparkSettings()

    def session(self) -> SparkSession:
        """Returns the active Spark session, else starts one as the settings say."""
        from tallybook.engine.session import get_session

        settings = self.definitions.settings
        return get_session(
            self.spark_settings,
            log_dir=self._log_folder(),
            logs=settings.logs if settings else None,
            warm=self.warm,
        )

    def store(self) -> Store:
        """Opens the metadata store. Close it, or use it in a `with`."""
        url = self._store_url()
        with suppress(OSError):
            self._private_folder()
        return Store.open(url, self._reference(url))

    @contextmanager
    def existing_store(self) -> Iterator[Store | None]:
        """Opens the store to read it; None if there is none. Nothing is made or changed, so it may be read-only."""
        url = self._store_url()
        store = Store.look(url, self._reference(url))
        if store is None:
            yield None
            return
        with store:
            yield store

    def environment_of(self, run_id: str) -> str | None:
        """Returns the environment of a run of this workspace in the same store; the chosen one if there is no such
        run."""
        url = self._store_url()
        return Store.environment_of(url, self._reference(url), run_id)

    def full_id(self, beginning: str) -> str:
        """Returns the id of the run or batch of this workspace that begins with the text; the text itself if there is
        none. Raises RunNotFound if there are several."""
        url = self._store_url()
        return Store.id_from(url, self._reference(url), beginning)

    def upgrade_store(self) -> None:
        """Makes or migrates the tables of the store."""
        with Store(self._store_url()) as store:
            store.upgrade()

    def join_store(self, *, new: bool) -> None:
        """Makes this folder the workspace that has its name in the store; with `new`, a new one of that name."""
        url = self._store_url()
        with Store(url) as store:
            store.ensure_current()
            store.join(self._reference(url), new=new)

    def rename_in_store(self, old: str) -> None:
        """Gives the workspace `old` of the store the name that the settings have now."""
        url = self._store_url()
        with Store(url) as store:
            store.ensure_current()
            store.rename(old, self._reference(url))

    def _store_url(self) -> URL:
        """Returns the url of the store. Raises ValidationError if the settings have a problem: they might name another
        store, and this one knows nothing of its runs and closed periods."""
        settings = None
        if not os.environ.get(URL_VARIABLE):
            if wrong := self._settings_problems():
                raise ValidationError(wrong)
            settings = self.definitions.settings
        return store_url(settings.store if settings is not None else None, self.root, os.environ)

    def _reference(self, url: URL) -> WorkspaceRef:
        """Returns what a store recognises this workspace by."""
        return WorkspaceRef(
            name=self._recorded_name,
            environment=self.definitions.environment,
            host=socket.gethostname(),
            root=self.root,
            owns_store=url.get_backend_name() == "sqlite" and self._contains(Path(str(url.database))),
            contents=lambda: {(kind, id, content_hash(body)) for kind, id, body in bodies(self.definitions)},
        )

    def _contains(self, file: Path) -> bool:
        """True if the file is in this workspace, and not in another one inside it."""
        file, root = file.resolve(), self.root.resolve()
        return file.is_relative_to(root) and find_root(file.parent) == root

    def _recorded_name(self) -> str:
        """Returns the name in the settings. Raises ValidationError without one: the name of the folder would be another
        workspace."""
        if self.definitions.settings is None:
            raise ValidationError(self._settings_problems())
        return self.definitions.settings.name

    def _settings_problems(self) -> list[Problem]:
        problems = self.definitions.problems
        return [problem for problem in problems if problem.place and problem.place.file == SETTINGS_FILE]

    def _log_folder(self) -> Path | None:
        """Returns the folder for Spark's logs; None if the workspace is read-only."""
        with suppress(OSError):
            folder = self._private_folder()
            if os.access(folder, os.W_OK):
                return folder / "logs"
        return None

    def _private_folder(self) -> Path:
        """Makes and returns the folder of the product, readable by its owner only."""
        folder = make_private_folder(self.root / PRIVATE)
        close_folder(folder)
        return folder
