"""Which rows a run keeps because they are dear and used more than once. Nothing here needs Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.kit.operations import NOW, aggregate, append, update

from tallybook.engine import keeping
from tallybook.engine.keeper import allow_deep_plans
from tallybook.engine.keeping import Keep
from tallybook.engine.plan import Calculation, RunContext
from tallybook.model.dataset import Dataset
from tallybook.model.period import GREGORIAN
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project


def dataset(id: str) -> Dataset:
    columns = [{"name": "key", "type": "string"}, {"name": "amount", "type": "decimal(10,2)"}]
    return Dataset.model_validate({"id": id, "name": id, "main_table": {"name": id, "columns": columns}}, strict=False)


DATASETS = {id: dataset(id) for id in ("sales", "rates", "prices")}
OUT: dict[str, Any] = {"type": "output", "arguments": {"destination": {"location": "out"}}}
DETAIL = {**OUT, "selector": "_operation_seq = 0"}
TOTALS = aggregate(["key"], "_operation_seq = 0", total="SUM(amount)")


def joined(dataset_id: str) -> dict[str, Any]:
    body = update(amount="sales.amount * r.amount")
    body["arguments"]["joins"] = [{"alias": "r", "dataset_id": dataset_id, "on": "sales.key = r.key"}]
    return body


def kept(
    *operations: dict[str, Any], needs_working: bool = False, unique: Sequence[str] = ()
) -> list[tuple[int, int, str]]:
    """The seq before which rows are kept, the operation that made them, and the reason."""
    calculation, keeps = calculated(*operations, needs_working=needs_working, unique=unique)
    return [(calculation.steps[keep.step].seq, keep.made_by, keep.reason) for keep in keeps]


def calculated(
    *operations: dict[str, Any], needs_working: bool = False, unique: Sequence[str] = ()
) -> tuple[Calculation, tuple[Keep, ...]]:
    """A project with these operations, and what it keeps. The table `rates` is small. Tables with the aliases `unique`
    are known to have unique keys."""
    numbered = [
        {"seq": 10 * index, "name": f"step {index}", **operation} for index, operation in enumerate(operations, 1)
    ]
    for operation in numbered:
        if operation["type"] == "output":
            operation["arguments"] = {"destination": {"location": f"out-{operation['seq']}"}}
    body = {"id": "p", "name": "P", "input_dataset_id": "sales", "operations": numbered}
    project = Project.model_validate(body, strict=False)
    bound = bind_project(project, project.operations, DatasetVersions.of(DATASETS))
    period = GREGORIAN.period("2026-01")
    calculation = Calculation.of(bound, RunContext("r", period, period.start_date, NOW, 1))
    keeps = calculation.keeps(
        lambda source: source.dataset.id == "rates", droppable=lambda _step: unique, needs_working=needs_working
    )
    return calculation, tuple(keeps)


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([OUT], id="one output"),
        pytest.param([OUT, OUT, OUT], id="several outputs of the input"),
        pytest.param([update(total="amount * 2"), OUT, update(other="total"), OUT], id="projections"),
        pytest.param([TOTALS, OUT], id="a summary that is used once"),
        pytest.param([TOTALS, TOTALS, TOTALS, OUT], id="aggregates over the detail"),
        pytest.param([TOTALS, DETAIL, DETAIL], id="outputs without the summary"),
        pytest.param([joined("rates"), OUT, OUT], id="a small join"),
        pytest.param([joined("prices"), OUT], id="a large join that is used once"),
        pytest.param([append("rates"), OUT, OUT], id="appended rows"),
        pytest.param([TOTALS, {"type": "delete", "selector": "_operation_seq = 20"}, OUT], id="a selector of no rows"),
    ],
)
def test_what_is_cheap_or_used_once_is_computed_again(operations: list[dict[str, Any]]) -> None:
    assert kept(*operations) == []


def test_a_summary_that_two_outputs_write_is_kept() -> None:
    assert kept(TOTALS, OUT, OUT) == [(20, 10, "operation 10 shuffles rows")]


def test_a_check_is_a_use() -> None:
    check = {"type": "check", "arguments": {"assert": "total > 0"}}
    assert kept(TOTALS, check, OUT) == [(20, 10, "operation 10 shuffles rows")]
    assert kept(TOTALS, {**check, "selector": "_operation_seq = 0"}, OUT) == [], "it does not look at the summary"


def test_a_summary_is_kept_after_the_last_change_before_two_uses() -> None:
    change = update("_operation_seq = 10", total="total * 2")
    assert kept(TOTALS, change, OUT, OUT) == [(30, 10, "operation 10 shuffles rows")]


def test_a_summary_that_is_read_and_changed_is_kept_before_that() -> None:
    change = update("_operation_seq = 10", total="total * 2")
    assert kept(TOTALS, OUT, change, OUT) == [(20, 10, "operation 10 shuffles rows")]


def test_summaries_of_summaries_are_kept_once_each() -> None:
    """Without that a plan doubles with each aggregate."""
    every = aggregate(["key"], total="SUM(amount)")
    assert kept(every, every, every, OUT) == [
        (20, 10, "operation 10 shuffles rows"),
        (30, 20, "operation 20 shuffles rows"),
    ]


def test_kept_summaries_of_many_summaries_are_cut() -> None:
    """Their sizes are 1, 2, 4, 8, 16, 32, and 1 + 16 + 8 + 4 + 2 + 1 after the first cut."""
    every = aggregate(["key"], total="SUM(amount)")
    keeps = calculated(*[every] * 9, OUT)[1]
    assert [keep.made_by for keep in keeps if keep.is_cut] == [60, 70, 80]


def test_groups_of_passes_are_cut_once_their_plan_is_long() -> None:
    """Each pair of aggregates reads the groups of the pair before: sizes of 1, 3, 7, 15 and 31 steps."""
    selectors = ["_operation_seq = 0", *(f"_operation_seq IN ({seq}, {seq + 10})" for seq in range(10, 110, 20))]
    pairs = [aggregate([by], selector, total="SUM(amount)") for selector in selectors for by in ("key", "amount")]
    calculation, alone = calculated(*pairs, OUT)
    in_passes = [seq for seqs in calculation.passes() for seq in seqs]
    assert in_passes == [10 * number for number in range(1, 13)]
    keeps = calculation.keeps(lambda _source: True, in_passes)
    assert [(keep.made_by, keep.is_cut) for keep in keeps] == [(90, True), (100, True)]
    assert [keep.made_by for keep in alone] == [10 * number for number in range(1, 11)]


SHARE = update(amount="amount / SUM(amount) OVER (key)")


def test_groups_of_totals_are_kept_if_the_rows_are_used_again() -> None:
    assert kept(SHARE, OUT) == []
    assert kept(SHARE, OUT, OUT) == [(10, 10, "they are used 2 times")]
    assert kept(SHARE, OUT, needs_working=True) == [(10, 10, "they are used 2 times")]
    assert kept(TOTALS, SHARE, OUT)[-1] == (20, 20, "they are used 2 times"), "the rows of both origins need them"
    detail = update("_operation_seq = 0", amount="amount / SUM(amount) OVER (key)")
    assert kept(TOTALS, detail, OUT) == []


def test_groups_that_may_be_overwritten_unread_are_not_kept() -> None:
    """Nothing computes their aggregates then, which could fail."""
    delete = {"type": "delete", "selector": 'key = "a"'}
    assert kept(SHARE, update(amount="0"), OUT, OUT) == []
    assert kept(SHARE, delete, update(amount="0"), OUT, OUT) == []


def test_groups_of_totals_are_cut_when_their_plan_is_long() -> None:
    """Each of these updates reads the rows twice, so the plan doubles until then: 1, 3, 7, 15 and 31 steps."""
    keeps = calculated(*[SHARE] * 8, OUT)[1]
    assert [keep.segment for keep in keeps] == [None] * 7
    assert [keep.made_by for keep in keeps if keep.is_cut] == [50, 60, 70]


def test_rows_are_cut_before_totals_that_may_be_overwritten_unread() -> None:
    assert kept(*[SHARE] * 6, update(amount="0"), OUT)[-1] == (60, 0, "31 steps would be planned twice")


def test_a_large_join_is_kept_for_two_uses_of_all_rows() -> None:
    expected = [(20, 0, "operation 10 joins prices")]
    assert kept(joined("prices"), OUT, OUT) == expected
    assert kept(joined("prices"), DETAIL, DETAIL) == expected, "it selects all of them"
    assert kept(joined("prices"), OUT, needs_working=True) == expected


def test_a_large_join_is_kept_for_three_uses_of_some_rows() -> None:
    """Spark often filters before it joins, so two of them take less time than keeping all rows."""
    some = {**OUT, "selector": 'key = "a"'}
    assert kept(joined("prices"), some, some) == kept(joined("prices"), some, OUT) == []
    assert kept(joined("prices"), some, some, some) == [(20, 0, "operation 10 joins prices")]
    assert kept(joined("prices"), some, OUT, OUT) == [(20, 0, "operation 10 joins prices")]


def test_a_large_join_is_kept_for_totals_of_its_rows() -> None:
    assert kept(joined("prices"), SHARE, OUT) == [(20, 0, "operation 10 joins prices")]


def test_a_large_join_is_kept_for_uses_that_need_it() -> None:
    """The counts read nothing of `prices`. If its keys are unique, they do not need the join."""
    count = aggregate(["key"], "_operation_seq = 0", lines="COUNT(*)")
    steps = [joined("prices"), count, TOTALS, count]
    assert kept(*steps) == [(20, 0, "operation 10 joins prices")]
    assert kept(*steps, unique=["r"]) == []
    assert kept(*steps, TOTALS, unique=["r"]) == [(30, 0, "operation 10 joins prices")]


def test_a_large_join_is_needed_for_what_is_computed_from_it() -> None:
    price = update(price="r.amount")
    price["arguments"]["joins"] = joined("prices")["arguments"]["joins"]
    by_price = update("price > 100", amount="0")
    totals = aggregate(["key"], "_operation_seq = 0", total="SUM(amount)")
    expected = [(30, 0, "operation 10 joins prices")]
    assert kept(price, by_price, totals, totals, totals, unique=["r"]) == expected
    assert kept(price, update(price="price * 2"), totals, totals, totals, unique=["r"]) == []
    deleted = {"type": "delete", "selector": "price > 100"}
    assert kept(price, deleted, totals, totals, totals, unique=["r"]) == expected


def test_the_final_rows_are_a_use() -> None:
    assert kept(TOTALS, OUT, needs_working=True) == [(20, 10, "operation 10 shuffles rows")]
    assert kept(TOTALS, needs_working=True) == []


def test_an_aggregated_append_is_kept_for_two_uses() -> None:
    grouped = append("rates", aggregation={"group_by": ["key"], "aggregations": [SUM]})
    assert kept(grouped, OUT, OUT) == [(20, 10, "operation 10 shuffles rows")]


SUM = {"column": "amount", "expression": "SUM(amount)"}


def test_a_long_chain_of_dependent_updates_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "CUT_EVERY", 3)
    dependent, independent = update("amount < 5", amount="amount + 1"), update('key = "a"', total="amount * 3")
    assert kept(*[dependent] * 5, OUT) == [(50, 0, "3 projections depend on each other")]
    assert kept(*[independent] * 20, OUT) == []


def test_small_tables_are_read_once_if_several_operations_use_the_joined_rows() -> None:
    def tables(*operations: dict[str, Any]) -> list[tuple[str, str]]:
        calculation, _ = calculated(*operations)
        kept = calculation.kept_tables(lambda table: table.dataset.id == "rates")
        return [(table.alias, table.reason) for table in kept]

    assert tables(joined("rates"), TOTALS, OUT) == [("r", "2 operations use the rows that it is joined to")]
    assert tables(joined("rates"), TOTALS, {**OUT, "selector": "_operation_seq = 20"}) == []
    assert tables(joined("rates"), OUT) == tables(OUT, joined("rates"), OUT) == tables(joined("rates")) == []
    assert tables(joined("prices"), TOTALS, OUT) == []


def test_connect_can_make_a_checkpoint_of_a_long_plan() -> None:
    from pyspark.sql.connect.proto import CheckpointCommand, Relation

    plan = Relation()
    for _ in range(200):
        longer = Relation()
        longer.limit.input.CopyFrom(plan)
        plan = longer
    allow_deep_plans()
    assert CheckpointCommand(relation=plan).relation == plan
