"""Lookups that several operations read: joined once, and again only after a change of their keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.kit.operations import ACCOUNT_LOOKUP, NOW, delete, rows, text_dataset, update

from tallybook.engine.execute import working_rows
from tallybook.engine.frames import FrameTables
from tallybook.engine.plan import Calculation, Optimisations, RunContext
from tallybook.model.period import GREGORIAN
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project

DATASETS = {
    "lines": text_dataset("lines", ["line", "code"], lookups=[ACCOUNT_LOOKUP]),
    "accounts": text_dataset("accounts", ["id", "type", "state"]),
}
LINES = [("1", "A"), ("2", "B"), ("3", "C"), ("4", "D")]
ACCOUNTS = [("A", "asset", "on"), ("B", "cost", "off"), ("C", "cost", "on")]
READS_TYPE = update('code <> "C"', type="account.type")
READS_STATE = update('account.state = "off"', state='CONCAT(lines.type, " ", account.state)')


@pytest.fixture
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    return {
        "lines": spark.createDataFrame(LINES, "line string, code string"),
        "accounts": spark.createDataFrame(ACCOUNTS, "id string, type string, state string"),
    }


def applied(tables: dict[str, DataFrame], *operations: dict[str, Any], reuse: bool = True) -> DataFrame:
    numbered = [{"seq": seq, "name": f"step {seq}", **body} for seq, body in enumerate(operations, 1)]
    body = {"id": "p", "name": "P", "input_dataset_id": "lines", "operations": numbered}
    project = Project.model_validate(body, strict=False)
    period = GREGORIAN.period("2026-01")
    context = RunContext("r", period, period.start_date, NOW, 1)
    calculation = Calculation.of(bind_project(project, project.operations, DatasetVersions.of(DATASETS)), context)
    calculation = replace(calculation, optimisations=Optimisations(reuse_joins=reuse))
    frames = FrameTables({(id, id): frame for id, frame in tables.items()}, context)
    return working_rows(next(iter(tables.values())).sparkSession, calculation, frames)


def joins(frame: DataFrame, capsys: pytest.CaptureFixture[str]) -> int:
    capsys.readouterr()
    frame.explain()
    return capsys.readouterr().out.count("Join ")


@pytest.mark.parametrize("reuse", [True, False])
def test_later_operations_see_the_same_match(tables: dict[str, DataFrame], reuse: bool) -> None:
    after = applied(tables, READS_TYPE, READS_STATE, delete('account.state = "off" AND code = "B"'), reuse=reuse)
    assert rows(after, "line", "type", "state", "_deleted") == [
        ("1", "asset", None, False),
        ("2", "cost", "cost off", True),
        ("3", None, None, False),
        ("4", None, None, False),
    ]


def test_it_is_joined_once(tables: dict[str, DataFrame], capsys: pytest.CaptureFixture[str]) -> None:
    operations = (READS_TYPE, update(other='"x"'), READS_STATE)
    assert joins(applied(tables, *operations), capsys) == 1
    assert joins(applied(tables, *operations, reuse=False), capsys) == 2


def test_it_is_joined_again_after_a_change_of_its_key(
    tables: dict[str, DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    moved = update('line IN ("1", "3")', code='IF(line = "1", "B", "A")')
    after = applied(tables, READS_TYPE, moved, update(now="account.type"))
    assert rows(after, "line", "type", "now") == [
        ("1", "asset", "cost"),
        ("2", "cost", "cost"),
        ("3", None, "asset"),
        ("4", None, None),
    ]
    assert joins(after, capsys) == 2


@pytest.mark.parametrize("reuse", [True, False])
def test_a_second_match_fails_the_operation_that_needs_it(tables: dict[str, DataFrame], reuse: bool) -> None:
    """The first operation does not select the line with two accounts, the second does."""
    accounts = tables["accounts"].union(tables["accounts"].filter("id = 'C'"))
    after = applied(tables | {"accounts": accounts}, READS_TYPE, update('line = "3"', now="account.state"), reuse=reuse)
    with pytest.raises(PySparkException, match='"JoinNotUnique", "seq": "2"'):
        after.collect()
