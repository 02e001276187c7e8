"""A new operation is one source file: registered, it is read, checked, planned, run, tested and documented."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.kit.operations import applied, orders, rows
from tests.kit.workspaces import CSV_OF_EACH_TABLE

from tallybook import Workspace
from tallybook.cli.plan import plan_lines
from tallybook.documents.plan import PlanDocument
from tallybook.documents.schema import yaml_schema
from tallybook.errors import UsageError
from tallybook.operations.flow import last_writer, lineage, live_columns
from tallybook.operations.registry import OPERATIONS, register, unregister
from tallybook.reference import key_tables
from tallybook.scenarios.check import read_cases
from tallybook.scenarios.suite import judge, start_engine
from tallybook.text import unstyled

WORKSPACE = (
    """
dataset:
  id: sales
  name: Sales
  main_table:
    name: orders
    columns: [{name: order_id, type: string}, {name: amount, type: "decimal(10,2)"}]
---
"""
    + CSV_OF_EACH_TABLE
    + """---
project:
  id: close
  name: Close
  input_dataset_id: sales
  operations:
    - {seq: 10, name: Mark large orders, type: flag, arguments: {column: large, when: amount > 100}}
    - seq: 20
      name: Write
      type: output
      arguments: {destination: {location: out.csv}, columns: [order_id, large]}
---
scenario:
  name: An order above 100 is large
  project: close
  period: 2026-01
  data: {sales: {orders: [{order_id: A, amount: 100.01}, {order_id: B}]}}
  expect: {rows: [{order_id: A, large: true}, {order_id: B, large: false}]}
"""
)


@pytest.fixture
def flag() -> Iterator[None]:
    import_module("tests.operations.flag")
    yield
    unregister("flag")
    del sys.modules["tests.operations.flag"]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "tallybook.yaml").write_text("name: toys\n")
    (tmp_path / "close.yaml").write_text(WORKSPACE)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text("order_id,amount\nA,100.01\nB,100.00\nC,\n")
    return Workspace.open(tmp_path)


def problems(workspace: Workspace) -> list[str]:
    return [problem.message for problem in workspace.validate()]


@pytest.mark.usefixtures("flag")
def test_it_is_validated_and_its_mistakes_have_places(workspace: Workspace) -> None:
    assert problems(workspace) == []
    file = workspace.root / "close.yaml"
    file.write_text(WORKSPACE.replace("when: amount > 100", "when: amont > 100, colour: red"))
    found = [(p.type, p.seq, p.hint, str(p.place)) for p in Workspace.open(workspace.root).validate()]
    assert found == [
        ("ColumnNotFound", 10, "did you mean 'amount'?", "close.yaml:21:87"),
        ("UnknownKey", 10, "did you mean 'column'?", "close.yaml:21:100"),
    ]


@pytest.mark.usefixtures("flag")
def test_it_is_planned(workspace: Workspace) -> None:
    plan = PlanDocument.of(workspace.plan("close", "2026-01"), None)
    text = "\n".join(map(unstyled, plan_lines(plan)))
    assert (
        "10. flag: Mark large orders\n   rows        all that are not deleted\n   set         large = amount > 100\n"
        "   new         large boolean\n" in text
    )
    assert plan.operations[0].adds == {"large": "boolean"}


@pytest.mark.usefixtures("flag", "spark")
def test_it_runs_in_a_workspace_and_in_a_scenario(workspace: Workspace) -> None:
    result = workspace.run("close", "2026-01")
    assert result.run.status == "completed"
    written = next((workspace.root / ".tallybook").rglob("*out.csv"))
    assert sorted(written.read_text().split()) == ["A,true", "B,false", "C,false", "order_id,large"]
    [case] = read_cases(workspace.checked)
    assert judge(case, start_engine(None)).status == "passed"


@pytest.mark.usefixtures("flag")
def test_it_runs_on_a_frame(spark: SparkSession) -> None:
    frame = orders(spark, ("A", "EMEA", "on", 10, 1), ("B", "EMEA", "on", 10, 2, True))
    step = {"type": "flag", "arguments": {"column": "cheap", "when": "amount < 11"}}
    assert rows(applied(frame, step), "order_id", "cheap") == [("A", True), ("B", None)]


@pytest.mark.usefixtures("flag")
def test_what_flows_through_it_is_known(workspace: Workspace) -> None:
    bound = workspace.checked.bound["close"]
    assert bound.input is not None
    assert live_columns(bound.steps, (), all_active=True)[0] == {"order_id", "amount"}
    writer = last_writer(bound.steps, "large")
    assert writer is not None and (writer.seq, str(writer.place)) == (10, "close.yaml:21:87")
    assert [origin.column for origin in lineage(bound.steps, bound.input, 20)["large"]] == ["amount"]


@pytest.mark.usefixtures("flag")
def test_it_is_documented() -> None:
    assert yaml_schema()["$defs"]["Flag"]["properties"]["arguments"]["$ref"] == "#/$defs/FlagArguments"
    assert "#/$defs/Flag" in str(yaml_schema()["$defs"]["Project"]["properties"]["operations"])
    tables = key_tables()
    assert "`delete`, `output`, `update`, `flag`" in tables["operation"]
    section = tables["operations"].partition("## flag\n\n")[2]
    assert section.startswith("Sets a column to whether a condition is true.\n\n| Key |")
    assert "| `column` | text | required | The column that takes the flag. |" in section


def test_without_it_the_type_is_unknown(workspace: Workspace, spark: SparkSession) -> None:
    assert "flag" not in OPERATIONS and "Flag" not in yaml_schema()["$defs"]
    assert "'flag' is not a known type" in problems(workspace)
    with pytest.raises(UsageError, match="'flag'"):
        applied(orders(spark), {"type": "flag", "arguments": {"column": "cheap", "when": "amount < 11"}})


def test_a_type_is_registered_once() -> None:
    with pytest.raises(ValueError, match="update is declared twice"):
        register("update", OPERATIONS["update"])
