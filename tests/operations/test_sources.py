"""Sources are checked alike in joins and appends: what their expressions can read, and what can be read of them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operations.test_flow import DATASETS, dataset

from tallybook.operations import flow
from tallybook.project.bind import BoundProject, bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project

AMOUNTS = {"group_by": ["region"], "aggregations": [{"column": "amount", "expression": "SUM(amount)"}]}
TOTALS = {"group_by": ["region"], "aggregations": [{"column": "budget", "expression": "SUM(amount)"}]}


def in_time(name: str, mode: str) -> dict[str, Any]:
    columns = [{"name": "region", "type": "string"}, {"name": "amount", "type": "decimal(10,2)"}]
    return {"name": name, "temporal_mode": mode, "columns": columns}


WITH_TIME = DATASETS | {
    "staff": dataset("staff", "region", "amount", main_table=in_time("staff", "period")),
    "terms": dataset("terms", "region", "amount", main_table=in_time("terms", "bitemporal")),
}


def bound(*operations: dict[str, Any]) -> BoundProject:
    named = [{"seq": seq, "name": f"step {seq}"} | operation for seq, operation in enumerate(operations, 1)]
    body = {"id": "p", "name": "P", "input_dataset_id": "orders", "operations": named}
    project = Project.model_validate(body | {"selectors": {"final": 'version = "final"'}}, strict=False)
    return bind_project(project, project.operations, DatasetVersions.of(WITH_TIME))


def join(value: str = "b.budget", **source: Any) -> dict[str, Any]:
    joined = {"alias": "b", "dataset_id": "budgets", "on": "orders.region = b.region"} | source
    return {"type": "update", "arguments": {"joins": [joined], "assignments": [{"column": "x", "expression": value}]}}


def append(source: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    return {"type": "append", "arguments": {"source": {"dataset_id": "budgets"} | (source or {}), **arguments}}


def test_a_join_reads_the_columns_of_its_aggregation() -> None:
    found = bound(join(selector='{{final}} AND b.amount > 0 AND _period = "x"', aggregation=TOTALS))
    assert found.problems == () and found.input is not None
    (step,) = found.steps
    assert step.reads == {"region"}
    assert step.source_columns == ((step.joins[0].source, {"region", "amount", "version", "_period"}),)
    lineage = flow._origins_of(step, "arguments.assignments[0].expression", {})
    assert [(origin.dataset_id, origin.column) for origin in lineage] == [("budgets", "amount")]
    assert flow.tables_without_positions(found.input, found.steps, ["_row_id"]) == {step.joins[0].source}
    assert list(step.per_expression) == [
        "arguments.joins[0].selector",
        "arguments.joins[0].aggregation.aggregations[0].expression",
        "arguments.joins[0].on",
        "arguments.assignments[0].expression",
    ]


def test_a_source_that_reads_row_ids_gets_them() -> None:
    found = bound(join("b.amount", selector="_row_id IS NOT NULL"))
    assert found.problems == () and found.input is not None
    assert flow.tables_without_positions(found.input, found.steps) == {found.input}


def test_an_append_takes_both_keys_inside_and_beside_its_source() -> None:
    inside = bound(append({"selector": "{{final}}", "aggregation": AMOUNTS}))
    beside = bound(append(source_selector="{{final}}", aggregation=AMOUNTS))
    assert inside.problems == beside.problems == ()
    assert list(inside.steps[0].expressions) == [
        "arguments.source.selector",
        "arguments.source.aggregation.aggregations[0].expression",
    ]
    assert list(beside.steps[0].expressions) == [
        "arguments.source_selector",
        "arguments.aggregation.aggregations[0].expression",
    ]
    assert inside.steps[0].source_columns == beside.steps[0].source_columns


@pytest.mark.parametrize(
    ("operation", "type", "path", "words"),
    [
        (append({"selector": "amount > 0"}, source_selector="amount > 0", aggregation=AMOUNTS), "InvalidArguments",
         "arguments.source_selector", "`source_selector` and the `selector` of `source` say the same"),
        (append({"aggregation": AMOUNTS}, aggregation=AMOUNTS), "InvalidArguments", "arguments.aggregation", "both"),
        (append({"selector": " ", "aggregation": AMOUNTS}), "InvalidSelector", "arguments.source.selector", "blank"),
        (append({"aggregation": AMOUNTS}, source_selector=" "), "InvalidSelector", "arguments.source_selector",
         "blank"),
        (append({"selector": "customer_id = region", "aggregation": AMOUNTS}), "ColumnNotFound",
         "arguments.source.selector", "column 'customer_id' cannot be read here: it is a column of the working rows"),
        (join("b.amount", selector="orders.region = b.region"), "ColumnNotFound", "arguments.joins[0].selector",
         "'orders.region' cannot be read here"),
        (join("b.amount", selector="regoin = 'x'"), "ColumnNotFound", "arguments.joins[0].selector",
         "there is no column 'regoin'"),
        (join("b.amount", aggregation=TOTALS), "ColumnNotFound", "arguments.assignments[0].expression",
         "'b' has no column 'amount'"),
        (join(aggregation=TOTALS | {"group_by": ["note"]}), "ColumnNotFound",
         "arguments.joins[0].aggregation.group_by[0]", "column 'note' cannot be read here"),
        (join("b.region", aggregation=TOTALS | {"aggregations": [{"column": "_x y", "expression": "COUNT(*)"}]}),
         "InvalidColumnName", "arguments.joins[0].aggregation.aggregations[0].column", "not a column name"),
        (join("b.region", aggregation=TOTALS | {"aggregations": [{"column": "_labels", "expression": "COUNT(*)"}]}),
         "SystemColumn", "arguments.joins[0].aggregation.aggregations[0].column", "system column"),
        (join(aggregation=TOTALS | {"aggregations": [{"column": "budget", "expression": "amount"}]}),
         "InvalidAggregation", "arguments.joins[0].aggregation.aggregations[0].expression", "amount"),
        (join(aggregation={"group_by": [], "aggregations": TOTALS["aggregations"]}), "EmptyGroupBy",
         "arguments.joins[0].aggregation.group_by", "group by"),
    ],
    ids=lambda value: value if isinstance(value, str) and value[:1].isupper() else "",
)  # fmt: skip
def test_what_is_wrong_with_a_source_is_found_once(operation: dict[str, Any], type: str, path: str, words: str) -> None:
    problems = bound(operation).problems
    assert [(problem.type, problem.path) for problem in problems] == [(type, path)]
    assert words in problems[0].message


def test_a_source_may_have_a_period_or_a_date() -> None:
    booked = {"type": "update", "arguments": {"assignments": [{"column": "booked", "expression": "TODAY()"}]}}
    found = bound(
        booked,
        join("b.amount", dataset_id="staff", period="prior"),
        join("b.amount", dataset_id="staff", period={"offset": -2}),
        join("b.amount", dataset_id="terms", period="same_last_year", as_of="period_end"),
        join("b.amount", dataset_id="terms", as_of="booked", selector="amount > 0"),
        append({"dataset_id": "staff", "period": "year_to_date"}),
    )
    assert [str(problem) for problem in found.problems] == []
    tables = [source for step in found.steps for source in step.sources]
    assert list(map(str, tables)) == [
        "staff v1, table staff, period prior",
        "staff v1, table staff, period offset -2",
        "terms v1, table terms, period same_last_year, as of the end of the period",
        "terms v1, table terms",
        "staff v1, table staff, period year_to_date",
    ]
    dated = found.steps[4]
    assert dated.reads == {"region", "booked"} and tables[3].as_of == "row"
    assert list(dated.row_expressions)[:2] == ["arguments.joins[0].on", "arguments.joins[0].as_of"]
    assert dated.source_columns[0][1] == {"region", "amount", "_valid_from", "_valid_to"}


@pytest.mark.parametrize(
    ("operation", "type", "key", "words"),
    [
        (join("b.amount", period="prior"), "InvalidArguments", "period", "has no time"),
        (join("b.amount", dataset_id="terms", period="year_to_date"), "InvalidArguments", "period", "several periods"),
        (join("b.amount", dataset_id="staff", as_of="period_end"), "InvalidArguments", "as_of", "is not bitemporal"),
        (join("b.amount", as_of="period_end"), "InvalidArguments", "as_of", "is not bitemporal"),
        (join("b.amount", dataset_id="terms", as_of="region"), "TypeMismatch", "as_of", "needs a date"),
        (join("b.amount", dataset_id="terms", as_of="period_edn"), "ColumnNotFound", "as_of", "'period_edn'"),
        (join("b.amount", dataset_id="terms", as_of="2026-01-31"), "InvalidArguments", "as_of", "neither"),
        (join("b.amount", dataset_id="terms", as_of="_created_at", period="prior"), "InvalidArguments", "as_of",
         "read for one of them"),
        (join("b.budget", dataset_id="terms", as_of="region", aggregation=TOTALS), "InvalidArguments", "as_of",
         "computed before"),
    ],
)  # fmt: skip
def test_a_period_or_date_that_does_not_fit(operation: dict[str, Any], type: str, key: str, words: str) -> None:
    first = bound(operation).problems[0]
    assert (first.type, first.path) == (type, f"arguments.joins[0].{key}") and words in first.message


def test_an_append_has_no_working_rows_to_take_a_date_from() -> None:
    (problem,) = bound(append({"dataset_id": "terms", "as_of": "note"})).problems
    assert (problem.type, problem.path) == ("InvalidArguments", "arguments.source.as_of")
