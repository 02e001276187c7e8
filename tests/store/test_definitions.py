"""Versions of definitions: made once, kept for ever; datasets registered from runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from tests.store.kit import record, record_all

from tallybook.errors import StoreError
from tallybook.model.run import Run, Snapshot
from tallybook.project.recorded import content_hash
from tallybook.store.store import Store

Body = Callable[..., dict[str, Any]]


def test_a_first_record_is_version_1_and_the_same_text_stays_it(store: Store, dataset_body: Body) -> None:
    first = record(store, "dataset", "orders", dataset_body())
    again = record(store, "dataset", "orders", dict(reversed(dataset_body().items())))
    assert (first.version, first.new) == (1, True)
    assert (again.version, again.new) == (1, False)


def test_a_changed_text_is_a_new_version_and_the_old_one_stays(store: Store, dataset_body: Body) -> None:
    record(store, "dataset", "orders", dataset_body("tier"))
    assert record(store, "dataset", "orders", dataset_body("level")).version == 2
    first, second = store.versions("dataset", "orders")
    assert (first.body, second.body) == (dataset_body("tier"), dataset_body("level"))
    assert store.definition("dataset", "orders", 1) == first
    assert store.latest("dataset", "orders") == second


def test_going_back_to_an_older_text_is_a_new_version_too(store: Store, dataset_body: Body) -> None:
    texts = [dataset_body("a"), dataset_body("b"), dataset_body("a")]
    assert [record(store, "dataset", "orders", text).version for text in texts] == [1, 2, 3]


def test_the_number_the_system_counts_is_no_change(store: Store, dataset_body: Body) -> None:
    record(store, "dataset", "orders", dataset_body() | {"version": 1})
    assert not record(store, "dataset", "orders", dataset_body() | {"version": 9}).new
    assert content_hash({"a": 1, "version": 2}) == content_hash({"a": 1})


def test_the_status_is_the_newest_versions(store: Store, dataset_body: Body) -> None:
    record(store, "dataset", "orders", dataset_body())
    record(store, "dataset", "orders", dataset_body() | {"status": "disabled"})
    latest = store.latest("dataset", "orders")
    assert latest is not None and (latest.version, latest.status) == (2, "disabled")


def test_kinds_and_ids_are_apart(store: Store) -> None:
    recorded = record_all(
        store, [("resolver", "x", {"a": 1}), ("datasource", "x", {"a": 2}), ("calendar", "y", {"a": 3})]
    )
    assert [each.version for each in recorded] == [1, 1, 1]
    assert store.latest("resolver", "y") is None
    assert store.definition("calendar", "y", 2) is None


def test_the_newest_of_every_definition_of_a_kind(store: Store) -> None:
    record_all(store, [("resolver", "b", {"n": 1}), ("resolver", "a", {"n": 2}), ("calendar", "c", {"n": 3})])
    record(store, "resolver", "a", {"n": 4})
    assert [(each.id, each.version, each.body["n"]) for each in store.all_latest("resolver")] == [
        ("a", 2, 4),
        ("b", 1, 1),
    ]


def test_a_workspace_is_recorded_whole_or_not_at_all(store: Store) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        record_all(store, [("resolver", "a", {"n": 1}), ("resolver", "b", {"n": float("nan")})])
    assert store.latest("resolver", "a") is None


def test_text_of_all_scripts_comes_back(store: Store) -> None:
    body = {"name": "Größe → 測試 \u0000 'x' \"y\"", "deep": [{"a": [None, True, 1.5]}]}
    record(store, "resolver", "r", body)
    latest = store.latest("resolver", "r")
    assert latest is not None and latest.body == body


@pytest.mark.parametrize("statement", ["UPDATE definitions SET body = '{}'", "DELETE FROM definitions"])
def test_the_database_itself_refuses_to_change_a_version(store: Store, dataset_body: Body, statement: str) -> None:
    record(store, "dataset", "orders", dataset_body())
    with pytest.raises((DBAPIError, StoreError), match="definitions are never changed"), store._write() as connection:
        connection.execute(sa.text(statement))
    assert [each.body for each in store.versions("dataset", "orders")] == [dataset_body()]


READS = {"target": "/data/sales", "format": "delta", "version": 3}


def test_an_output_is_registered_once_per_run(
    store: Store, new_run: Callable[..., Run], snapshot: Snapshot, dataset_body: Body
) -> None:
    run = store.start_run(new_run(), snapshot)
    first = store.register_dataset("sales", dataset_body("a"), run, 3, READS)
    assert (first.version, first.dataset_id, first.run_id, first.reads) == (1, "sales", run.id, READS)
    assert store.register_dataset("sales", dataset_body("a"), run, 3, READS | {"version": 4}) == first
    assert store.registration("sales", 1) == first
    assert store.registrations(run.id) == (first,)
    with pytest.raises(StoreError, match="already registered as dataset 'sales', not 'other'"):
        store.register_dataset("other", dataset_body("a"), run, 3, READS)


def test_every_registration_is_a_version_of_its_own_rows(
    store: Store, new_run: Callable[..., Run], dataset_body: Body
) -> None:
    """Same text, other rows: a new version nevertheless."""
    runs = [new_run("2026-01"), new_run("2026-02")]
    for delta, run in enumerate(runs):
        store.register_dataset("sales", dataset_body("a"), run, 3, READS | {"version": delta})
    kept = [store.registration("sales", version) for version in (1, 2)]
    assert [each and each.reads["version"] for each in kept] == [0, 1]
    assert [each.body for each in store.versions("dataset", "sales")] == [dataset_body("a")] * 2


def test_registering_under_a_declared_id_does_not_make_its_file_look_changed(
    store: Store, new_run: Callable[..., Run], dataset_body: Body
) -> None:
    run = new_run()
    record(store, "dataset", "sales", dataset_body("a"))
    assert store.register_dataset("sales", dataset_body("b"), run, 1, READS).version == 2
    assert not record(store, "dataset", "sales", dataset_body("a")).new
    declared, latest = store.declared("dataset", "sales"), store.latest("dataset", "sales")
    assert declared is not None and latest is not None and (declared.version, latest.version) == (1, 2)
    assert record(store, "dataset", "sales", dataset_body("c")).version == 3
    assert store.registration("sales", 3) is None
