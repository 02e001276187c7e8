"""A failed job is told as the operation, column and expression that caused it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.kit.operations import NOW, aggregate, append, delete, orders, update

from tallybook.engine.execute import Sink, Warn, execute
from tallybook.engine.frames import FrameTables, conformed, dataset_of
from tallybook.engine.plan import Calculation, RunContext
from tallybook.errors import Problem, RunError
from tallybook.model.dataset import Dataset
from tallybook.model.period import GREGORIAN
from tallybook.operations.publication import Publication
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project

Explain = Callable[..., Problem]
WRITE = {"type": "output", "arguments": {"destination": {"location": "w.csv"}, "columns": ["order_id", "w"]}}


class Evaluating(Sink):
    """Computes everything that comes out."""

    needs_working: bool = True

    def publish(self, _output: Publication, rows: DataFrame, _warn: Warn) -> None:
        rows.collect()

    def take_working(self, working: DataFrame) -> None:
        working.collect()


@pytest.fixture
def explained(spark: SparkSession) -> Explain:
    def explain(frame: DataFrame, *operations: dict[str, Any], **sources: DataFrame) -> Problem:
        given = {"orders": frame, **sources}
        datasets = {name: dataset_of(name, each) for name, each in given.items()}
        named = [{"seq": 10 * i, "name": f"step {i}", **each} for i, each in enumerate(operations, start=1)]
        body = {"id": "p", "name": "P", "input_dataset_id": "orders", "operations": named}
        project = Project.model_validate(body, strict=False)
        bound = bind_project(project, project.operations, DatasetVersions.of(datasets))
        period = GREGORIAN.period("2026-01")
        context = RunContext("r", period, period.start_date, NOW, 1)
        frames = {(name, name): conformed(each, datasets[name]) for name, each in given.items()}
        tables = FrameTables(frames, context)
        with pytest.raises(RunError) as caught:
            execute(spark, Calculation.of(bound, context), tables, Evaluating())
        return caught.value.problem

    return explain


def test_an_overflow_names_operation_column_and_expression(spark: SparkSession, explained: Explain) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 9_000_000_000_000_000_000), ("B", "APAC", "on", 1, 1))
    problem = explained(frame, update(amount="amount + 1"), update(x="1", y="quantity * 2"), delete("x = 1"))
    assert (problem.type, problem.seq, problem.operation) == ("EvaluationError", 20, "step 2")
    assert problem.message == "column 'y': a result does not fit into a 64-bit integer"
    assert problem.hint == "in: quantity * 2"
    assert problem.path == "arguments.assignments[1].expression"


def test_text_that_is_no_number_is_quoted(spark: SparkSession, explained: Explain) -> None:
    problem = explained(orders(spark, ("12x", "EMEA", "on", 10, 1)), update(n="TO_INTEGER(order_id)"))
    assert (problem.seq, problem.message) == (10, "column 'n': TO_INTEGER: '12x' is not a valid integer")


def test_a_value_that_fails_inside_a_broadcast_is_named(spark: SparkSession, explained: Explain) -> None:
    """The total of all rows is broadcast, and Spark wraps what fails there."""
    frame = orders(spark, ("1", "EMEA", "on", 10, 1), ("x", "APAC", "on", 1, 1))
    problem = explained(frame, update(total="SUM(TO_INTEGER(order_id)) OVER ()"))
    assert (problem.type, problem.seq) == ("EvaluationError", 10)
    assert problem.message == "column 'total': TO_INTEGER: 'x' is not a valid integer"


def test_an_aggregate_over_a_group_is_named(spark: SparkSession, explained: Explain) -> None:
    frame = orders(spark, ("1", "EMEA", "on", 10, 1), ("x", "APAC", "on", 1, 1))
    problem = explained(frame, update(n="1", total="SUM(TO_INTEGER(order_id)) OVER (region)"))
    assert (problem.seq, problem.message) == (10, "column 'total': TO_INTEGER: 'x' is not a valid integer")
    assert problem.path == "arguments.assignments[1].expression"


@pytest.mark.parametrize(
    "value",
    [
        '[USER_RAISED_EXCEPTION] TALLYBOOK:{"type": "JoinNotUnique"}',
        '[USER_RAISED_EXCEPTION] TALLYBOOK:{"type": "DataLoadError", "table": "orders"}{"value": "7"}',
        "[FAILED_READ_FILE.NO_HINT] x\nCaused by: java.io.IOException: No space left on device",
        "java.lang.OutOfMemoryError: Java heap space Use `try_cast` SQLSTATE: 58030",
    ],
    ids=["of a join", "of a load", "of a file", "of the machine"],
)
def test_a_value_with_the_text_of_an_error_is_a_value(spark: SparkSession, explained: Explain, value: str) -> None:
    problem = explained(orders(spark, (value, "EMEA", "on", 10, 1)), update(n="TO_INTEGER(order_id)"))
    assert (problem.type, problem.seq) == ("EvaluationError", 10)
    assert problem.message.endswith("' is not a valid integer") and value[:20] in problem.message


def test_a_long_value_is_cut(spark: SparkSession, explained: Explain) -> None:
    problem = explained(orders(spark, ("x" * 100_000, "EMEA", "on", 10, 1)), update(n="TO_INTEGER(order_id)"))
    assert problem.message == f"column 'n': TO_INTEGER: '{'x' * 200}…' is not a valid integer"


def test_a_date_outside_the_calendar(spark: SparkSession, explained: Explain) -> None:
    problem = explained(orders(spark, ("A", "EMEA", "on", 10, 2)), update(d='DATE("9999-12-31") + quantity'))
    assert problem.message == "column 'd': '+10000-01-02' is outside the years 1 to 9999"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ('TO_DECIMAL(CONCAT(region, "1"))', "TO_DECIMAL: 'EMEA1' is not a valid decimal(18,6)"),
        ("TO_DECIMAL(amount, 3, 2)", "TO_DECIMAL: 10.00 does not fit into decimal(3,2)"),
        ("TO_DATE(region)", "TO_DATE: 'EMEA' is not a date written as 2026-01-31"),
        (
            'TO_DATE(CONCAT("31.02.20", TO_STRING(quantity + 24)), "dd.mm.yyyy")',
            "TO_DATE: '31.02.2026' is not a date written as dd.mm.yyyy",
        ),
        ("DATE(2026, quantity + 11, 1)", "DATE: there is no month 13"),
        ("DATE(2026, quantity, 29)", "DATE: February has no day 29 in 2026"),
        ("DATE(2026, quantity * 2, 31)", "DATE: April has no day 31"),
        (
            "ADD_MONTHS(DATE(2026, 1, 1), quantity * 100000)",
            "ADD_MONTHS: '+18692-09-01' is outside the years 1 to 9999",
        ),
        ("POWER(quantity, 64)", "POWER: a result does not fit into a 64-bit integer"),
        (
            "ROUND(amount * 10000000000000000000000)",
            "ROUND: 100000000000000000000000 is too large here",
        ),
        (
            'LPAD(region, quantity * 100000, "x")',
            "LPAD: '200000' is too long, at most 100,000 characters can be padded to",
        ),
        ("quantity * 9223372036854775807", "a result does not fit into a 64-bit integer"),
    ],
    ids=lambda text: text[:20],
)
def test_the_function_and_the_value_are_named(
    spark: SparkSession, explained: Explain, expression: str, message: str
) -> None:
    problem = explained(orders(spark, ("A", "EMEA", "on", 10, 2)), update(x=expression))
    assert (problem.type, problem.message) == ("EvaluationError", f"column 'x': {message}")


def test_too_many_digits_for_a_column(spark: SparkSession, explained: Explain) -> None:
    problem = explained(orders(spark, ("A", "EMEA", "on", "99999999.99", 1)), update(amount="amount * 10"))
    assert problem.type == "EvaluationError" and "does not fit into decimal(10,2)" in problem.message


def test_a_constant_fails_over_no_rows_at_its_operation(
    spark: SparkSession, explained: Explain, tmp_path: Path
) -> None:
    """Spark computes constants while it plans, unless they stand in a branch."""
    (tmp_path / "empty.csv").touch()
    empty = spark.read.schema("k string, share decimal(5,5)").csv(str(tmp_path))
    problem = explained(empty, update(k='"b"'), update(share="12.25"), update(k='"c"'))
    assert (problem.seq, problem.message) == (20, "column 'share': 12.25 does not fit into decimal(5,5)")


def test_a_failing_aggregation(spark: SparkSession, explained: Explain) -> None:
    big = spark.createDataFrame([("a", Decimal("9" * 38)), ("a", Decimal("9" * 38))], "k string, v decimal(38,0)")
    problem = explained(big, aggregate(["k"], n="COUNT(*)", total="SUM(v)"))
    assert (problem.type, problem.seq) == ("EvaluationError", 10)
    assert problem.message == "column 'total': SUM: a sum has more digits than a decimal can hold"


def test_a_pattern_that_is_none(spark: SparkSession, explained: Explain) -> None:
    problem = explained(orders(spark, ("A", "b\\c", "on", 10, 1)), update(x="1"), update(m="order_id LIKE region"))
    assert (problem.type, problem.seq) == ("EvaluationError", 20)
    assert problem.message.startswith("column 'm': LIKE: 'b\\c' is not a pattern")


def test_what_is_overwritten_unread_is_innocent(spark: SparkSession, explained: Explain) -> None:
    steps = [update(v="TO_INTEGER(region)"), update(v="1"), update(w="TO_INTEGER(status)", u="v + 1"), update(x="w")]
    problem = explained(orders(spark, ("A", "EMEA", "on", 10, 1)), *steps)
    assert (problem.seq, problem.path) == (30, "arguments.assignments[0].expression")


def test_what_an_output_does_not_write_is_innocent(spark: SparkSession, explained: Explain) -> None:
    steps = [update(v="TO_INTEGER(region)"), update(w="TO_INTEGER(status)"), delete("order_id = region"), WRITE]
    problem = explained(orders(spark, ("A", "EMEA", "on", 10, 1)), *steps)
    assert (problem.seq, problem.message) == (20, "column 'w': TO_INTEGER: 'on' is not a valid integer")


def test_a_value_that_only_the_selector_of_an_output_reads(spark: SparkSession, explained: Explain) -> None:
    steps = [update(v="TO_INTEGER(region)", w="1"), WRITE | {"selector": "v = 1"}]
    problem = explained(orders(spark, ("A", "EMEA", "on", 10, 1)), *steps)
    assert (problem.seq, problem.message) == (10, "column 'v': TO_INTEGER: 'EMEA' is not a valid integer")


def test_two_matches_name_alias_and_key(spark: SparkSession, explained: Explain) -> None:
    other = spark.createDataFrame([("A", 1), ("A", 2)], "id string, v bigint")
    join = {"alias": "o", "dataset_id": "other", "on": "order_id = o.id"}
    operation = {
        "type": "update",
        "arguments": {"joins": [join], "assignments": [{"column": "v", "expression": "o.v"}]},
    }
    problem = explained(orders(spark, ("A", "EMEA", "on", 10, 1)), operation, other=other)
    assert (problem.type, problem.seq) == ("JoinNotUnique", 10)
    assert problem.message == "'o' has more than one matching row for key 'A'"
    assert str(problem.hint).endswith("or summarise the rows with an `aggregation` of the join")


def test_the_condition_of_each_join_is_known_by_its_alias() -> None:
    joins = [{"alias": alias, "dataset_id": "tiers", "on": f"orders.region = {alias}.region"} for alias in ("a", "b")]
    operation = {"seq": 1, "name": "Join", **update(x="a.tier")}
    operation["arguments"]["joins"] = joins
    body = {"id": "p", "name": "P", "input_dataset_id": "orders", "operations": [operation]}
    project = Project.model_validate(body, strict=False)
    columns = [{"name": "region", "type": "string"}, {"name": "tier", "type": "string"}]
    datasets = {
        name: Dataset.model_validate(
            {"id": name, "name": name, "main_table": {"name": name, "columns": columns}}, strict=False
        )
        for name in ("orders", "tiers")
    }
    [step] = bind_project(project, project.operations, DatasetVersions.of(datasets)).steps
    conditions = [step.join_condition(alias) for alias in ("a", "b", "c")]
    said = [typed and typed.node.span.text for typed in conditions]
    assert said == ["orders.region = a.region", "orders.region = b.region", None]


def joining(on: str, selector: str | None = None, **assignments: str) -> dict[str, Any]:
    """An update beside the frame `other`, read as `o`."""
    operation = update(selector, **assignments)
    operation["arguments"]["joins"] = [{"alias": "o", "dataset_id": "other", "on": on}]
    return operation


def test_a_new_column_computed_beside_a_join(spark: SparkSession, explained: Explain) -> None:
    other = spark.createDataFrame([("A", 9_000_000_000_000_000_000)], "id string, v bigint")
    frame = orders(spark, ("A", "EMEA", "on", 10, 1))
    problem = explained(frame, joining("order_id = o.id", x="1", double="o.v * 2"), other=other)
    assert (problem.type, problem.path) == ("EvaluationError", "arguments.assignments[1].expression")
    assert problem.message.startswith("column 'double': ")


def test_a_sum_is_blamed_not_the_selector_before_it(spark: SparkSession, explained: Explain) -> None:
    big = spark.createDataFrame([("a", Decimal("9" * 38)), ("a", Decimal("9" * 38))], "k string, v decimal(38,0)")
    problem = explained(big, aggregate(["k"], "v > 0", total="SUM(v)"))
    assert (problem.seq, problem.path) == (10, "arguments.aggregations[0].expression")
    aggregation = {"group_by": ["k"], "aggregations": [{"column": "v", "expression": "SUM(v)"}]}
    more = append("more", source_selector="v > 0", aggregation=aggregation)
    problem = explained(big.limit(0), more, more=big)
    assert (problem.seq, problem.path) == (10, "arguments.aggregation.aggregations[0].expression")


@pytest.mark.parametrize(
    "operation",
    [
        update("TO_INTEGER(region) = 1", x="1"),
        aggregate(["region"], "TO_INTEGER(region) = 1", n="COUNT(*)"),
        delete("TO_INTEGER(region) = 1"),
    ],
    ids=["update", "aggregate", "delete"],
)
def test_a_selector_that_fails_is_blamed(spark: SparkSession, explained: Explain, operation: dict[str, Any]) -> None:
    problem = explained(orders(spark, ("A", "EMEA", "on", 10, 1)), operation)
    assert (problem.type, problem.seq, problem.path) == ("EvaluationError", 10, "selector")


def test_a_value_that_does_not_fit_the_column_it_is_appended_to(spark: SparkSession, explained: Explain) -> None:
    frame = spark.createDataFrame([(Decimal("1.00"),)], "v decimal(5,2)")
    wide = spark.createDataFrame([(Decimal("123456.000000"),)], "v decimal(18,6)")
    problem = explained(frame, append("wide"), update(x="1"), wide=wide)
    assert (problem.type, problem.seq, problem.operation) == ("EvaluationError", 10, "step 1")
