"""Parameters of a run: set, typed, recorded, planned, retried and replayed."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from tests.kit.commands import Tally
from tests.kit.workspaces import AtStep, Books

from tallybook.engine.frames import apply_operations
from tallybook.errors import UsageError, ValidationError


@pytest.fixture
def books(books: Books) -> Books:
    """The close keeps a rate and a limit as parameters; the limit has no default."""
    books.edit(
        "close.yaml",
        "  operations:",
        "  parameters:\n    rate: {type: 'decimal(4,2)', default: 0.90}\n"
        "    limit: {type: decimal, description: Smaller amounts are dropped.}\n  operations:",
    )
    books.edit("close.yaml", "amount * 0.9", "amount * params.rate")
    books.edit("close.yaml", "selector: amount = 0", "selector: amount < params.limit")
    return books


def test_wrong_unknown_and_missing_parameters_stop_before_anything_is_recorded(books: Books, tally: Tally) -> None:
    for given, type, words in (
        (["--set", "limit=lots"], "TypeMismatch", "parameter 'limit' is decimal(18,6)"),
        (["--set", "limit=5", "--set", "rat=1"], "ColumnNotFound", "did you mean 'rate'?"),
        ([], "InvalidArguments", "parameter 'limit' has no value"),
    ):
        said = tally(books, "run", "close", "--period", "2026-01", *given)
        assert said.code == 1 and type in said.err and words in said.err
    assert tally(books, "run", "close", "--period", "2026-01", "--set", "limit").code == 2
    assert tally(books, "run", "--retry", "x", "--set", "limit=5").code == 2
    assert books.open().runs().runs == ()


def test_the_plan_shows_the_values(books: Books, tally: Tally) -> None:
    planned = tally(books, "plan", "close", "--period", "2026-01", "--set", "limit=5", "--json")
    assert json.loads(planned.out)["parameters"] == {
        "rate": {"type": "decimal(4,2)", "value": "0.9"},
        "limit": {"type": "decimal(18,6)", "value": "5"},
    }
    assert "  limit = 5 (decimal(18,6))\n" in tally(books, "plan", "close", "-p", "2026-01", "--set", "limit=5").out


def test_a_run_keeps_its_values_and_a_replay_and_a_retry_use_them(
    books: Books, tally: Tally, spark: SparkSession
) -> None:
    books.open().activate("close")
    said = tally(books, "run", "close", "--period", "2026-01", "--set", "limit=15", "--set", "rate=0.5", "--json")
    (run,) = json.loads(said.out)["runs"]
    assert run["run"]["parameters"] == {"rate": "0.5", "limit": "15"}
    assert [row[:3] for row in books.ledger()] == [("b", "silver", Decimal("10.00"))]

    shown = tally(books, "runs", run["run"]["id"])
    assert "  with limit = 15, rate = 0.5\n" in shown.out
    snapshot = books.open().run_details(run["run"]["id"]).snapshot
    assert snapshot is not None and snapshot.parameters == {"rate": "0.5", "limit": "15"}
    books.edit("close.yaml", "default: 0.90", "default: 0.10")
    assert books.open().replay(run["run"]["id"]).identical

    books.open().activate("close")
    cancel = AtStep(30, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        books.run(period="2026-02", parameters={"limit": 1, "rate": Decimal("0.50")}, observers=(cancel,))
    assert books.retry().run.parameters == {"rate": "0.5", "limit": "1"}
    assert [row[:3] for row in books.ledger()] == [("d", "gold", Decimal("2.50"))]


def test_selectors_fold_with_a_parameter(books: Books) -> None:
    """A parameter is a constant, so a selector that no row can meet is known without Spark."""
    books.edit("close.yaml", "amount < params.limit", "params.limit > 100")
    for limit, selects in (("5", False), ("500", None)):
        plan = books.open().plan("close", "2026-01", parameters={"limit": limit})
        segment = plan.input_segment(plan.schema.system)
        assert plan.steps[1].selects(segment, plan.evaluator) is selects


def test_operations_on_a_frame_read_parameters(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("a", 5), ("b", 7)], "id string, amount bigint")
    drop = {"seq": 1, "name": "Drop", "type": "delete", "selector": "amount < params.limit"}
    rows = apply_operations(frame, [drop], period="2026-01", parameters={"limit": 6})
    assert [row.id for row in rows.filter("NOT _deleted").collect()] == ["b"]
    with pytest.raises(ValidationError, match="no parameter 'limit'"):
        apply_operations(frame, [drop], period="2026-01", parameters={"other": 6})
    with pytest.raises(UsageError, match=r"parameter 'limit': 0\.5"):
        apply_operations(frame, [drop], period="2026-01", parameters={"limit": 0.5})  # type: ignore[dict-item]  # a float
