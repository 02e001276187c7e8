"""What steps say of the columns that flow through them, and what `flow` makes of it. Nothing here needs Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tallybook.model.columns import UPDATED_AT
from tallybook.model.dataset import Dataset
from tallybook.operations import flow
from tallybook.operations.base import Step
from tallybook.operations.schema import SourceTable
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project

Steps = tuple[Step, ...]


def dataset(id: str, *columns: str, **more: Any) -> Dataset:
    listed = [{"name": name, "type": "decimal(10,2)" if name in NUMBERS else "string"} for name in columns]
    body = {"id": id, "name": id, "main_table": {"name": id, "columns": listed}} | more
    return Dataset.model_validate(body, strict=False)


NUMBERS = ("amount", "rate", "budget")
LOOKUPS = [
    {
        "alias": "customer",
        "target": {"dataset_id": "customers"},
        "join_conditions": [{"source_column": "customer_id", "target_column": "id"}],
    }
]
DATASETS = {
    "orders": dataset("orders", "order_id", "customer_id", "region", "currency", "amount", "note", lookups=LOOKUPS),
    "customers": dataset("customers", "id", "tier", "city"),
    "rates": dataset("rates", "currency", "rate", "source"),
    "budgets": dataset("budgets", "region", "amount", "version"),
    "late": dataset("late", "order_id", "amount"),
}

CONVERT = {
    "seq": 10,
    "type": "update",
    "arguments": {
        "joins": [{"alias": "fx", "dataset_id": "rates", "on": "orders.currency = fx.currency"}],
        "assignments": [
            {"column": "converted", "expression": "amount * fx.rate"},
            {"column": "note", "expression": "CONCAT(customer.tier, region)"},
        ],
    },
}
RENAME = {
    "seq": 20,
    "type": "update",
    "selector": 'note = "x"',
    "arguments": {"assignments": [{"column": "region", "expression": '"EMEA"'}]},
}
DROP = {"seq": 30, "type": "delete", "selector": "amount < 0"}
TOTAL = {
    "seq": 40,
    "type": "aggregate",
    "arguments": {"group_by": ["region"], "aggregations": [{"column": "total", "expression": "SUM(converted)"}]},
}
BUDGET = {
    "seq": 50,
    "type": "append",
    "arguments": {
        "source": {"dataset_id": "budgets"},
        "source_selector": 'version = "final"',
        "aggregation": {"group_by": ["region"], "aggregations": [{"column": "amount", "expression": "SUM(amount)"}]},
    },
}
WRITE: dict[str, Any] = {
    "seq": 60,
    "type": "output",
    "selector": 'currency = "EUR"',
    "arguments": {"destination": {"location": "out.csv"}, "columns": ["region", "amount", "total", "_source_dataset"]},
}
ALL = (CONVERT, RENAME, DROP, TOTAL, BUDGET, WRITE)

Bind = Callable[..., tuple[SourceTable, Steps]]


@pytest.fixture
def bind() -> Bind:
    def bound(*operations: dict[str, Any]) -> tuple[SourceTable, Steps]:
        named = [{"name": f"step {operation['seq']}"} | operation for operation in operations]
        body = {"id": "p", "name": "P", "input_dataset_id": "orders", "operations": named}
        project = Project.model_validate(body, strict=False)
        found = bind_project(project, project.operations, DatasetVersions.of(DATASETS))
        assert found.problems == () and found.input is not None
        return found.input, found.steps

    return bound


def test_each_operation_says_what_it_reads_and_sets(bind: Bind) -> None:
    _, (convert, rename, drop, total, budget, write) = bind(*ALL)
    assert convert.reads == {"currency", "amount", "region", "customer_id"}
    assert convert.writes == {
        UPDATED_AT: None,
        "converted": "arguments.assignments[0].expression",
        "note": "arguments.assignments[1].expression",
    }
    assert [(str(source.dataset.id), set(columns)) for source, columns in convert.source_columns] == [
        ("customers", {"id", "tier"}),
        ("rates", {"currency", "rate"}),
    ]
    assert (rename.reads, drop.reads, total.reads, budget.reads) == (
        {"note"},
        {"amount"},
        {"region", "converted"},
        set(),
    )
    assert drop.deletes_rows and set(drop.writes) == {"_deleted", UPDATED_AT}
    assert total.adds == {"region": None, "total": "arguments.aggregations[0].expression"}
    assert budget.adds == {"region": None, "amount": "arguments.aggregation.aggregations[0].expression"}
    assert budget.appends is not None
    assert budget.source_columns == ((budget.appends.table, {"version", "region", "amount"}),)
    assert [step.adds_rows for step in (convert, drop, total, budget, write)] == [False, False, True, True, False]
    assert [step.forks for step in (convert, drop, total, budget, write)] == [False, False, True, False, False]
    assert write.publishes is not None and list(write.publishes.columns) == WRITE["arguments"]["columns"]
    assert [step.publishes for step in (convert, rename, drop, total, budget)] == [None] * 5


def test_rows_whose_ids_or_times_are_looked_at_need_positions(bind: Bind) -> None:
    input, steps = bind(*ALL)
    names = [source.dataset.id for source in flow.source_tables(input, steps)]
    assert names == ["orders", "customers", "rates", "budgets"]

    def numbered(*wanted: str) -> set[str]:
        return set(names) - {source.dataset.id for source in flow.tables_without_positions(input, steps, wanted)}

    assert numbered() == numbered("amount", "_period", "_labels", "_deleted") == set()
    assert numbered("_row_id") == numbered("_created_at") == numbered("_updated_at") == {"orders"}


@pytest.mark.parametrize(("grouped", "numbered"), [(False, {"orders", "late"}), (True, {"orders"})])
def test_rows_that_are_appended_as_they_are_need_positions(bind: Bind, grouped: bool, numbered: set[str]) -> None:
    late = {**BUDGET, "arguments": {"source": {"dataset_id": "late"}}}
    input, steps = bind(BUDGET if grouped else late)
    without = flow.tables_without_positions(input, steps, ["_row_id"])
    assert {source.dataset.id for source in flow.source_tables(input, steps) if source not in without} == numbered


def test_what_a_check_reads_is_live(bind: Bind) -> None:
    arguments = {"group_by": ["note"], "assert": "SUM(converted) > 0"}
    check = {"seq": 25, "type": "check", "selector": "amount > 0", "arguments": arguments}
    _, (convert, tested, write) = bind(
        CONVERT, check, WRITE | {"seq": 60, "arguments": {**WRITE["arguments"], "columns": ["region"]}}
    )
    assert tested.tests is not None and tested.takes_rows and not tested.writes and tested.adds is None
    assert tested.reads == {"amount", "note", "converted"}
    assert {"converted", "note"} <= flow.live_columns((convert, tested, write), ())[1]
    assert tested.after == tested.before


def test_live_columns_are_found_backwards(bind: Bind) -> None:
    _, steps = bind(*ALL)
    live = flow.live_columns(steps, (), all_active=True)
    written = {"region", "amount", "total", "_source_dataset_id"}
    assert live[-1] == set()
    assert live[5] == live[4] == {*written, "currency", "_deleted"}, "a delete before it: the output must look"
    assert live[3] == {"region", "amount", "_source_dataset_id", "converted", "currency", "_deleted"}
    assert live[2] == live[3], "the delete reads amount"
    assert live[1] == live[2] | {"note"}
    assert live[0] == {"region", "amount", "currency", "customer_id", "_source_dataset_id", "_deleted"}


def test_a_column_is_dead_before_it_is_overwritten_on_every_row(bind: Bind) -> None:
    set_note = {"seq": 5, "type": "update", "arguments": {"assignments": [{"column": "note", "expression": "region"}]}}
    write = WRITE | {"selector": None, "arguments": WRITE["arguments"] | {"columns": ["note"]}}
    _, steps = bind(set_note, write)
    assert flow.live_columns(steps, (), all_active=True)[0] == {"region"}
    assert flow.live_columns(steps, ())[0] == {"region", "note", "_deleted"}, "a deleted row keeps its note"
    drop = {"seq": 1, "type": "delete", "selector": "amount < 0"}
    _, later = bind(drop, set_note, write)
    assert flow.live_columns(later, (), all_active=True)[1] == {"region", "note", "_deleted"}
    assert flow.live_columns(later, (), active_only=True)[1] == {"region"}
    _, some = bind(set_note | {"selector": "amount > 1"}, write)
    assert flow.live_columns(some, (), all_active=True)[0] == {"region", "note", "amount"}


def test_an_output_with_deleted_rows_does_not_look_for_them(bind: Bind) -> None:
    write = WRITE | {"selector": None, "arguments": WRITE["arguments"] | {"columns": ["note"], "include_deleted": True}}
    _, steps = bind(write)
    assert flow.live_columns(steps, ())[0] == {"note"}


def test_used_columns_of_the_input(bind: Bind) -> None:
    input, steps = bind(*ALL)
    used = flow.used_columns(steps, input, "orders", 1)
    assert used[10] == {"currency", "amount", "region", "customer_id", "customer.tier", "converted", "note", UPDATED_AT}
    assert used[40] == {"region", "converted", "total"}
    assert used[50] == {"region", "amount"}, "the columns that the appended rows must fit"
    assert used[60] == {"currency", *WRITE["arguments"]["columns"]}


def test_used_columns_of_other_datasets(bind: Bind) -> None:
    input, steps = bind(*ALL)
    assert flow.used_columns(steps, input, "customers", 1)[10] == {"id", "tier"}
    assert flow.used_columns(steps, input, "rates", 1)[10] == {"currency", "rate"}
    assert flow.used_columns(steps, input, "budgets", 1)[50] == {"version", "region", "amount"}
    assert not any(flow.used_columns(steps, input, "rates", 2).values())


@pytest.mark.parametrize(("key", "named"), [("columns", {"note"}), ("exclude_columns", {"note"}), (None, set())])
def test_an_output_uses_the_columns_it_names(bind: Bind, key: str | None, named: set[str]) -> None:
    arguments = {"destination": {"location": "out.csv"}} | ({key: ["orders.note"]} if key else {})
    input, steps = bind({"seq": 10, "type": "output", "arguments": arguments})
    assert flow.used_columns(steps, input, "orders", 1) == {10: named}


def seqs(steps: Steps, column: str, **of: int) -> list[int]:
    return [writer.seq for writer in flow.writers(steps, column, **of)]


def test_writers_of_a_column(bind: Bind) -> None:
    _, steps = bind(*ALL)
    assert seqs(steps, "region") == [20]
    assert seqs(steps, "region", before=20) == []
    assert seqs(steps, UPDATED_AT) == [10, 20, 30]
    assert seqs(steps, "_deleted") == [30]
    assert seqs(steps, "total", made_by=40) == seqs(steps, "note", made_by=40) == [40], "NULL is its doing too"
    assert flow.last_writer(steps, "amount") is None
    last = flow.last_writer(steps, UPDATED_AT, before=30)
    assert last is not None and last.place is not None and last.place.text == 'note = "x"'


def origins(steps: Steps, input: SourceTable) -> dict[str, list[str]]:
    found = flow.lineage(steps, input, steps[-1].seq)
    return {name: [f"{origin.table}.{origin.column}" for origin in of] for name, of in found.items()}


def test_lineage_of_an_output(bind: Bind) -> None:
    input, steps = bind(*ALL)
    assert origins(steps, input) == {
        "region": ["budgets.region", "orders.region"],
        "amount": ["budgets.amount", "orders.amount"],
        "total": ["orders.amount", "rates.rate"],
        "_source_dataset": [],
    }


def test_lineage_forgets_what_is_overwritten(bind: Bind) -> None:
    write = WRITE | {"arguments": WRITE["arguments"] | {"columns": ["note"]}}
    input, steps = bind(CONVERT, write)
    assert origins(steps, input) == {"note": ["customers.tier", "orders.region"]}
    deleted_too = write | {"arguments": write["arguments"] | {"include_deleted": True}}
    input, steps = bind(CONVERT, deleted_too)
    assert origins(steps, input) == {"note": ["customers.tier", "orders.note", "orders.region"]}


def joining(seq: int, *joins: dict[str, str], **assignments: str) -> dict[str, Any]:
    listed = [{"column": column, "expression": text} for column, text in assignments.items()]
    return {"seq": seq, "type": "update", "arguments": {"joins": list(joins), "assignments": listed}}


FX = {"alias": "fx", "dataset_id": "rates", "on": "orders.currency = fx.currency"}


def test_what_several_steps_join_in_the_same_way_is_shared(bind: Bind) -> None:
    turned = FX | {"on": "fx.currency = orders.currency"}
    _, steps = bind(
        joining(1, FX, converted="amount * fx.rate", note="customer.tier"),
        joining(2, turned, note="CONCAT(fx.source, customer.city)"),
    )
    shared = flow.shared_tables(steps)
    assert {alias: (table.keys, table.columns) for alias, table in shared.items()} == {
        "customer": ({"customer_id"}, ("tier", "city")),
        "fx": ({"currency"}, ("rate", "source")),
    }
    assert flow.stale_tables(steps[0], shared) == set()
    _, moving = bind(joining(1, FX, currency="fx.source", converted="fx.rate"), joining(2, FX, converted="fx.rate"))
    assert flow.stale_tables(moving[0], flow.shared_tables(moving)) == {"fx"}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([], id="nothing else"),
        pytest.param([FX | {"on": "fx.currency = region"}], id="another key"),
        pytest.param([FX | {"dataset_id": "customers", "on": "fx.id = currency"}], id="another dataset"),
        pytest.param([FX | {"selector": 'source = "ECB"'}], id="some rows"),
        pytest.param([FX | {"alias": "other", "on": "other.currency = orders.currency"}], id="another alias"),
        pytest.param([FX | {"on": "orders.currency = fx.currency AND fx.rate > amount"}], id="a further condition"),
    ],
)
def test_what_is_joined_in_another_way_is_not_shared(bind: Bind, other: list[dict[str, str]]) -> None:
    _, steps = bind(joining(1, FX, converted="amount * fx.rate"), joining(2, *other, note='"x"'))
    assert flow.shared_tables(steps) == {}
