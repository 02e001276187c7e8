"""Rules that are shown before any data is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.rules.kit import DATASETS, problems_of, rule, types

UPDATE = "- {seq: 1, name: u, type: update, arguments: {assignments: [{column: x, expression: '1'}]}}"


@rule("BR-001")
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [("1", "1", ["DuplicateSeq"]), ("1", "0", ["InvalidSeq"]), ("-3", "2", ["InvalidSeq"]), ("7", "30", [])],
)
def test_seq_is_unique_and_positive_and_may_have_gaps(
    tmp_path: Path, first: str, second: str, expected: list[str]
) -> None:
    operations = f"{UPDATE.replace('seq: 1', f'seq: {first}')}\n{UPDATE.replace('seq: 1', f'seq: {second}')}"
    assert types(problems_of(tmp_path, operations)) == expected


@rule("BR-002")
def test_operations_run_by_seq_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    later = "- {seq: 2, name: b, type: update, arguments: {assignments: [{column: y, expression: x + 1}]}}"
    assert problems_of(tmp_path, f"{later}\n{UPDATE}") == []
    swapped = later.replace("seq: 2", "seq: 1") + "\n" + UPDATE.replace("seq: 1", "seq: 2")
    assert types(problems_of(tmp_path, swapped)) == ["ColumnNotFound"]


@rule("BR-006", "VR-003")
def test_an_undefined_named_selector_is_an_error(tmp_path: Path) -> None:
    operation = "- {seq: 1, name: d, type: delete, selector: '{{active}}'}"
    [problem] = problems_of(tmp_path, operation, head="selectors: {actve: 'amount > 0'}")
    assert (problem.type, problem.hint) == ("UnknownSelector", "did you mean 'actve'?")
    assert problems_of(tmp_path, operation, head="selectors: {active: 'amount > 0'}") == []


@rule("BR-007", "VR-001")
def test_an_update_needs_assignments_and_each_an_expression(tmp_path: Path) -> None:
    empty = "- {seq: 1, name: u, type: update, arguments: {assignments: []}}"
    assert types(problems_of(tmp_path, empty)) == ["EmptyAssignments"]
    bare = "- {seq: 1, name: u, type: update, arguments: {assignments: [{column: x}]}}"
    [problem] = problems_of(tmp_path, bare)
    assert (problem.type, problem.message) == ("InvalidArguments", "the key 'expression' is missing")


@rule("VR-002")
def test_an_assigned_column_is_an_identifier(tmp_path: Path) -> None:
    operation = UPDATE.replace("column: x", "column: '2nd price'")
    assert types(problems_of(tmp_path, operation)) == ["InvalidColumnName"]


@rule("VR-004", "VR-005")
def test_selector_and_assignment_must_parse(tmp_path: Path) -> None:
    operation = """
    - seq: 1
      name: u
      type: update
      selector: "amount >"
      arguments: {assignments: [{column: x, expression: "(amount"}]}
    """
    found = problems_of(tmp_path, operation)
    assert types(found) == ["ExpressionParseError"] * 2
    assert [problem.path for problem in found] == [
        "project.operations[0].selector",
        "project.operations[0].arguments.assignments[0].expression",
    ]


@rule("BR-008")
def test_join_aliases_are_seen_in_their_operation_only(tmp_path: Path) -> None:
    joined = """
    - seq: 1
      name: join
      type: update
      arguments:
        joins: [{alias: c, dataset_id: customers, on: orders.order_id = c.id}]
        assignments: [{column: tier, expression: c.tier}]
    - {seq: 2, name: later, type: update, arguments: {assignments: [{column: x, expression: c.tier}]}}
    """
    [problem] = problems_of(tmp_path, joined)
    assert (problem.type, problem.seq) == ("ColumnNotFound", 2)


@rule("BR-008a")
def test_a_joined_dataset_exists_and_is_active(tmp_path: Path) -> None:
    join = """
    - seq: 1
      name: join
      type: update
      arguments:
        joins: [{alias: c, dataset_id: DATASET, on: "TRUE"}]
        assignments: [{column: tier, expression: c.tier}]
    """
    assert types(problems_of(tmp_path, join.replace("DATASET", "clients"))) == ["DatasetNotFound"]
    disabled = DATASETS.replace("name: Customers", "name: Customers\n      status: disabled")
    assert types(problems_of(tmp_path, join.replace("DATASET", "customers"), datasets=disabled)) == ["DatasetDisabled"]


@rule("BR-014")
@pytest.mark.parametrize(
    "operation",
    [
        "- {seq: 1, name: u, type: update, arguments: {assignments: [{column: x, expression: SUM(amount)}]}}",
        "- {seq: 1, name: d, type: delete, selector: SUM(amount) > 0}",
        "- {seq: 1, name: o, type: output, selector: COUNT(*) > 0, arguments: {destination: {location: out}}}",
        "- {seq: 1, name: a, type: append, arguments: {source: {dataset_id: budget}, source_selector: COUNT(*) > 1}}",
    ],
)
def test_aggregate_functions_belong_in_aggregations(tmp_path: Path, operation: str) -> None:
    assert "AggregateMisplaced" in types(problems_of(tmp_path, operation))


@rule("BR-015", "VR-006")
def test_unknown_columns_are_errors_with_a_suggestion(tmp_path: Path) -> None:
    [problem] = problems_of(tmp_path, UPDATE.replace("'1'", "orders.amuont * 2"))
    assert (problem.type, problem.hint) == ("ColumnNotFound", "did you mean 'amount'?")


@rule("VR-007")
@pytest.mark.parametrize(
    ("column", "expression"),
    [("quantity", "amount * 2"), ("amount", "region"), ("region", "1"), ("x", "amount + region"), ("x", "NULL")],
)
def test_types_must_fit(tmp_path: Path, column: str, expression: str) -> None:
    operation = UPDATE.replace("column: x", f"column: {column}").replace("'1'", f"'{expression}'")
    assert types(problems_of(tmp_path, operation)) == ["TypeMismatch"]


@rule("V-001")
@pytest.mark.parametrize("selector", ["amount", "' '", "region"])
def test_an_output_selector_is_a_condition(tmp_path: Path, selector: str) -> None:
    operation = (
        f"- {{seq: 1, name: o, type: output, selector: {selector}, arguments: {{destination: {{location: o}}}}}}"
    )
    assert types(problems_of(tmp_path, operation)) == ["InvalidSelector"]


@rule("V-002")
@pytest.mark.parametrize("key", ["columns", "exclude_columns"])
def test_output_columns_exist(tmp_path: Path, key: str) -> None:
    operation = f"- {{seq: 1, name: o, type: output, arguments: {{destination: {{location: o}}, {key}: [amuont]}}}}"
    [problem] = problems_of(tmp_path, operation)
    assert (problem.type, problem.hint) == ("ColumnProjectionError", "did you mean 'amount'?")


@rule("V-002")
def test_an_output_keeps_a_column(tmp_path: Path) -> None:
    all_columns = (
        "order_id, region, status, amount, quantity, _row_id, _source_dataset_id, _source_table, _operation_seq, "
        "_created_at, _updated_at, _deleted, _labels, _period"
    )
    written = "- {seq: 1, name: o, type: output, arguments: {destination: {location: o}, exclude_columns: [COLUMNS]}}"
    assert problems_of(tmp_path, written.replace("COLUMNS", all_columns.removesuffix(", _period"))) == []
    [problem] = problems_of(tmp_path, written.replace("COLUMNS", all_columns))
    assert (problem.type, problem.message) == ("ColumnProjectionError", "no column is left to write")
    assert problem.path is not None and problem.path.endswith("arguments.exclude_columns")


@rule("V-003")
@pytest.mark.parametrize(
    "destination", ["{}", "{datasource_id: files}", "{table: t}", "{datasource_id: files, table: t, location: o}"]
)
def test_a_destination_is_exactly_one_place(tmp_path: Path, destination: str) -> None:
    operation = f"- {{seq: 1, name: o, type: output, arguments: {{destination: {destination}}}}}"
    assert types(problems_of(tmp_path, operation)) == ["InvalidDestination"]


@rule("V-004")
@pytest.mark.parametrize("name", ["''", "'  '", "'a b'"])
def test_a_registered_dataset_has_a_name(tmp_path: Path, name: str) -> None:
    arguments = f"{{destination: {{location: {{path: o, format: delta}}}}, register_as_dataset: {name}}}"
    operation = f"- {{seq: 1, name: o, type: output, arguments: {arguments}}}"
    assert types(problems_of(tmp_path, operation)) == ["InvalidDatasetName"]


APPEND = "- {seq: 1, name: a, type: append, arguments: {source: {dataset_id: budget}%s}}"


@rule("APPEND_001", "APPEND_002", "APPEND_003", "APPEND_004", "APPEND_005", "APPEND_006", "ALIGN-1")
@pytest.mark.parametrize(
    ("operation", "type", "code"),
    [
        (APPEND.replace("budget}", "budgets}") % "", "DatasetNotFound", "APPEND_001"),
        (APPEND.replace("budget}", "budget, dataset_version: 5}") % "", "DatasetVersionNotFound", "APPEND_002"),
        (APPEND % "", "ColumnMismatch", "APPEND_003"),
        (APPEND % ", source_selector: 'amount >', aggregation: %s", "ExpressionParseError", "APPEND_004"),
        (APPEND % ", aggregation: {group_by: [region], aggregations: [{column: amount, expression: MODE(amount)}]}",
         "InvalidAggregation", "APPEND_005"),
        (APPEND % ", aggregation: {group_by: [regoin], aggregations: [{column: amount, expression: SUM(amount)}]}",
         "ColumnNotFound", "APPEND_006"),
    ],
)  # fmt: skip
def test_append_problems_have_their_codes(tmp_path: Path, operation: str, type: str, code: str) -> None:
    grouping = "{group_by: [region], aggregations: [{column: amount, expression: SUM(amount)}]}"
    [problem] = problems_of(tmp_path, operation.replace("%s", grouping))
    assert (problem.type, problem.code) == (type, code)


@rule("APPEND_007")
def test_an_appended_dataset_without_resolver_is_an_error(tmp_path: Path) -> None:
    alone = DATASETS.replace("      is_default: true\n", "").replace(
        "id: sales\n", "id: sales\n      resolver_id: all\n"
    )
    aggregation = ", aggregation: {group_by: [region], aggregations: [{column: amount, expression: SUM(amount)}]}"
    [problem] = problems_of(tmp_path, APPEND % aggregation, datasets=alone)
    assert (problem.type, problem.code, problem.seq) == ("ResolverNotFound", "APPEND_007", 1)
