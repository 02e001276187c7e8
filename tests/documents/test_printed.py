"""What every command prints with --json follows the schema of the command, or of an error."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.documents.kit import command_of, read_document
from tests.kit.workspaces import Books

from tallybook.cli.main import main
from tallybook.documents.schema import DOCUMENTS
from tallybook.store.active import current_owner
from tallybook.workspace import Workspace

WITHOUT_SPARK = {
    "init",
    "validate",
    "plan",
    "apply",
    "activate",
    "deactivate",
    "runs",
    "datasets",
    "datasources",
    "datasources check",
    "doctor",
    "clean",
    "period",
    "store upgrade",
    "store join",
    "store rename",
    "schema",
    "expr",
}
WITH_SPARK = {"activate", "run", "runs", "plan", "datasets", "replay", "test"}
WITH_A_WARM_SESSION = {"session start", "session status", "session stop"}
"""These are shown in tests/engine/test_warm.py."""

SCENARIOS = """\
scenario:
  name: {name}
  project: close
  period: 2026-01
  data: {{sales: {{sales: [{{id: a, region: EMEA, amount: 10}}]}}, tiers: {{tiers: [{{region: EMEA, tier: gold}}]}}}}
  expect:
    outputs:
      30: {expect}
"""


@pytest.fixture
def books(tmp_path: Path) -> Books:
    return Books.at(tmp_path / "books")


@dataclass
class Printed:
    """Runs commands and reads what they print."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    commands: set[str | None] = field(default_factory=set)

    def __call__(self, *args: str, code: int = 0) -> Any:
        assert main([*args, "--json", "--workspace", str(self.root)]) == code
        self.commands.add(command_of(args))
        return read_document(args, code, self.capsys.readouterr().out)


@pytest.fixture
def printed(books: Books, capsys: pytest.CaptureFixture[str]) -> Printed:
    return Printed(books.root, capsys)


def run_of_a_dead_process(books: Books) -> str:
    """The id of a run that was created, and whose process never started it."""
    machine, _, tick = current_owner().started.rpartition("/")
    owner = current_owner().model_copy(update={"started": f"{machine}/{int(tick) - 1}"})
    with books.store() as store:
        return store.create_run("close", 1, "2026-01", calendar_id="gregorian", as_of=date(2026, 1, 1), owner=owner).id


def test_documents_of_commands_that_need_no_spark(
    books: Books, printed: Printed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = Printed(tmp_path / "new", capsys, printed.commands)
    assert new("init")["files"]
    (books.root / "elsewhere").symlink_to(tmp_path)
    assert printed("validate")["warnings"]
    assert printed("plan", "close", "--period", "2026-01")["refused"] is None
    assert printed("apply", "--dry-run")["changes"]
    assert printed("apply")["projects"]
    assert printed("activate", "close")["status"] == "active"
    assert printed("runs") == {"runs": []}
    dead = run_of_a_dead_process(books)
    assert printed("runs")["dead"] == [dead]
    details = printed("runs", dead)
    assert (details["snapshot"], details["dead"]) == ({}, True)
    assert printed("deactivate", "close")["status"] == "inactive"
    assert printed("activate", "close")["status"] == "active"
    books.edit("sales.yaml", "{name: region,", "{name: area,")
    assert printed("apply")["projects"][0]["conflicts"]
    assert printed("plan", "close", "--period", "2026-01")["refused"]["type"] == "ProjectNotRunnable"
    assert len(printed("datasets")["datasets"]) == 2
    assert len(printed("datasets", "sales")["versions"]) == 2
    assert printed("period", "2026-01", "--close")["status"] == "closed"
    assert printed("period", "2026-01")["parent"] == "2026-Q1"
    assert printed("period")["periods"] == {"2026-01": "closed"}
    assert printed("store", "upgrade") == {"upgraded": True}
    assert printed("store", "join") == {"workspace": "tiny"}
    books.edit("tallybook.yaml", "name: tiny", "name: small")
    assert printed("store", "rename", "tiny") == {"workspace": "small", "old": "tiny"}
    assert [source["id"] for source in printed("datasources")["datasources"]] == ["files", "warehouse"]
    assert [source["result"] for source in printed("datasources", "check")["datasources"]] == ["ok", "warning"]
    assert printed("clean", "--dry-run")["older_than"] == "90d"
    assert printed("doctor", code=1)["failed"] == 1
    assert printed("schema")["properties"]
    assert printed("schema", "--settings")["properties"]
    assert printed("expr", "SUM(amount) > 1")["aggregate"]
    assert printed("expr", "amount > 1", "--dataset", "sales")["columns"] == [
        {"name": "amount", "type": "decimal(10,2)"}
    ]
    assert printed.commands == WITHOUT_SPARK


def test_documents_of_commands_that_need_spark(books: Books, printed: Printed, spark: object) -> None:
    printed("activate", "close")
    [first] = printed("run", "close", "--period", "2026-01")["runs"]
    failed = printed("run", "close", "--period", "2026-02", "--period", "2026-03", code=1)
    assert (len(failed["runs"]), failed["problems"][0]["type"]) == (1, "DataNotFound")
    assert printed("run", "close", "--period", "2026-03", code=1)["run_id"]
    assert len(printed("runs")["runs"]) == 4
    assert printed("runs", first["run"]["id"])["snapshot"]["project"]["id"] == "close"
    assert printed("plan", "report", "--period", "2026-01")["operations"][-1]["columns"] == ["id", "double"]
    assert printed("datasets", "ledger")["versions"][0]["registered_by"]["seq"] == 30
    assert printed("replay", first["run"]["id"])["identical"] is True
    expectations = {
        "passes": "{rows: [{id: a, net: 9}]}",
        "rows differ": "{rows: [{id: a, net: 8.5}, {id: b}]}",
        "a number differs": "{row_count: 3}",
    }
    for name, expect in expectations.items():
        (books.root / f"{name}.yaml").write_text(SCENARIOS.format(name=name, expect=expect))
    (books.root / "unfinished.yaml").write_text(SCENARIOS.partition("  expect:")[0].format(name="unfinished"))
    assert printed("test", code=1)["passed"] == 1
    assert printed.commands == WITH_SPARK


def test_every_command_is_shown() -> None:
    assert {*WITHOUT_SPARK, *WITH_SPARK, *WITH_A_WARM_SESSION} == set(DOCUMENTS)


@pytest.mark.parametrize(
    ("args", "code", "type"),
    [
        (["frobnicate"], 2, "UsageError"),
        (["run"], 2, "UsageError"),
        (["expr", "1 +"], 1, "ExpressionParseError"),
        (["runs", "nope"], 1, "RunNotFound"),
        (["period", "2026-1"], 1, "PeriodNotFound"),
        (["datasets", "sale"], 1, "DatasetNotFound"),
    ],
)
def test_errors_are_documents_too(printed: Printed, args: list[str], code: int, type: str) -> None:
    document = printed(*args, code=code)
    assert document["count"] == len(document["problems"])
    assert (document["error"] if "error" in document else document["problems"][0])["type"] == type


def test_a_bug_is_a_document_too(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Workspace) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(Workspace, "periods", broken)
    error = printed("period", code=3)["error"]
    assert error["type"] == "InternalError"
    Path(error["log"]).unlink()
