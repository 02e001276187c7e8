"""Lookups, and equal joins of several updates: joined once, and again only after a change of their keys; not at all to
rows that have no key."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.kit.operations import ACCOUNT_LOOKUP, NOW, aggregate, delete, rows, text_dataset, update

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


def applied(
    tables: dict[str, DataFrame], *operations: dict[str, Any], reuse: bool = True, evaluate: bool = True
) -> DataFrame:
    numbered = [{"seq": seq, "name": f"step {seq}", **body} for seq, body in enumerate(operations, 1)]
    body = {"id": "p", "name": "P", "input_dataset_id": "lines", "operations": numbered}
    project = Project.model_validate(body, strict=False)
    period = GREGORIAN.period("2026-01")
    context = RunContext("r", period, period.start_date, NOW, 1)
    calculation = Calculation.of(bind_project(project, project.operations, DatasetVersions.of(DATASETS)), context)
    calculation = replace(calculation, optimisations=Optimisations(evaluate, reuse_joins=reuse))
    frames = FrameTables({(id, id): frame for id, frame in tables.items()}, context)
    return working_rows(next(iter(tables.values())).sparkSession, calculation, frames)


def joined(on: str, selector: str | None = None, *, where: str | None = None, **assignments: str) -> dict[str, Any]:
    """An update that joins the accounts as `a`."""
    body = update(selector, **assignments)
    chosen = {"selector": where} if where else {}
    body["arguments"]["joins"] = [{"alias": "a", "dataset_id": "accounts", "on": on, **chosen}]
    return body


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


def test_equal_joins_are_made_once_however_they_are_written(
    tables: dict[str, DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    second = joined("a.id = lines.code", 'a.state = "off"', state='CONCAT(lines.type, " ", a.state)')
    second["arguments"]["joins"].insert(0, {"alias": "b", "dataset_id": "accounts", "on": 'b.id = "A"'})
    operations = (joined("code = a.id", type="a.type"), second, joined("code = a.id", 'a.type = "cost"', cost='"yes"'))
    after = applied(tables, *operations)
    assert joins(after, capsys) == 2
    assert rows(after, "line", "type", "state", "cost") == [
        ("1", "asset", None, None),
        ("2", "cost", "cost off", "yes"),
        ("3", "cost", None, "yes"),
        ("4", None, None, None),
    ]
    apart = applied(tables, *operations, reuse=False)
    assert joins(apart, capsys) == 4
    assert rows(apart, *after.columns) == rows(after, *after.columns)


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(joined("line = a.id", now="a.type"), id="by another key"),
        pytest.param(joined("code = a.type", now="a.type"), id="by another column of the table"),
        pytest.param(joined("code = a.id", where='state = "on"', now="a.type"), id="to some of its rows"),
        pytest.param(joined("code = a.id AND a.state <> line", now="a.type"), id="on a further condition"),
        pytest.param(joined("UPPER(code) = a.id", now="a.type"), id="by an expression"),
    ],
)
def test_other_joins_with_the_same_alias_are_made_again(
    tables: dict[str, DataFrame], capsys: pytest.CaptureFixture[str], second: dict[str, Any]
) -> None:
    first = joined("code = a.id", type="a.type")
    after = applied(tables, first, second, joined("code = a.id", type="a.type"))
    assert joins(after, capsys) == 3
    assert rows(after, "line", "now") == rows(applied(tables, first, second, reuse=False), "line", "now")


def test_an_equal_join_is_made_again_after_a_change_of_its_key(
    tables: dict[str, DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    moved = joined("code = a.id", 'a.type = "cost"', code='"A"', type="a.type")
    after = applied(tables, joined("code = a.id", type="a.type"), moved, joined("code = a.id", now="a.type"))
    assert rows(after, "line", "type", "now") == [
        ("1", "asset", "asset"),
        ("2", "cost", "asset"),
        ("3", "cost", "asset"),
        ("4", None, None),
    ]
    assert joins(after, capsys) == 2


@pytest.mark.parametrize("reuse", [True, False])
def test_a_second_match_of_an_equal_join_fails_the_operation_that_needs_it(
    tables: dict[str, DataFrame], reuse: bool
) -> None:
    accounts = tables["accounts"].union(tables["accounts"].filter("id = 'C'"))
    operations = [joined("code = a.id", selector, now="a.state") for selector in ('line = "1"', 'line = "3"')]
    after = applied(tables | {"accounts": accounts}, *operations, reuse=reuse)
    with pytest.raises(PySparkException, match='"JoinNotUnique", "seq": "2"'):
        after.collect()


def test_a_selected_source_is_joined_once_wherever_it_is_written(
    tables: dict[str, DataFrame], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the first join of one update, and the second join of the other."""
    first = joined("code = a.id", where='state = "on"', type="a.type")
    second = joined("code = a.id", where='state = "on"', now="a.state")
    second["arguments"]["joins"].insert(0, {"alias": "b", "dataset_id": "accounts", "on": "line = b.id"})
    after = applied(tables, first, second)
    assert joins(after, capsys) == 2
    assert rows(after, "line", "type", "now") == [
        ("1", "asset", "on"),
        ("2", None, None),
        ("3", "cost", "on"),
        ("4", None, None),
    ]


SUMMARY = aggregate(["line"], "_operation_seq = 0", count="COUNT(*)")
"""Rows without a code, so no account matches them."""


@pytest.mark.parametrize(
    ("operations", "count"),
    [
        pytest.param([READS_STATE], 1, id="selector of a lookup"),
        pytest.param([update(state='COALESCE(account.state, "none")')], 1, id="value of a lookup"),
        pytest.param([joined("code = a.id", 'a.state = "off"', state="a.type")], 1, id="selector of a join"),
        pytest.param([joined("a.id = code AND a.state <> line", state="a.type")], 1, id="further condition"),
        pytest.param([joined("a.type = account.type", state="a.state")], 2, id="join by a column of a lookup"),
        pytest.param([joined("a.id = COALESCE(code, line)", state="a.state")], 2, id="key that is not NULL"),
        pytest.param([delete("account.state IS NULL")], 1, id="condition that NULL meets"),
    ],
)
def test_rows_without_a_key_are_not_joined(
    tables: dict[str, DataFrame], capsys: pytest.CaptureFixture[str], operations: list[dict[str, Any]], count: int
) -> None:
    single = tables | {"accounts": tables["accounts"].filter("id <> 'B'")}
    after = applied(single, update(state='"new"', type='"?"'), SUMMARY, *operations)
    assert joins(after, capsys) == count
    slow = applied(single, update(state='"new"', type='"?"'), SUMMARY, *operations, evaluate=False)
    columns = [name for name in after.columns if name != "_row_id"]
    assert rows(after, *columns) == rows(slow, *columns)
