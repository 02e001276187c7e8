"""check: what is tested, what fails, and what is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tallybook.engine.execute import Sink, execute
from tallybook.engine.frames import FrameTables, apply_operations, dataset_of
from tallybook.engine.pipeline import Pipeline, Working
from tallybook.engine.plan import Calculation, RunContext
from tallybook.errors import RunError, ValidationError
from tallybook.model.period import GREGORIAN
from tallybook.model.run import CheckResult
from tallybook.operations.base import Step
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project

ROWS = [("a", "EMEA", 10), ("b", "EMEA", -10), ("c", "APAC", 5), ("d", None, None)]


def check(text: str, **arguments: Any) -> dict[str, Any]:
    operation = {"selector": arguments.pop("selector")} if "selector" in arguments else {}
    return {"seq": 5, "name": "Test", "type": "check", "arguments": {"assert": text, **arguments}, **operation}


def failure(spark: SparkSession, *operations: dict[str, Any]) -> str | None:
    """The message of the check that fails; None if all pass."""
    frame = spark.createDataFrame(ROWS, "id string, region string, amount bigint")
    try:
        rows = apply_operations(frame, operations, period="2026-01", parameters={"limit": 8})
    except RunError as error:
        (problem,) = error.problems
        assert (problem.type, problem.seq, problem.path) == ("CheckFailed", 5, "arguments.assert")
        return problem.message
    assert rows.count() == len(ROWS), "a check changes nothing"
    return None


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (check("id IS NOT NULL"), None),
        (check("amount > -100"), "1 of 4 rows failed"),
        (check("amount > 0", selector="amount IS NOT NULL"), "1 of 3 rows failed"),
        (check("amount = 0", selector='region = "LATAM"'), None),
        (check("amount < params.limit", selector="amount > 0"), "1 of 2 rows failed"),
        (check("SUM(amount) = 5"), None),
        (check("SUM(amount) = 6"), "1 of 1 group failed: SUM(amount) = 6; SUM(amount) = 5"),
        (check("COUNT(*) > 0", selector='region = "LATAM"'), "1 of 1 group failed: COUNT(*) > 0; COUNT(*) = 0"),
        (check("SUM(amount) = 0", selector='region = "LATAM"'), "SUM(amount) = NULL"),
        (check("SUM(amount) = 0", selector='region = "LATAM"', group_by=["region"]), None),
        (check("SUM(amount) = 0", group_by=["region"], selector='region = "EMEA"'), None),
        (
            check("ABS(SUM(amount)) <= 1 AND COUNT(*) < 9", group_by=["region"]),
            "2 of 3 groups failed: ABS(SUM(amount)) <= 1 AND COUNT(*) < 9; "
            "region = NULL, SUM(amount) = NULL, COUNT(*) = 1; region = APAC, SUM(amount) = 5, COUNT(*) = 1",
        ),
        (check("MAX_AGG(amount) <= params.limit + 2"), None),
    ],
)
def test_what_is_tested_and_what_fails(spark: SparkSession, operation: dict[str, Any], message: str | None) -> None:
    found = failure(spark, operation)
    assert (found is None) == (message is None), found
    assert message is None or message in str(found)


def test_several_checks_of_the_same_rows_are_counted_in_one_pass(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of several segments, deleted rows, selectors that are NULL, and a check that another one keeps apart."""
    operations = [
        {"seq": 1, "name": "Drop", "type": "delete", "selector": 'id = "c"'},
        {
            "seq": 2,
            "name": "Totals",
            "type": "aggregate",
            "arguments": {"group_by": ["region"], "aggregations": [{"column": "amount", "expression": "SUM(amount)"}]},
        },
        {**check("amount >= 0"), "seq": 3},
        {**check("amount > 0", selector="amount > -5"), "seq": 4},
        {**check("region IS NOT NULL"), "seq": 6},
        {**check("TO_INTEGER(id) > 0", selector="id IS NULL AND region IS NOT NULL"), "seq": 7},
        {**check("COUNT(*) > 4"), "seq": 8},
        {
            "seq": 9,
            "name": "Zero",
            "type": "update",
            "arguments": {"assignments": [{"column": "amount", "expression": "0"}]},
        },
        {**check("amount = 0"), "seq": 10},
    ]
    project = Project.model_validate(
        {
            "id": "p",
            "name": "P",
            "input_dataset_id": "rows",
            "operations": [
                {**each, "arguments": {**each.get("arguments", {}), "on_failure": "warn"}}
                if each["type"] == "check"
                else each
                for each in operations
            ],
        },
        strict=False,
    )
    frame = spark.createDataFrame(ROWS, "id string, region string, amount bigint")
    dataset = dataset_of("rows", frame)
    bound = bind_project(project, project.operations, DatasetVersions.of({"rows": dataset}))
    period = GREGORIAN.period("2026-01")
    context = RunContext("r", period, period.start_date, datetime(2026, 2, 1, tzinfo=UTC), 1)
    found: dict[int, tuple[int, int]] = {}
    passes: list[list[int]] = []
    verdicts = Pipeline.verdicts

    def watched(pipeline: Pipeline, steps: Sequence[Step], working: Working) -> DataFrame:
        passes.append([step.seq for step in steps])
        return verdicts(pipeline, steps, working)

    monkeypatch.setattr(Pipeline, "verdicts", watched)

    class Counting(Sink):
        def take_check(self, result: CheckResult) -> None:
            found[result.seq] = (result.tested, result.failed)

    execute(spark, Calculation.of(bound, context), FrameTables({("rows", "rows"): frame}, context), Counting())
    assert found == {3: (5, 3), 4: (2, 1), 6: (5, 2), 7: (1, 1), 8: (1, 0), 10: (5, 0)}
    assert passes == [[3, 4, 6, 7]]


def test_deleted_rows_are_not_tested(spark: SparkSession) -> None:
    delete = {"seq": 1, "name": "Drop", "type": "delete", "selector": "amount IS NULL OR amount < 0"}
    assert failure(spark, delete, check("amount > 0")) is None


def test_a_check_sees_the_rows_as_they_are_at_its_place(spark: SparkSession) -> None:
    set_zero = {
        "seq": 9,
        "name": "Zero",
        "type": "update",
        "arguments": {"assignments": [{"column": "amount", "expression": "0"}]},
    }
    assert "SUM(amount) = 5" in str(failure(spark, check("SUM(amount) = 0"), set_zero))
    assert failure(spark, {**set_zero, "seq": 1}, check("SUM(amount) = 0")) is None


def test_five_failures_are_shown_in_order(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(f"n{index}", index) for index in range(9)], "id string, amount bigint")
    with pytest.raises(RunError) as failed:
        apply_operations(frame, [check("MIN_AGG(amount) < 0", group_by=["id"])], period="2026-01")
    assert failed.value.problem.message == (
        "9 of 9 groups failed: MIN_AGG(amount) < 0; id = n0, MIN_AGG(amount) = 0; id = n1, MIN_AGG(amount) = 1; "
        "id = n2, MIN_AGG(amount) = 2; id = n3, MIN_AGG(amount) = 3; id = n4, MIN_AGG(amount) = 4; and 4 more"
    )


@pytest.mark.parametrize(
    ("operation", "type", "hint"),
    [
        (check("amount > AVG(amount)"), "InvalidAggregation", "with an update first: AVG(amount) OVER ()"),
        (check("amount <= SUM(amount) OVER (region)"), "AggregateMisplaced", "compute it with an update"),
        (check("amount > 0", group_by=["region"]), "InvalidAggregation", "remove `group_by` to test each row"),
        (check("region = 'x'", group_by=["region"]), "InvalidAggregation", "remove `group_by` to test each row"),
        (check("SUM(amount)"), "InvalidSelector", "SUM(amount) > 0"),
        (check("amount"), "InvalidSelector", "amount > 0"),
        (check(" "), "InvalidArguments", "SUM(amount) = 0"),
        (check("amuont > 0"), "ColumnNotFound", "did you mean 'amount'?"),
        (check("SUM(amount) > 0", group_by=["regoin"]), "ColumnNotFound", "did you mean 'region'?"),
        (check("SUM(amount) > 0", group_by=["region", "region"]), "DuplicateColumn", "keep one"),
        (check("amount > params.region"), "ColumnNotFound", "limit"),
    ],
)
def test_mistakes_are_found_before_anything_runs(
    spark: SparkSession, operation: dict[str, Any], type: str, hint: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        failure(spark, operation)
    assert refused.value.problem.type == type
    assert hint in (refused.value.problem.hint or "")
