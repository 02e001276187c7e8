"""What each operation allows and refuses before anything runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallybook.errors import Problem

OfOperations = Callable[..., list[Problem]]


def update(column: str, expression: str, selector: str = "") -> str:
    chosen = f"\n  selector: {selector}" if selector else ""
    return f"""
- seq: 1
  name: Set
  type: update{chosen}
  arguments:
    assignments:
      - column: {column}
        expression: {expression}
"""


def aggregate(group_by: str, column: str, expression: str) -> str:
    return f"""
- seq: 1
  name: Sum
  type: aggregate
  arguments:
    group_by: [{group_by}]
    aggregations:
      - column: {column}
        expression: {expression}
"""


def output(arguments: str) -> str:
    return f"- {{seq: 1, name: Write, type: output, arguments: {{{arguments}}}}}"


def append(rest: str) -> str:
    return f"- {{seq: 1, name: Add, type: append, arguments: {{source: {{dataset_id: budgets}}, {rest}}}}}"


ALLOWED = {
    "a system column that users may set": update("_labels", 'CONCAT(_labels, "{a}")'),
    "an integer into a decimal": update("amount", "quantity"),
    "a decimal of more digits": update("amount", "amount / 3"),
    "NULL into a column that is there": update("amount", "NULL"),
    "NULL with a type into a new column": update("note", "TO_STRING(NULL)"),
    "a date into a timestamp": "- {seq: 1, name: A, type: update, arguments: {assignments: [{column: t, "
    "expression: NOW()}]}}\n- {seq: 2, name: B, type: update, arguments: {assignments: [{column: t, "
    "expression: order_date}]}}",
    "the other name of a system column": update("x", "_source_dataset"),
    "a selector that is NULL": update("x", "1", "NULL AND amount > 0"),
    "a system column as group": aggregate("_period, _labels", "n", "COUNT(*)"),
    "the other name of a system column as group": aggregate("_source_dataset", "n", "COUNT(*)"),
    "a sum of integers into an integer": aggregate("region", "quantity", "SUM(quantity)"),
    "a sum of integers appended to an integer": append(
        "aggregation: {group_by: [region], aggregations: [{column: quantity, expression: SUM(quantity)}]}"
    ).replace("budgets", "sales-orders"),
    "a combination of aggregates": aggregate("region", "mean", "SUM(amount * quantity) / COUNT(*) + 1"),
    "a grouped column beside an aggregate": aggregate("quantity", "share", "SUM(amount) / quantity"),
    "a delete without arguments": "- {seq: 1, name: Remove, type: delete, selector: amount = 0}",
    "a delete with empty arguments": "- {seq: 1, name: Remove, type: delete, selector: amount = 0, arguments: {}}",
    "a delete of everything": "- {seq: 1, name: Remove, type: delete}",
    "a location as text": output("destination: {location: out.parquet}"),
    "a location as a map": output("destination: {location: {path: out, format: csv, delimiter: ';'}}"),
    "a table": output("destination: {datasource_id: files, table: 'orders-{{period}}'}, mode: append"),
    "columns by their full names": output("destination: {location: o.csv}, columns: [orders.amount, _source_dataset]"),
    "renamed and sorted columns": output(
        "destination: {location: o.csv}, columns: [amount, {region: 'Region (EU), %'}, {_period: Month}], "
        "order_by: [orders.region, -quantity, _row_id]"
    ),
    "two columns that change their names": output(
        "destination: {location: o.csv}, columns: [{amount: quantity}, {quantity: amount}]"
    ),
    "no system columns": output("destination: {location: o.csv}, exclude_columns: system"),
    "rows of a source, chosen and summed": append(
        "source_selector: budgets.owner IS NOT NULL AND _period IS NOT NULL, "
        "aggregation: {group_by: [budgets.region], aggregations: [{column: amount, expression: SUM(amount)}]}"
    ),
    "a group that is no business column": append(
        "aggregation: {group_by: [_period, region], aggregations: [{column: amount, expression: SUM(amount)}]}"
    ),
    "gaps between seqs": "- {seq: 5, name: A, type: delete}\n- {seq: 500, name: B, type: delete}",
}


@pytest.mark.parametrize("case", ALLOWED)
def test_it_is_allowed(case: str, of_operations: OfOperations) -> None:
    assert [str(problem) for problem in of_operations(ALLOWED[case])] == []


SUM = "aggregations: [{column: amount, expression: SUM(amount)}]"
REFUSED: dict[str, tuple[str, str, str]] = {
    "a system column": (update("_row_id", "UPPER(order_id)"), "SystemColumn", "arguments.assignments[0].column"),
    "the other name of one": (
        update("_source_dataset", "UPPER(order_id)"),
        "SystemColumn",
        "arguments.assignments[0].column",
    ),
    "a decimal into an integer": (update("quantity", "amount"), "TypeMismatch", "arguments.assignments[0].expression"),
    "text into a number": (update("amount", "order_id"), "TypeMismatch", "arguments.assignments[0].expression"),
    "a number into text": (update("order_id", "amount"), "TypeMismatch", "arguments.assignments[0].expression"),
    "text into the labels": (update("_labels", "1"), "TypeMismatch", "arguments.assignments[0].expression"),
    "NULL alone": (update("note", "NULL"), "TypeMismatch", "arguments.assignments[0].expression"),
    "nothing as expression": (update("note", '""'), "ExpressionParseError", "arguments.assignments[0].expression"),
    "a named selector as value": (
        update("x", '"{{a}}"'),
        "ExpressionParseError",
        "arguments.assignments[0].expression",
    ),
    "an aggregate in a selector": (update("x", "1", "SUM(amount) > 0"), "AggregateMisplaced", "selector"),
    "an aggregate in an update": (
        update("x", "AVG(amount)"),
        "AggregateMisplaced",
        "arguments.assignments[0].expression",
    ),
    "a named selector in a join": (
        "- {seq: 1, name: Join, type: update, arguments: {joins: [{alias: b, dataset_id: budgets, on: '{{a}}'}], "
        "assignments: [{column: x, expression: b.amount}]}}",
        "ExpressionParseError",
        "arguments.joins[0].on",
    ),
    "an alias that is the table's name in other case": (
        "- {seq: 1, name: Join, type: update, arguments: {joins: [{alias: Orders, dataset_id: budgets, "
        "on: 'region = Orders.region'}], assignments: [{column: x, expression: '1'}]}}",
        "DuplicateColumn",
        "arguments.joins[0].alias",
    ),
    "NULL alone as result": (
        aggregate("region", "note", "IF(COUNT(*) > 1, NULL, NULL)"),
        "TypeMismatch",
        "arguments.aggregations[0].expression",
    ),
    "a selector that is a number": (update("x", "1", "quantity"), "InvalidSelector", "selector"),
    "a system column as result": (
        aggregate("region", "_labels", "MAX_AGG(order_id)"),
        "SystemColumn",
        "arguments.aggregations[0].column",
    ),
    "a mean into an integer": (
        aggregate("region", "quantity", "AVG(quantity)"),
        "TypeMismatch",
        "arguments.aggregations[0].expression",
    ),
    "a computed group": (aggregate("YEAR(order_date)", "n", "COUNT(*)"), "ColumnNotFound", "arguments.group_by[0]"),
    "a result that is a group": (
        aggregate("region", "region", "COUNT(*)"),
        "DuplicateColumn",
        "arguments.aggregations[0].column",
    ),
    "a selector on append": (
        f"- {{seq: 1, name: Add, type: append, selector: amount > 0, "
        f"arguments: {{source: {{dataset_id: budgets}}, aggregation: {{group_by: [region], {SUM}}}}}}}",
        "InvalidArguments",
        "selector",
    ),
    "a working column in a source selector": (
        append(f"source_selector: order_id IS NULL, aggregation: {{group_by: [region], {SUM}}}"),
        "ColumnNotFound",
        "arguments.source_selector",
    ),
    "a join alias in a source selector": (
        append(f"source_selector: rates.rate > 0, aggregation: {{group_by: [region], {SUM}}}"),
        "ColumnNotFound",
        "arguments.source_selector",
    ),
    "no groups in append": (
        append(f"aggregation: {{group_by: [], {SUM}}}"),
        "EmptyGroupBy",
        "arguments.aggregation.group_by",
    ),
    "no results in append": (
        append("aggregation: {group_by: [region], aggregations: []}"),
        "EmptyAggregations",
        "arguments.aggregation.aggregations",
    ),
    "a table without its datasource": (
        output("destination: {table: t}"),
        "InvalidDestination",
        "arguments.destination",
    ),
    "a datasource without a table": (
        output("destination: {datasource_id: files}"),
        "InvalidDestination",
        "arguments.destination",
    ),
    "no destination": (output("mode: append"), "InvalidArguments", "arguments.destination"),
    "a mode nobody knows": (output("destination: {location: o}, mode: merge"), "InvalidArguments", "arguments.mode"),
    "a range to write": (
        output("destination: {location: {path: o.xlsx, range: B2}}"),
        "InvalidArguments",
        "arguments.destination.location.range",
    ),
    "a workbook of another kind": (
        output("destination: {location: {path: o.xls}}"),
        "InvalidDestination",
        "arguments.destination.location.path",
    ),
    "a format nobody knows": (
        output("destination: {location: {path: o, format: xlsx}}"),
        "InvalidArguments",
        "arguments.destination.location.format",
    ),
    "two columns under one name": (
        output("destination: {location: o.csv}, columns: [amount, {quantity: Amount}]"),
        "DuplicateColumn",
        "arguments.columns[1]",
    ),
    "a column under the name of a system column": (
        output("destination: {location: o.csv}, columns: [{amount: _row_id}]"),
        "InvalidColumnName",
        "arguments.columns[0]",
    ),
    "a name with a blank at its end": (
        output("destination: {location: o.csv}, columns: [{amount: 'Amount '}]"),
        "InvalidColumnName",
        "arguments.columns[0]",
    ),
    "two names for one column": (
        output("destination: {location: o.csv}, columns: [{amount: A, quantity: B}]"),
        "InvalidArguments",
        "arguments.columns[0]",
    ),
    "a name with a blank in a Delta table": (
        output("destination: {location: {path: o, format: delta}}, columns: [{amount: The amount}]"),
        "InvalidColumnName",
        "arguments.columns",
    ),
    "an unknown column to sort by": (
        output("destination: {location: o.csv}, order_by: [-amuont]"),
        "ColumnProjectionError",
        "arguments.order_by[0]",
    ),
    "a column to sort by twice": (
        output("destination: {location: o.csv}, order_by: [amount, -orders.amount]"),
        "DuplicateColumn",
        "arguments.order_by[1]",
    ),
    "a sorted Delta table": (
        output("destination: {location: {path: o, format: delta}}, order_by: [amount]"),
        "InvalidArguments",
        "arguments.order_by",
    ),
    "sorted rows in several folders": (
        output("destination: {location: {path: o, format: parquet}}, order_by: [amount], partition_by: [region]"),
        "InvalidArguments",
        "arguments.order_by",
    ),
    "columns to leave out that are text": (
        output("destination: {location: o.csv}, exclude_columns: sytem"),
        "InvalidArguments",
        "arguments.exclude_columns",
    ),
    "a dataset without a name": (
        output("destination: {location: o}, register_as_dataset: ' '"),
        "InvalidDatasetName",
        "arguments.register_as_dataset",
    ),
    "an operation without a name": ("- {seq: 1, name: '', type: delete}", "InvalidArguments", "name"),
    "an operation without a seq": ("- {name: A, type: delete}", "InvalidArguments", "seq"),
    "an operation without a type": ("- {seq: 1, name: A}", "InvalidArguments", ""),
    "an operation that is text": ("- remove all", "InvalidArguments", ""),
    "a negative seq": ("- {seq: -1, name: A, type: delete}", "InvalidSeq", "seq"),
    "a seq that is true": ("- {seq: true, name: A, type: delete}", "InvalidSeq", "seq"),
    "a seq in quotes": ("- {seq: '1', name: A, type: delete}", "InvalidSeq", "seq"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused(case: str, of_operations: OfOperations) -> None:
    operations, type, path = REFUSED[case]
    [problem] = of_operations(operations)
    where = "project.operations[0]" + (f".{path}" if path else "")
    assert (problem.type, problem.path) == (type, where), str(problem)


def test_no_operation_at_all(of_operations: OfOperations) -> None:
    [problem] = of_operations("[]")
    assert (problem.type, problem.path) == ("InvalidArguments", "project.operations")


def test_what_is_grouped_by_is_a_column(of_operations: OfOperations) -> None:
    [problem] = of_operations(aggregate("amount + 1", "n", "COUNT(*)"))
    assert (problem.message, problem.hint) == ("'amount + 1' is not a column", "compute it in an update first")


def test_decimals_into_integers_are_told_to_round(of_operations: OfOperations) -> None:
    [problem] = of_operations(update("quantity", "amount * 2"))
    assert problem.hint == "round it to an integer with ROUND(…)"
