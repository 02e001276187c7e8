"""The workspaces of a store, known by their names: each sees its own versions, states and runs and no others.

A folder is a workspace of a shared store if its name is recorded there and its definitions continue what is recorded.
A fresh clone is accepted; another workspace that happens to have the same name is refused.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unicodedata import normalize
from uuid import uuid4

import sqlalchemy as sa

from tallybook.errors import StoreError, fail
from tallybook.project.files import has_settings
from tallybook.store.database import Database, now
from tallybook.store.tables import BATCHES, DEFINITIONS, RUNS, WORKSPACE_FOLDERS, WORKSPACES

_log = logging.getLogger(__name__)
Content = tuple[str, str, str]
"""Kind, id and content hash of a definition."""
_DISTINCTIVE = ("project", "dataset")
"""The kinds that two workspaces do not have in common by chance. A datasource can be the same in many."""
_IDS_SHOWN = 5


@dataclass(frozen=True)
class WorkspaceRef:
    """A workspace that opens a store."""

    name: Callable[[], str]
    host: str
    root: Path
    owns_store: bool
    """True if the store is a file in the folder of the workspace."""
    contents: Callable[[], Collection[Content]]
    """Returns what the files define now; called only where the store does not know the folder."""
    environment: str | None = None
    """The environment, whose state is kept apart from that of the others."""

    @property
    def key(self) -> str:
        """The name and the environment as the store compares them."""
        return name_key(self.name(), self.environment)

    @property
    def folder(self) -> dict[str, str]:
        """The folder as the store records it. The folder that contains the store needs no path: it can be moved, and
        mounted on another host."""
        return {"host": "", "root": "."} if self.owns_store else {"host": self.host, "root": str(self.root)}


ONLY_WORKSPACE = WorkspaceRef(lambda: "workspace", "", Path(), owns_store=True, contents=tuple)
"""The only workspace of a store, for a caller without a workspace folder."""


def name_key(name: str, environment: str | None = None) -> str:
    """The form of a name that is unique in a store: `Close` and `close` are one name. A name has no line breaks, so
    none is mistaken for one with an environment."""
    key = normalize("NFKC", name).casefold()
    return key if environment is None else f"{key}\n{environment}"


class Workspaces(Database):
    """Finds, adds and renames the workspaces of a store. Each environment of a workspace is one of its own."""

    def enter(self, ref: WorkspaceRef) -> None:
        """Opens the store for a workspace, and records the workspace if it is new."""
        self.environment = ref.environment
        with self._read() as connection:
            row = _find(connection, ref, str(self))
            if row is not None and _is_settled(connection, row, ref):
                self.workspace_id = row.id
                return
        with self._write() as connection:
            row = _find(connection, ref, str(self))
            if row is None:
                _warn_of_same_project(connection, ref, str(self))
                row = _add(connection, ref)
            _settle(connection, row, ref)
        self.workspace_id = row.id

    def enter_to_look(self, ref: WorkspaceRef) -> bool:
        """Opens the store for a workspace without recording anything. Returns False if the workspace is new."""
        self.environment = ref.environment
        with self._read() as connection:
            row = _find(connection, ref, str(self))
        self.workspace_id = row.id if row is not None else ""
        return row is not None

    def run_environment(self, ref: WorkspaceRef, id: str) -> str | None:
        """Returns the environment of a run or batch of the workspace; that of `ref` if the workspace has none such."""
        columns = WORKSPACES.c["name", "environment"]
        owners = (
            sa.select(*columns).join(table, table.c.workspace_id == WORKSPACES.c.id).where(table.c.id == id)
            for table in (RUNS, BATCHES)
        )
        with self._read() as connection:
            row = connection.execute(sa.union_all(*owners)).first()
        is_own = row is not None and row.name is not None and name_key(row.name) == name_key(ref.name())
        return row.environment if row is not None and is_own else ref.environment

    def full_id(self, ref: WorkspaceRef, beginning: str) -> str:
        """Returns the id of the run or batch of the workspace, in any environment, that begins with the text; the text
        itself if there is none. Raises RunNotFound if there are several."""
        runs = sa.select(*RUNS.c["id", "project_id", "period"], WORKSPACES.c.name).join(
            WORKSPACES, RUNS.c.workspace_id == WORKSPACES.c.id
        )
        batches = sa.select(BATCHES.c.id, WORKSPACES.c.name).join(WORKSPACES, BATCHES.c.workspace_id == WORKSPACES.c.id)
        begun = beginning.lower()
        with self._read() as connection:
            rows = [
                *connection.execute(runs.where(RUNS.c.id.startswith(begun, autoescape=True)).order_by(RUNS.c.id)),
                *connection.execute(batches.where(BATCHES.c.id.startswith(begun, autoescape=True))),
            ]
        own = [row for row in rows if ref.owns_store or name_key(row.name or "") == name_key(ref.name())]
        if len(own) > 1 and begun not in [row.id for row in own]:
            ids = [f"{row.id} ({row.project_id} {row.period})" if "period" in row._fields else row.id for row in own]
            more = f" and {len(ids) - _IDS_SHOWN:,} more" if len(ids) > _IDS_SHOWN else ""
            message = f"{len(ids):,} ids begin with '{beginning}': {', '.join(ids[:_IDS_SHOWN])}{more}"
            raise fail("RunNotFound", message, hint="write more of the id")
        return str(own[0].id) if len(own) == 1 else beginning

    def join(self, ref: WorkspaceRef, *, new: bool = False) -> None:
        """Makes a folder the workspace that has its name, whatever its files define; with `new`, adds a workspace."""
        with self._write() as connection:
            rows = _recorded(connection, ref.environment)
            row = _named(rows, ref.key)
            if new and row is not None:
                raise StoreError(
                    f"the metadata store {self} already has a workspace '{row.name}'",
                    "choose another `name` in tallybook.yaml; or run `tallybook store join` if this is the same one",
                )
            if not new and row is None and rows:
                row = next((other for other in rows if other.name is None), None)
                if row is None:
                    raise StoreError(
                        f"the metadata store {self} has no workspace '{ref.name()}'; it has {_names(rows)}",
                        "correct the `name` in tallybook.yaml; or rename a workspace with `tallybook store rename`; or "
                        "begin a new one with `tallybook store join --new`",
                    )
            _settle(connection, row or _add(connection, ref), ref)

    def rename(self, old: str, ref: WorkspaceRef) -> None:
        """Gives the workspace `old`, in all its environments, the name that the settings of a folder have now."""
        with self._write() as connection:
            all_rows = connection.execute(sa.select(WORKSPACES).order_by(WORKSPACES.c.name_key)).all()
            rows, taken = _of_name(all_rows, old), _of_name(all_rows, ref.name())
            if not rows:
                raise StoreError(f"the metadata store {self} has no workspace '{old}'", f"it has {_names(all_rows)}")
            if all(row.name == ref.name() for row in rows):
                raise StoreError(
                    f"workspace '{rows[0].name}' has the `name` of tallybook.yaml already",
                    "change the `name` in tallybook.yaml first; `tallybook store rename` takes the old name",
                )
            if taken and taken != rows:
                raise StoreError(
                    f"the metadata store {self} already has a workspace '{taken[0].name}'",
                    "choose another `name` in tallybook.yaml",
                )
            for row in rows:
                own = replace(ref, environment=row.environment)
                _set_name(connection, row, own)
                _settle(connection, row, own)


def _find(connection: sa.Connection, ref: WorkspaceRef, store: str) -> sa.Row[Any] | None:
    """Returns the workspace of a folder, None if it is a new one. Raises StoreError if the name belongs to another
    workspace, if the folder had another name before, or if it is unclear whose the rows of an older store are."""
    rows = _recorded(connection, ref.environment)
    if ref is ONLY_WORKSPACE:
        return rows[0] if len(rows) == 1 else None
    used_as = _used_as(connection, ref)
    before = next((row for row in rows if row.id in used_as[:1]), None)
    named = _named(rows, ref.key)
    if named is not None:
        if named.id not in used_as:
            _check_same_workspace(connection, named, ref, store)
        return named
    if before is not None and ref.owns_store:
        return before
    if before is not None and _continues(connection, before, ref):
        raise _other_name(before.name, ref.name(), store)
    unnamed = next((row for row in rows if row.name is None), None)
    if unnamed is not None and not ref.owns_store and not _continues(connection, unnamed, ref):
        raise _unclaimed(ref.name(), store)
    return unnamed


def _check_same_workspace(connection: sa.Connection, row: sa.Row[Any], ref: WorkspaceRef, store: str) -> None:
    """Raises StoreError unless a folder that the store has not seen is the workspace that has its name."""
    query = sa.select(*WORKSPACE_FOLDERS.c["root", "workspace_id"]).where(
        WORKSPACE_FOLDERS.c.host == ref.host, WORKSPACE_FOLDERS.c.workspace_id.in_(_ids(ref.environment))
    )
    newest = {use.root: use.workspace_id for use in connection.execute(query.order_by(WORKSPACE_FOLDERS.c.since))}
    for root, used_as in newest.items():
        if used_as == row.id and root != str(ref.root) and has_settings(Path(root)):
            raise _two_folders(row.name, root, store)
    if not _continues(connection, row, ref):
        raise _same_name(row.name, store)


def _continues(connection: sa.Connection, row: sa.Row[Any], ref: WorkspaceRef) -> bool:
    """True if a project or dataset of the folder is one that the workspace has recorded, in any version; also if the
    workspace has recorded none."""
    recorded = _contents(connection, row)
    return not recorded or not recorded.isdisjoint(ref.contents())


def _contents(connection: sa.Connection, row: sa.Row[Any]) -> set[Content]:
    """Returns the projects and datasets of a workspace: all recorded versions, and those it was added with."""
    query = sa.select(*DEFINITIONS.c["kind", "id", "content_hash"]).where(
        DEFINITIONS.c.workspace_id == row.id, DEFINITIONS.c.kind.in_(_DISTINCTIVE)
    )
    return {(kind, id, text) for kind, id, text in (*connection.execute(query), *(row.contents or ()))}


def _is_settled(connection: sa.Connection, row: sa.Row[Any], ref: WorkspaceRef) -> bool:
    return ref is ONLY_WORKSPACE or (row.name_key == ref.key and row.id in _used_as(connection, ref))


def _settle(connection: sa.Connection, row: sa.Row[Any], ref: WorkspaceRef) -> None:
    """Records the name and the folder of a workspace."""
    if ref is ONLY_WORKSPACE:
        return
    if row.name_key != ref.key:
        _set_name(connection, row, ref)
    use = ref.folder | {"workspace_id": row.id}
    if connection.execute(sa.update(WORKSPACE_FOLDERS).filter_by(**use).values(since=now())).rowcount == 0:
        connection.execute(sa.insert(WORKSPACE_FOLDERS).values(**use, since=now()))


def _set_name(connection: sa.Connection, row: sa.Row[Any], ref: WorkspaceRef) -> None:
    change = sa.update(WORKSPACES).where(WORKSPACES.c.id == row.id)
    connection.execute(change.values(name=ref.name(), name_key=ref.key))


def _add(connection: sa.Connection, ref: WorkspaceRef) -> sa.Row[Any]:
    """Adds a workspace, with what its files define: the next folder of that name is compared with it, also if nothing
    was applied in between."""
    contents = sorted(content for content in ref.contents() if content[0] in _DISTINCTIVE)
    values = {
        "id": str(uuid4()),
        "name": ref.name(),
        "name_key": ref.key,
        "environment": ref.environment,
        "contents": contents,
        "created_at": now(),
    }
    return connection.execute(sa.insert(WORKSPACES).values(values).returning(WORKSPACES)).one()


def _recorded(connection: sa.Connection, environment: str | None) -> Sequence[sa.Row[Any]]:
    """Returns the workspaces that have an environment of this name; without one, the workspaces themselves."""
    query = sa.select(WORKSPACES).where(WORKSPACES.c.id.in_(_ids(environment)))
    return connection.execute(query.order_by(WORKSPACES.c.name_key)).all()


def _ids(environment: str | None) -> sa.Select[Any]:
    return sa.select(WORKSPACES.c.id).where(WORKSPACES.c.environment.is_not_distinct_from(environment))


def _named(rows: Sequence[sa.Row[Any]], key: str) -> sa.Row[Any] | None:
    return next((row for row in rows if row.name_key == key), None)


def _of_name(rows: Sequence[sa.Row[Any]], name: str) -> list[sa.Row[Any]]:
    """Returns the workspace of a name, in all its environments."""
    return [row for row in rows if row.name is not None and name_key(row.name) == name_key(name)]


def _names(rows: Sequence[sa.Row[Any]]) -> str:
    return ", ".join(dict.fromkeys(f"'{row.name}'" for row in rows if row.name is not None)) or "none"


def _used_as(connection: sa.Connection, ref: WorkspaceRef) -> Sequence[str]:
    """Returns the ids of the workspaces that the folder was used as, the newest first."""
    query = sa.select(WORKSPACE_FOLDERS.c.workspace_id).filter_by(**ref.folder)
    query = query.where(WORKSPACE_FOLDERS.c.workspace_id.in_(_ids(ref.environment)))
    return connection.execute(query.order_by(WORKSPACE_FOLDERS.c.since.desc())).scalars().all()


def _warn_of_same_project(connection: sa.Connection, ref: WorkspaceRef, store: str) -> None:
    """Warns if a new workspace has a project of another one: it may be that one, cloned with a new name."""
    projects = {content for content in ref.contents() if content[0] == "project"}
    for row in _recorded(connection, ref.environment):
        if shared := sorted(projects & _contents(connection, row)):
            _log.warning(
                "'%s' is a new workspace in the metadata store %s, without runs and closed periods. Workspace '%s' "
                "there has the same project '%s': if this is that workspace, set `name` in tallybook.yaml to '%s'.",
                ref.name(),
                store,
                row.name,
                shared[0][1],
                row.name,
            )
            return


def _same_name(name: str, store: str) -> StoreError:
    return StoreError(
        f"the metadata store {store} already has a workspace '{name}', and it has recorded no project or dataset of "
        "this folder",
        "give this workspace another `name` in tallybook.yaml; or, if it is the same workspace, run "
        "`tallybook store join` once in this folder",
    )


def _two_folders(name: str, other: str, store: str) -> StoreError:
    return StoreError(
        f"the metadata store {store} already has a workspace '{name}', in the folder {other}",
        "give one of the two another `name` in tallybook.yaml; or, if both are clones of the same workspace, run "
        "`tallybook store join` once in this folder",
    )


def _other_name(old: str, new: str, store: str) -> StoreError:
    return StoreError(
        f"this folder is workspace '{old}' in the metadata store {store}; as '{new}' it would lose its versions, runs "
        "and closed periods",
        f"`tallybook store rename {shlex.quote(old)}` renames that workspace; `tallybook store join --new` begins a "
        "new one",
    )


def _unclaimed(name: str, store: str) -> StoreError:
    return StoreError(
        f"the metadata store {store} holds versions, runs and closed periods from before it knew workspaces, and none "
        "of the projects and datasets of this folder",
        f"`tallybook store join` makes them those of workspace '{name}'; `tallybook store join --new` begins a new "
        "workspace",
    )
