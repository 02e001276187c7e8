"""Aggregates over the same rows that are computed in one pass: which ones, and that the results are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.kit.operations import NOW, aggregate, append, delete, orders, update

from tallybook.engine.execute import Sink, Warn, execute
from tallybook.engine.frames import FrameTables
from tallybook.engine.keeper import Keeper, MemoryKeeper
from tallybook.engine.local import LocalKeeper
from tallybook.engine.plan import Calculation, Optimisations, RunContext
from tallybook.errors import RunError
from tallybook.model.dataset import Dataset
from tallybook.model.period import GREGORIAN
from tallybook.operations.publication import Publication
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project

TYPES = {
    "order_id": "string",
    "region": "string",
    "status": "string",
    "amount": "decimal(10,2)",
    "quantity": "integer",
}
COLUMNS = [{"name": name, "type": type} for name, type in TYPES.items()]
TABLE = {"name": "orders", "columns": COLUMNS, "temporal_mode": "period"}
DATASETS = {
    id: Dataset.model_validate(
        {"id": id, "name": id, "main_table": TABLE, "natural_key_columns": ["order_id"]}, strict=False
    )
    for id in ("orders", "more")
}
OUT: dict[str, Any] = {"type": "output", "arguments": {"destination": {"location": "out"}}}
DETAIL = "_operation_seq = 0"
RESULTS = {"total": "SUM(amount)", "mean": "AVG(quantity)", "n": "COUNT(*)"}


def by(*keys: str, selector: str | None = DETAIL, **results: str) -> dict[str, Any]:
    return aggregate(keys, selector, **(results or RESULTS))


def calculated(*operations: dict[str, Any], one_pass: bool = True) -> Calculation:
    numbered = [{"seq": 10 * at, "name": f"step {at}", **operation} for at, operation in enumerate(operations, 1)]
    for operation in numbered:
        if operation["type"] == "output":
            operation["arguments"] = {"destination": {"location": f"out-{operation['seq']}"}}
    body = {"id": "p", "name": "P", "input_dataset_id": "orders", "operations": numbered}
    project = Project.model_validate(body, strict=False)
    bound = bind_project(project, project.operations, DatasetVersions.of(DATASETS))
    period = GREGORIAN.period("2026-01")
    calculation = Calculation.of(bound, RunContext("r", period, period.start_date, NOW, 1))
    return replace(calculation, optimisations=Optimisations(one_pass=one_pass))


@pytest.mark.parametrize(
    ("operations", "passes"),
    [
        pytest.param([by("region"), by("status"), by("region", "status"), OUT], [(10, 20, 30)], id="other keys"),
        pytest.param([by("region"), by("region"), OUT], [(10, 20)], id="the same keys"),
        pytest.param(
            [by("region", a="SUM(amount)", b="COUNT(*)"), by("status", c="COUNT(*)", d="SUM(amount)"), OUT],
            [(10, 20)],
            id="other names in another order",
        ),
        pytest.param(
            [by("region"), append("more"), by("status", selector="_operation_seq = 0"), OUT],
            [(10, 30)],
            id="rows that are added between them",
        ),
        pytest.param(
            [by("region"), update("_operation_seq > 0", total="0"), by("status"), OUT],
            [(10, 30)],
            id="a change of other rows",
        ),
        pytest.param(
            [by("region"), by("status", n="COUNT(*)"), by("_period"), by("_labels", n="COUNT(*)"), OUT],
            [(10, 30), (20, 40)],
            id="two kinds of results",
        ),
        pytest.param([by("region"), OUT, by("status"), OUT], [], id="an output between them"),
        pytest.param([by("region"), update(amount="1"), by("status"), OUT], [], id="a change of the rows"),
        pytest.param([by("region"), delete("amount = 0"), by("status"), OUT], [], id="a delete"),
        pytest.param([by("region"), by("status", selector=None), OUT], [], id="the summaries as well"),
        pytest.param([by("region"), by("status", selector="amount > 0"), OUT], [], id="other rows"),
        pytest.param([by("region"), by("order_id", "status"), OUT], [], id="a group for almost every row"),
        pytest.param(
            [by("region", n="COUNT_DISTINCT(status)"), by("status", n="COUNT_DISTINCT(status)"), OUT],
            [],
            id="results that need all values",
        ),
        pytest.param([by("region"), by("status"), {**OUT, "selector": DETAIL}], [], id="summaries that nothing uses"),
        pytest.param(
            [by("region"), by("status"), {**OUT, "selector": "_operation_seq = 10"}], [], id="one summary that is used"
        ),
        pytest.param(
            [by("region", quantity="SUM(quantity)"), by("status", quantity="SUM(quantity)"), update(quantity="0"), OUT],
            [],
            id="a result that is overwritten unread",
        ),
    ],
)
def test_aggregates_with_the_same_results_over_the_same_rows_are_one_pass(
    operations: Sequence[dict[str, Any]], passes: Sequence[tuple[int, ...]]
) -> None:
    assert list(calculated(*operations).passes()) == passes


@dataclass
class Collected(Sink):
    """The rows of every output."""

    written: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)

    def publish(self, output: Publication, rows: DataFrame, _warn: Warn) -> None:
        self.written[output.seq] = sorted(map(tuple, rows.collect()), key=str)


def written(
    spark: SparkSession, *operations: dict[str, Any], one_pass: bool = True, keeper: Keeper | None = None
) -> dict[int, list[Any]]:
    rows = [
        ("A", "EMEA", "active", "10.00", 1),
        ("B", "EMEA", None, "20.50", None),
        ("C", None, "active", None, 3),
        ("D", None, None, "7.25", 4),
        ("E", "APAC", "closed", "5.00", 5, True),
    ]
    frame = orders(spark, *rows)
    calculation = calculated(*operations, one_pass=one_pass)
    tables = FrameTables({("orders", "orders"): frame, ("more", "orders"): frame}, calculation.context)
    sink = Collected()
    execute(spark, calculation, tables, sink, keeper=keeper)
    return sink.written


@pytest.mark.parametrize(
    "operations",
    [
        pytest.param([by("region"), by("status"), by("region", "status"), OUT], id="NULL keys"),
        pytest.param([by("region", "status"), by("status", "region"), by("region", "status"), OUT], id="same keys"),
        pytest.param([by("_period"), by("_source_table", "_period"), by("region"), OUT], id="constant keys"),
        pytest.param(
            [by("quantity", n="SUM(quantity)"), by("amount", n="SUM(quantity)"), by("region", n="SUM(quantity)"), OUT],
            id="keys that are added up",
        ),
        pytest.param(
            [append("more"), by("region", selector="amount > 0"), by("status", selector="amount > 0"), OUT],
            id="rows of two segments",
        ),
        pytest.param(
            [by("region", amount="SUM(amount)", n="COUNT(*)"), by("status", t="SUM(amount)", n="COUNT(*)"), OUT],
            id="a result in a column that exists, and in a new one",
        ),
        pytest.param(
            [by("region"), by("region", selector="_operation_seq = 10", n="SUM(n)"), by("status"), OUT, OUT],
            id="a summary of a summary between them",
        ),
        pytest.param(
            [by("region"), update("_operation_seq > 0", kind='"total"'), by("kind"), by("kind", "region"), OUT],
            id="a key that other rows got between them",
        ),
        pytest.param([delete("amount = 7.25"), by("region", selector=None), OUT], id="one aggregate"),
        pytest.param([by("region", selector="amount > 99"), by("status", selector="amount > 99"), OUT], id="no rows"),
        pytest.param(
            [update(amount="amount * 2"), by("region"), delete("region IS NULL"), by("region"), by("status"), OUT],
            id="some before a delete and some after it",
        ),
    ],
)
def test_one_pass_has_the_same_rows_and_ids(spark: SparkSession, operations: Sequence[dict[str, Any]]) -> None:
    once = written(spark, *operations)
    assert once == written(spark, *operations, one_pass=False)
    assert any(once.values())


def test_every_keeper_keeps_the_groups(spark: SparkSession) -> None:
    """Scenarios keep rows in this process, clusters in memory."""
    shown = {"first": "MIN_AGG(order_id)", "total": "SUM(amount)", "mean": "AVG(quantity)", "n": "COUNT(*)"}
    operations = [
        by("region", "quantity", **shown),
        by("_deleted", "_period", **shown),
        by("amount", **shown),
        OUT,
        OUT,
    ]
    separate = written(spark, *operations, one_pass=False)
    for keeper in (Keeper(), MemoryKeeper(), LocalKeeper(spark)):
        assert written(spark, *operations, keeper=keeper) == separate


def test_one_pass_groups_the_rows_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[DataFrame] = []
    keep = "tallybook.engine.keeper.Keeper.keep"
    monkeypatch.setattr(keep, lambda _self, frame, _columns: kept.append(frame) or frame)
    written(spark, by("region"), by("status"), by("region", "status"), OUT, OUT)
    assert [len(frame.columns) for frame in kept] == [2 + 3 + 1]


RESULT, ASSIGNMENT = "arguments.aggregations[0].expression", "arguments.assignments[0].expression"


@pytest.mark.parametrize(
    ("operations", "seq", "path"),
    [
        ([by("region", n="SUM(TO_INTEGER(order_id))"), by("status", n="SUM(TO_INTEGER(order_id))")], 10, RESULT),
        ([update(x="TO_INTEGER(order_id)"), by("region", n="SUM(x)"), by("status", n="SUM(x)")], 10, ASSIGNMENT),
        ([by("region", n="SUM(quantity)"), update(x="TO_INTEGER(order_id)"), by("status", n="SUM(x)")], 20, ASSIGNMENT),
        ([by("region", n="TO_INTEGER(MIN_AGG(status))"), by("_period", n="COUNT(*)")], 10, RESULT),
    ],
)
def test_a_failure_in_one_pass_names_the_operation(
    spark: SparkSession, operations: Sequence[dict[str, Any]], seq: int, path: str
) -> None:
    with pytest.raises(RunError) as caught:
        written(spark, *operations, OUT, one_pass=True)
    problem = caught.value.problem
    assert (problem.type, problem.seq, problem.path) == ("EvaluationError", seq, path)
