"""Joins to large tables are left out for those uses of the rows that read nothing of them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.kit.operations import ACCOUNT_LOOKUP, NOW, aggregate, delete, rows, text_dataset, update

from tallybook.engine.execute import Sink, Warn, execute
from tallybook.engine.frames import FrameTables
from tallybook.engine.plan import Calculation, Optimisations, RunContext
from tallybook.errors import RunError
from tallybook.model.period import GREGORIAN
from tallybook.operations.publication import Publication
from tallybook.operations.schema import SourceTable
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project

LINES = [("1", "A", "x"), ("2", "B", "x"), ("3", "C", "y"), ("4", "D", "y")]
ACCOUNTS = [("A", "asset"), ("B", "cost"), ("C", "cost")]
REGIONS = [("asset", "EMEA"), ("cost", "AMER")]


DATASETS = {
    "lines": text_dataset("lines", ["line", "code", "place"], lookups=[ACCOUNT_LOOKUP]),
    "accounts": text_dataset("accounts", ["id", "type"]),
    "regions": text_dataset("regions", ["kind", "region"]),
}


@dataclass(frozen=True)
class Known(FrameTables):
    """Large tables whose keys are known to be unique."""

    unique: bool = True

    def has_unique_keys(self, source: SourceTable, columns: Sequence[str]) -> bool:
        return self.unique


@dataclass
class Outputs(Sink):
    """The rows of each output, and the number of joins that they need."""

    rows: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)
    joins: dict[int, int] = field(default_factory=dict)

    def publish(self, output: Publication, frame: DataFrame, _warn: Warn) -> None:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            frame.explain()
        uses, _, _made_before = printed.getvalue().partition("InMemoryRelation")  # a cluster keeps rows in memory
        self.joins[output.seq] = uses.count("Join ")
        self.rows[output.seq] = rows(frame, *frame.columns)


def output(*columns: str, selector: str | None = None) -> dict[str, Any]:
    arguments = {"destination": {"location": "-".join(columns)}, "columns": list(columns)}
    return {"type": "output", "arguments": arguments} | ({"selector": selector} if selector else {})


def joined(selector: str | None = None, **assignments: str) -> dict[str, Any]:
    """An update that joins the regions, too. They are found by what the lookup says."""
    body = update(selector, **assignments)
    body["arguments"]["joins"] = [{"alias": "r", "dataset_id": "regions", "on": "r.kind = account.type"}]
    return body


def outputs(
    spark: SparkSession, *operations: dict[str, Any], unique: bool = True, drop: bool = True, accounts: Any = ACCOUNTS
) -> Outputs:
    numbered = [{"seq": seq, "name": f"step {seq}", **body} for seq, body in enumerate(operations, 1)]
    body = {"id": "p", "name": "P", "input_dataset_id": "lines", "operations": numbered}
    project = Project.model_validate(body, strict=False)
    period = GREGORIAN.period("2026-01")
    context = RunContext("r", period, period.start_date, NOW, 1)
    calculation = Calculation.of(bind_project(project, project.operations, DatasetVersions.of(DATASETS)), context)
    calculation = replace(calculation, optimisations=Optimisations(drop_joins=drop))
    frames = {
        ("lines", "lines"): spark.createDataFrame(LINES, "line string, code string, place string"),
        ("accounts", "accounts"): spark.createDataFrame(accounts, "id string, type string"),
        ("regions", "regions"): spark.createDataFrame(REGIONS, "kind string, region string"),
    }
    sink = Outputs()
    execute(spark, calculation, Known(frames, context, unique), sink)
    return sink


JOINED = joined(type="account.type", region="r.region")
COUNTS = aggregate(["place"], "_operation_seq = 0", lines="COUNT(*)")
BY_REGION = aggregate(["region"], "_operation_seq = 0", sum_of_region="COUNT(*)")


def test_a_use_has_the_joins_that_it_reads(spark: SparkSession) -> None:
    operations = (JOINED, output("line", "place"), output("line", "type"), output("line", "region"))
    done = outputs(spark, *operations)
    assert done.joins == {2: 0, 3: 1, 4: 2}
    assert done.rows == {
        2: [("1", "x"), ("2", "x"), ("3", "y"), ("4", "y")],
        3: [("1", "asset"), ("2", "cost"), ("3", "cost"), ("4", None)],
        4: [("1", "EMEA"), ("2", "AMER"), ("3", "AMER"), ("4", None)],
    }
    assert outputs(spark, *operations, drop=False).rows == done.rows


def test_aggregates_have_the_joins_that_they_read(spark: SparkSession) -> None:
    operations = (JOINED, COUNTS, BY_REGION, output("place", "lines", "region", "sum_of_region"))
    done = outputs(spark, *operations, output("place", "lines", selector="_operation_seq = 2"))
    assert done.joins[5] == 0
    assert done.rows[5] == [("x", 2), ("y", 2)]
    assert outputs(spark, *operations, drop=False).rows[4] == done.rows[4]


@pytest.mark.parametrize(
    ("between", "needed"),
    [
        pytest.param(update('lines.type = "cost"', place='"z"'), 1, id="a selector"),
        pytest.param(update(place="lines.type"), 1, id="a value"),
        pytest.param(delete('lines.type = "cost"'), 1, id="a delete"),
        pytest.param(delete('region = "AMER"'), 2, id="a delete by both"),
        pytest.param(update(type='"none"', region='"none"'), 0, id="overwritten"),
        pytest.param(update('place = "x"', type='"none"'), 0, id="another column"),
    ],
)
def test_what_lies_between_decides(spark: SparkSession, between: dict[str, Any], needed: int) -> None:
    operations = (JOINED, between, output("line", "place"))
    done = outputs(spark, *operations)
    assert done.joins == {3: needed}
    assert outputs(spark, *operations, drop=False).rows == done.rows


def test_a_column_that_was_added_in_between_is_null(spark: SparkSession) -> None:
    """The lines have no `lines`, which the aggregate adds."""
    operations = (JOINED, COUNTS, update("ISNULL(lines)", place='CONCAT(place, "!")'), output("line", "place"))
    done = outputs(spark, *operations)
    assert done.joins == {4: 0}
    assert done.rows[4][:4] == [("1", "x!"), ("2", "x!"), ("3", "y!"), ("4", "y!")]


def test_deleted_rows_keep_their_values(spark: SparkSession) -> None:
    """The second update has no selector, but does not see the deleted row, which the output writes."""
    written = output("line", "type")
    written["arguments"]["include_deleted"] = True
    operations = (JOINED, delete('line = "1"'), update(type='"none"'), written)
    done = outputs(spark, *operations)
    assert done.rows[4] == [("1", "asset"), ("2", "none"), ("3", "none"), ("4", "none")]
    assert done.joins == {4: 1}


def test_a_lookup_of_a_later_operation_is_joined(spark: SparkSession) -> None:
    """The first operation need not join the lookup for the output, the second must."""
    done = outputs(spark, update(type="account.type"), update(kind="account.type"), output("line", "kind"))
    assert done.joins == {3: 1}
    assert done.rows[3] == [("1", "asset"), ("2", "cost"), ("3", "cost"), ("4", None)]


def test_a_table_with_a_second_match_fails_the_run_even_if_nothing_reads_it(spark: SparkSession) -> None:
    twice = [*ACCOUNTS, ("C", "asset")]
    with pytest.raises(RunError, match="more than one matching row") as error:
        outputs(spark, JOINED, output("line", "place"), unique=False, accounts=twice)
    assert (error.value.problem.type, error.value.problem.seq) == ("JoinNotUnique", 1)
