"""Column names that Spark cannot tell apart are problems, in every key that names a column."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.project.conftest import Validate

from tallybook.model.columns import RESERVED, folded, system_column

SPELLINGS = ("_DELETED", "_Period", "_Row_Id", "_VALID_FROM", "_Source_Dataset", "_labelS")


def dataset(column: dict[str, Any], **table: Any) -> str:
    columns = [{"name": "amount", "type": "integer"}, {"type": "string", **column}]
    body = {"id": "odd", "name": "Odd", "main_table": {"name": "odd", "columns": columns, **table}}
    return json.dumps({"dataset": body})


def operation(**body: Any) -> str:
    project = {
        "id": "p",
        "name": "P",
        "input_dataset_id": "sales-orders",
        "operations": [{"seq": 1, "name": "One", **body}],
    }
    return json.dumps({"project": project})


def aggregation(column: str, group_by: str = "region", of: str = "order_id") -> dict[str, Any]:
    return {"group_by": [group_by], "aggregations": [{"column": column, "expression": f"MAX_AGG({of})"}]}


def found(problems: list[Any]) -> list[tuple[str, str]]:
    return [(problem.type, problem.path.rpartition("main_table.")[2]) for problem in problems]


@pytest.mark.parametrize("name", sorted({*SPELLINGS, *RESERVED}))
def test_a_system_column_in_any_case_is_not_for_users(name: str, validate: Validate) -> None:
    problems = validate(
        {
            "column.yaml": dataset({"name": name}),
            "assigned.yaml": operation(
                type="update", arguments={"assignments": [{"column": name, "expression": "order_id"}]}
            ),
            "computed.yaml": operation(type="aggregate", arguments=aggregation(name)).replace('"p"', '"q"'),
            "appended.yaml": operation(
                type="append",
                arguments={"source": {"dataset_id": "budgets"}, "aggregation": aggregation(name, of="owner")},
            ).replace('"p"', '"r"'),
        }
    )
    files = {"appended.yaml", "column.yaml", "computed.yaml"} | ({"assigned.yaml"} if name != "_labels" else set())
    assert {problem.place.file for problem in problems if problem.place} == files
    assert {problem.type for problem in problems} == {"SystemColumn"}


@pytest.mark.parametrize("name", SPELLINGS)
def test_other_spellings_are_not_found_where_a_column_is_read(name: str, validate: Validate) -> None:
    read = {"destination": {"location": "o.csv"}, "columns": ["region", name]}
    scenario = {
        "name": "S",
        "project": "order-close",
        "period": "2026-01",
        "data": {"sales-orders": {"orders": [{"order_id": "a", name: "b"}]}},
        "expect": {"row_count": 1},
    }
    problems = validate(
        {
            "grouped.yaml": operation(type="aggregate", arguments=aggregation("x", name)),
            "written.yaml": operation(type="output", arguments=read).replace('"p"', '"q"'),
            "given.yaml": json.dumps({"scenario": scenario}),
            "source.yaml": dataset({"name": "text", "source": name}),
        }
    )
    assert {(problem.place.file, problem.type) for problem in problems if problem.place} >= {
        ("grouped.yaml", "ColumnNotFound"),
        ("written.yaml", "ColumnProjectionError"),
        ("given.yaml", "ColumnNotFound"),
        ("source.yaml", "SystemColumn"),
    }


@pytest.mark.parametrize(
    ("column", "table", "problem"),
    [
        ({"name": "text", "source": "Amount"}, {}, ("DuplicateColumn", "columns[1].source")),
        ({"name": "AMOUNT"}, {}, ("DuplicateColumn", "columns[1].name")),
        ({"name": "text", "source": "_METADATA"}, {}, ("InvalidColumnName", "columns[1].source")),
        ({"name": "_metadata"}, {}, ("InvalidColumnName", "columns[1].name")),
        ({"name": "text"}, {"period_column": "_deleted"}, ("SystemColumn", "period_column")),
        ({"name": "text"}, {"period_column": "_Row_Id"}, ("SystemColumn", "period_column")),
        ({"name": "text"}, {"valid_to_column": "_VALID_FROM"}, ("SystemColumn", "valid_to_column")),
        ({"name": "text"}, {"valid_from_column": "TEXT"}, ("DuplicateColumn", "valid_from_column")),
    ],
)
def test_columns_of_the_data_that_spark_cannot_tell_apart(
    column: dict[str, Any], table: dict[str, Any], problem: tuple[str, str], validate: Validate
) -> None:
    assert found(validate({"odd.yaml": dataset(column, **table)})) == [problem]


@pytest.mark.parametrize(
    ("column", "table"),
    [
        ({"name": "text", "source": "amount"}, {}),
        ({"name": "original", "source": "_row_id"}, {}),
        ({"name": "text"}, {"period_column": "text"}),
        ({"name": "text"}, {"period_column": "_PERIOD"}),
    ],
)
def test_one_column_of_the_data_may_serve_twice(
    column: dict[str, Any], table: dict[str, Any], validate: Validate
) -> None:
    assert validate({"odd.yaml": dataset(column, **table)}) == []


@pytest.mark.parametrize(
    ("one", "other"), [("s", "ſ"), ("k", "\u212a"), ("i", "İ"), ("i", "ı"), ("ß", "ẞ"), ("σ", "ς")]
)
def test_letters_that_are_equal_to_java(one: str, other: str, validate: Validate) -> None:
    assert folded(one) == folded(other) == folded(one.upper() if len(one.upper()) == 1 else one)
    columns = [{"name": "a", "type": "string", "source": one}, {"name": "b", "type": "string", "source": other}]
    problems = validate({"odd.yaml": dataset({"name": "text"}, columns=columns)})
    assert found(problems) == [("DuplicateColumn", "columns[1].source")]


def test_letters_that_are_not_equal_to_java() -> None:
    assert len({folded(name) for name in ("ss", "ß", "é", "e", "i\u0307", "i")}) == 6
    assert system_column("_deleteđ") is None


def test_aliases_that_differ_by_case_only(validate: Validate) -> None:
    joins = [
        {"alias": alias, "dataset_id": "customers", "on": f"`{alias}`.id = orders.customer_id"}
        for alias in ("s", "ſ", "Orders", "ORDERſ")
    ]
    body = {"joins": joins, "assignments": [{"column": "x", "expression": "1"}]}
    problems = validate({"p.yaml": operation(type="update", arguments=body)})
    assert [(problem.type, problem.path) for problem in problems] == [
        ("DuplicateColumn", f"project.operations[0].arguments.joins[{index}].alias") for index in (1, 2, 3)
    ]
