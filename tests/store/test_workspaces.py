"""Workspaces in one store: each has its own state, by a name that is unique there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from tests.store.kit import record, record_all

from tallybook.errors import RunError, StoreError
from tallybook.model.run import Snapshot
from tallybook.project.recorded import content_hash
from tallybook.store.database import store_url
from tallybook.store.store import Store, _migrate
from tallybook.store.tables import metadata
from tallybook.store.workspaces import WorkspaceRef

Body = Callable[..., dict[str, Any]]


def folder(name: str, root: str = "/books", host: str = "here", owns: bool = False, **datasets: Any) -> WorkspaceRef:
    """A workspace in a folder; keywords are the bodies of its datasets."""
    contents = {("dataset", id, content_hash(body)) for id, body in datasets.items()}
    return WorkspaceRef(lambda: name, host, Path(root), owns, lambda: contents)


def names(store: Store) -> list[str]:
    with store._read() as connection:
        return list(connection.execute(sa.text("SELECT name FROM workspaces ORDER BY lower(name)")).scalars())


@pytest.fixture
def url(fresh_url: Callable[[], URL]) -> URL:
    return fresh_url()


@pytest.fixture
def two(url: URL) -> Iterator[tuple[Store, Store]]:
    with (
        Store.open(url, folder("ours", "/ours")) as ours,
        Store.open(url, folder("theirs", "/theirs")) as theirs,
    ):
        yield ours, theirs


def test_two_workspaces_with_the_same_ids_do_not_touch_each_other(
    two: tuple[Store, Store], project_body: Body, dataset_body: Body, snapshot: Snapshot
) -> None:
    ours, theirs = two
    for store, column in ((ours, "tier"), (theirs, "level")):
        record_all(store, [("dataset", "orders", dataset_body(column)), ("project", "close", project_body())])
    assert [store.versions("dataset", "orders")[0].version for store in two] == [1, 1]
    assert theirs.all_latest("dataset")[0].body == dataset_body("level")
    ours.activate("close", 1, 1)
    assert [state.status for store in two for state in store.project_states()] == ["active", "draft"]
    ours.set_period_status("gregorian", "2026-02", "closed")
    assert (theirs.period_status("gregorian", "2026-02"), theirs.period_statuses("gregorian")) == ("open", {})

    runs = [
        store.start_run(
            store.create_run("close", 1, "2026-01", calendar_id="gregorian", as_of=date(2026, 1, 1)), snapshot
        )
        for store in two
    ]
    assert [[run.id for run in store.runs()] for store in two] == [[run.id] for run in runs]
    for read in (ours.run, ours.snapshot, ours.retry_run):
        with pytest.raises(RunError, match=f"no run has the id {runs[1].id}"):
            read(runs[1].id)
    theirs.set_period_status("gregorian", "2026-03", "closed")
    with pytest.raises(RunError, match=f"while run {runs[1].id}"):
        theirs.set_period_status("gregorian", "2026-01", "closed")
    made = [
        store.register_dataset("sales", dataset_body("a"), run, 1, {}) for store, run in zip(two, runs, strict=True)
    ]
    assert [each.version for each in made] == [1, 1]
    assert [len(store.registrations()) for store in two] == [1, 1]
    ours.complete_run(runs[0])
    assert ours.deactivate("close").status == "inactive" and theirs.runs(statuses=("running",))


def test_a_name_is_one_workspace_and_a_fresh_clone_is_accepted(url: URL, dataset_body: Body) -> None:
    files = {"orders": dataset_body("tier"), "rates": dataset_body("rate")}
    with Store.open(url, folder("close", "/ann/close", **files)) as store:
        record_all(store, [("dataset", id, body) for id, body in files.items()])
    edited = files | {"orders": dataset_body("level")}
    for night in range(2):
        clone = folder("close", f"/build/{night}/close", f"runner-{night}", **edited)
        with Store.open(url, clone) as store:
            assert store.latest("dataset", "orders") is not None
        with Store(url, look=True) as looked:
            assert looked.enter_to_look(clone)


def test_another_workspace_of_the_same_name_is_refused(url: URL, dataset_body: Body) -> None:
    with Store.open(url, folder("close", "/ours", orders=dataset_body("tier"))) as store:
        record(store, "dataset", "orders", dataset_body("tier"))
    other = folder("close", "/theirs", "there", orders=dataset_body("level"))
    for attempt in (lambda: Store.open(url, other), lambda: Store(url, look=True).enter_to_look(other)):
        with pytest.raises(StoreError, match=r"already has a workspace 'close'(.|\n)*`tallybook store join`"):
            attempt()
    with Store(url) as store:
        store.join(other)
    with Store.open(url, other) as store:
        assert store.latest("dataset", "orders") is not None


def test_a_name_belongs_to_its_workspace_before_anything_is_applied(url: URL, dataset_body: Body) -> None:
    with Store.open(url, folder("close", "/ours", orders=dataset_body("tier"))) as store:
        store.set_period_status("gregorian", "2026-01", "closed")
    with pytest.raises(StoreError, match="already has a workspace 'close'"):
        Store.open(url, folder("close", "/theirs", orders=dataset_body("level")))


def test_names_that_differ_in_case_are_one_name(url: URL, dataset_body: Body) -> None:
    ours, files = folder("Große Close", "/ours", orders=dataset_body("tier")), {"orders": dataset_body("tier")}
    Store.open(url, ours).close()
    with pytest.raises(StoreError, match="already has a workspace 'Große Close'"):
        Store.open(url, folder("GROSSE CLOSE", "/theirs", orders=dataset_body("level")))
    clone = folder("große close", "/clone", "there", **files)
    with Store.open(url, clone) as store:
        assert names(store) == ["Große Close"]
        store.rename("große CLOSE", clone)
        assert names(store) == ["große close"]
    with Store.open(url, ours) as store:
        assert names(store) == ["große close"], "a folder that keeps the old case follows"


def test_a_new_name_does_not_leave_the_history_behind(url: URL, dataset_body: Body) -> None:
    files = {"orders": dataset_body("tier")}
    with Store.open(url, folder("close", **files)) as store:
        record(store, "dataset", "orders", files["orders"])
        store.set_period_status("gregorian", "2026-01", "closed")
    renamed = folder("month-end", **files)
    with pytest.raises(StoreError, match=r"this folder is workspace 'close'(.|\n)*store rename close`"):
        Store.open(url, renamed)
    with Store(url) as store:
        with pytest.raises(StoreError, match="no workspace 'clsoe'\n  hint: it has 'close'"):
            store.rename("clsoe", renamed)
        store.rename("close", renamed)
        with pytest.raises(StoreError, match=r"workspace 'month-end' has the `name` of tallybook.yaml already"):
            store.rename("month-end", renamed)
        Store.open(url, folder("taken", "/taken")).close()
        with pytest.raises(StoreError, match=r"already has a workspace 'taken'"):
            store.rename("month-end", folder("taken"))
        with pytest.raises(StoreError, match=r"no workspace 'budget'; it has 'month-end', 'taken'"):
            store.join(folder("budget", **files))
        with pytest.raises(StoreError, match=r"already has a workspace 'month-end'"):
            store.join(renamed, new=True)
    with Store.open(url, renamed) as store:
        assert store.period_status("gregorian", "2026-01") == "closed"
    unrelated = folder("budget", budget=dataset_body("amount"))
    with Store.open(url, unrelated) as store:
        assert store.period_statuses("gregorian") == {}, "a build server uses one folder for many workspaces"


def test_an_environment_is_a_workspace_of_its_own_with_the_same_name(
    url: URL, dataset_body: Body, project_body: Body, caplog: pytest.LogCaptureFixture
) -> None:
    plain = folder("close", orders=dataset_body("a"))
    prod = replace(plain, environment="prod")
    bodies = [("dataset", "orders", dataset_body("a")), ("project", "close", project_body())]
    for ref in (plain, prod, plain, prod):
        with Store.open(url, ref) as store:
            record_all(store, bodies)
            assert store.versions("dataset", "orders")[0].version == 1
    assert caplog.messages == []
    with Store.open(url, prod) as store:
        assert names(store) == ["close", "close"]
        store.activate("close", 1, 1)
        run = store.create_run("close", 1, "2026-01", calendar_id="gregorian", as_of=date(2026, 1, 1))
        later = store.create_run("close", 1, "2026-02", calendar_id="gregorian", as_of=date(2026, 1, 1))
    assert run.environment == "prod"
    with Store.open(url, plain) as store:
        assert store.project_states()[0].status == "draft"
        with pytest.raises(RunError, match="no run has the id"):
            store.run(run.id)
    assert [Store.environment_of(url, ref, run.id) for ref in (plain, prod)] == ["prod", "prod"]
    assert Store.environment_of(url, folder("other", "/other"), run.id) is None
    assert [Store.id_from(url, ref, run.id[:14].upper()) for ref in (plain, prod)] == [run.id, run.id]
    assert Store.id_from(url, folder("other", "/other"), run.id[:14]) == run.id[:14], "it is not theirs"
    assert Store.id_from(url, prod, "%") == "%"
    both = f"2 ids begin with '01': {run.id} (close 2026-01), {later.id} (close 2026-02)"
    with pytest.raises(RunError, match=re.escape(both)):
        Store.id_from(url, prod, "01")

    with pytest.raises(StoreError, match="already has a workspace 'close'"):
        Store.open(url, replace(folder("close", "/elsewhere", b=dataset_body("b")), environment="prod"))
    renamed = folder("month-close", orders=dataset_body("a"))
    with Store(url) as store:
        store.rename("close", renamed)
        assert names(store) == ["month-close", "month-close"]
    with Store.open(url, replace(renamed, environment="prod")) as store:
        assert store.run(run.id).environment == "prod"


def test_a_store_in_the_folder_of_its_workspace_follows_every_name(tmp_path: Path, dataset_body: Body) -> None:
    for name in ("close", "month end", "close"):
        ref = folder(name, str(tmp_path), owns=True, orders=dataset_body(name.split()[0]))
        with Store.open(store_url(None, tmp_path, {}), ref) as store:
            record(store, "dataset", "orders", dataset_body(name.split()[0]))
    with Store.open(store_url(None, tmp_path, {})) as store:
        assert len(store.versions("dataset", "orders")) == 3 and names(store) == ["close"]
    guest = folder("guest", "/guest", orders=dataset_body("guest"))
    Store.open(store_url(None, tmp_path, {}), guest).close()
    moved = folder("close again", "/elsewhere", "there", owns=True, orders=dataset_body("edited"))
    with Store.open(store_url(None, tmp_path, {}), moved) as store:
        assert len(store.versions("dataset", "orders")) == 3 and names(store) == ["close again", "guest"]
    with pytest.raises(StoreError, match="already has a workspace 'guest'"):
        Store.open(store_url(None, tmp_path, {}), folder("guest", owns=True, orders=dataset_body("edited")))


def test_the_owner_of_a_store_does_not_take_what_a_guest_recorded_first(tmp_path: Path, dataset_body: Body) -> None:
    with Store.open(store_url(None, tmp_path, {}), folder("guest", "/guest", orders=dataset_body("guest"))) as store:
        record(store, "dataset", "orders", dataset_body("guest"))
    with Store.open(store_url(None, tmp_path, {}), folder("owner", str(tmp_path), owns=True)) as store:
        assert store.latest("dataset", "orders") is None and names(store) == ["guest", "owner"]


def test_two_folders_of_a_host_are_one_workspace_only_if_someone_says_so(
    url: URL, dataset_body: Body, tmp_path: Path
) -> None:
    one, two = (folder("close", str(tmp_path / name), orders=dataset_body("tier")) for name in ("one", "two"))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tallybook.yaml").write_text("name: close\n")
    Store.open(url, one).close()
    with pytest.raises(StoreError, match=f"'close', in the folder {tmp_path}/one(.|\n)*`tallybook store join`"):
        Store.open(url, two)
    with Store(url) as store:
        store.join(two)
    for ref in (two, one):
        Store.open(url, ref).close()
    moved = folder("close", str(tmp_path / "moved"), orders=dataset_body("tier"))
    for name in ("one", "two"):
        (tmp_path / name / "tallybook.yaml").unlink()
    Store.open(url, moved).close()


def test_a_new_workspace_with_a_project_of_another_is_pointed_out(
    url: URL, project_body: Body, caplog: pytest.LogCaptureFixture
) -> None:
    contents = {("project", "close", content_hash(project_body()))}
    for name in ("close", "month end", "month end"):
        Store.open(url, WorkspaceRef(lambda name=name: name, name, Path("/books"), False, lambda: contents)).close()
    [warning] = caplog.records
    assert "'month end' is a new workspace" in warning.getMessage()
    assert "Workspace 'close' there has the same project 'close'" in warning.getMessage()


def old_store(url: URL) -> None:
    """A store as the first version made it, with a row in each table that gets a workspace."""
    store = Store(url)
    with store._write(rebuild=True) as connection:
        _migrate(connection, "0001")
        at = "'2026-01-01 00:00:00'"
        for statement in (
            f"INSERT INTO definitions VALUES ('dataset', 'orders', 1, '{'h' * 64}', '{{}}', NULL, {at})",
            f"INSERT INTO projects VALUES ('close', 'active', 1, 1, 1, NULL, {at})",
            f"INSERT INTO periods VALUES ('gregorian', '2026-01', 'locked', {at})",
            f"INSERT INTO runs VALUES ('r', 'close', 1, 'gregorian', '2026-01', 'failed', 1, 7, {at}, '2026-01-01', "
            f"'0', NULL, NULL, NULL, 'h', 1, 's', {at}, {at}, {at}, {at})",
            f"INSERT INTO snapshots VALUES ('r', '{{}}', {at})",
            f"INSERT INTO registrations VALUES ('orders', 1, 'r', 5, '{{}}', {at})",
        ):
            connection.exec_driver_sql(statement)
    store.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> URL:
    if request.param == "postgresql":
        url: URL = request.getfixturevalue("new_database")()
    else:
        (tmp_path / "old.db").touch()
        url = URL.create("sqlite", database=str(tmp_path / "old.db"))
    old_store(url)
    return url


def test_what_an_older_store_holds_belongs_to_the_workspace_that_recorded_it(old: URL, dataset_body: Body) -> None:
    with Store(old) as store:
        store.upgrade()
    fits = WorkspaceRef(lambda: "close", "h", Path("/a"), False, lambda: {("dataset", "orders", "h" * 64)})
    other = folder("other", "/b", orders=dataset_body())
    with Store(old, look=True) as looked:
        assert looked.enter_to_look(fits)
        with pytest.raises(StoreError, match="from before it knew workspaces"):
            looked.enter_to_look(other)
    with Store(old) as store:
        store.join(other, new=True)
    with Store.open(old, other) as store:
        assert (store.runs(), store.period_statuses("gregorian")) == ((), {})
    with Store.open(old, fits) as store:
        [run] = store.runs()
        assert (run.id, run.claim, run.project_status, run.workspace_id) == ("r", 7, "active", store.workspace_id)
        assert store.period_status("gregorian", "2026-01") == "locked"
        state = store.project_state("close")
        assert state is not None and state.status == "active" and len(store.registrations()) == 1
        for statement in ("UPDATE definitions SET body = '1'", "DELETE FROM registrations", "DELETE FROM snapshots"):
            with pytest.raises((DBAPIError, StoreError), match="are never changed"), store._write() as connection:
                connection.exec_driver_sql(statement)
        assert names(store) == ["close", "other"]


@pytest.mark.parametrize("owns", [True, False])
def test_what_an_older_store_holds_is_given_to_its_folder_or_on_demand(
    old: URL, dataset_body: Body, owns: bool
) -> None:
    edited = folder("close", "/b", owns=owns, orders=dataset_body())
    with Store(old) as store:
        store.upgrade()
        if not owns:
            store.join(edited)
    with Store.open(old, edited) as store:
        assert store.period_status("gregorian", "2026-01") == "locked" and names(store) == ["close"]


def test_an_upgraded_store_has_the_tables_of_a_new_one(old: URL) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with Store(old) as store:
        store.upgrade()
        with store._read() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": "tallybook_version"})
            assert compare_metadata(context, metadata) == []
        indexes = sa.inspect(store._engine).get_indexes("runs")
    one_active = next(index for index in indexes if index["name"] == "one_active_run")
    assert one_active["column_names"] == ["workspace_id", "project_id", "period"] and one_active["unique"]
