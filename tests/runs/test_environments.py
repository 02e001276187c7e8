"""Runs in environments of one workspace: what each reads and writes, and what is recorded."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.kit.commands import Tally
from tests.kit.workspaces import JANUARY, Books, delta_rows

from tallybook.engine.warm import find_warm
from tallybook.errors import RunError, UsageError
from tallybook.model.settings import SparkSettings
from tallybook.workspace import Workspace

ENVIRONMENTS = """\
environments:
  dev: {datasources: {warehouse: {options: {path_prefix: dev/warehouse}}}}
  prod:
    datasources:
      files: {options: {path_prefix: prod/data}}
      warehouse: {options: {path_prefix: prod/warehouse}}
    spark: {conf: {spark.sql.shuffle.partitions: "3"}}
"""


@dataclass(frozen=True)
class Environments:
    """A workspace whose prod has rows of its own."""

    books: Books

    def open(self, environment: str | None) -> Workspace:
        return Workspace.open(self.books.root, environment=environment)

    def ledger(self, environment: str) -> list[tuple[Any, ...]]:
        return delta_rows(self.books.root / environment / "warehouse" / "ledger")


@pytest.fixture
def both(books: Books, spark: SparkSession) -> Environments:
    settings = books.root / "tallybook.yaml"
    settings.write_text(settings.read_text() + ENVIRONMENTS)
    for file in ("sales/2026-01.csv", "tiers.csv"):
        copy = books.root / "prod" / "data" / file
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text((books.root / "data" / file).read_text().replace("a,EMEA,10", "a,EMEA,100"))
    return Environments(books)


def test_environments_of_one_store_keep_their_state_apart(both: Environments) -> None:
    for name in ("dev", "prod"):
        both.open(name).activate("close")
    dev, prod = (both.open(name).run("close", "2026-01") for name in ("dev", "prod"))

    assert both.ledger("dev") == JANUARY
    assert both.ledger("prod") == [("a", "gold", Decimal("90.00"), "2026-01"), JANUARY[1]]
    assert (dev.run.environment, prod.run.environment) == ("dev", "prod")
    for name, run in (("dev", dev.run), ("prod", prod.run)):
        opened = both.open(name)
        assert opened.apply().versions == ()
        assert [listed.id for listed in opened.runs().runs] == [run.id]
        details = opened.run_details(run.id)
        assert details.snapshot is not None and details.snapshot.environment == name
        (registered,) = opened.dataset_versions("ledger")
        assert registered.registration is not None and registered.registration.run_id == run.id
    assert both.open(None).runs().runs == ()
    assert [state.status for state in both.open(None).apply().states] == ["draft", "draft"]


def test_a_closed_period_is_closed_in_its_environment_only(both: Environments) -> None:
    both.open("prod").set_period_status("2026-01", "closed")
    assert both.open("dev").period("2026-01").status == "open"
    with pytest.raises(RunError, match="closed"):
        both.open("prod").run("close", "2026-01")


def test_a_replay_and_a_retry_use_the_environment_of_their_run(both: Environments, tally: Tally) -> None:
    both.open("prod").activate("close")
    run = both.open("prod").run("close", "2026-01").run

    assert both.open(None).replay(run.id).identical is True
    assert both.open("dev").replay(run.id).identical is True
    assert both.open("dev").run_details(run.id).run.environment == "prod"
    both.books.edit("tallybook.yaml", "  prod:\n", "  live:\n")
    with pytest.raises(UsageError, match="there is no environment 'prod'"):
        both.open(None).replay(run.id)


def test_a_retry_continues_in_the_environment_of_its_run(both: Environments) -> None:
    both.open("prod").activate("close")
    blocked = both.books.root / "prod" / "warehouse"
    blocked.write_text("a file where a folder must be")
    with pytest.raises(RunError) as failed:
        both.open("prod").run("close", "2026-01")
    blocked.unlink()
    assert failed.value.run_id is not None

    again = both.open(None).retry(failed.value.run_id)

    assert (again.run.environment, again.run.status) == ("prod", "completed")
    assert both.ledger("prod")[0][2] == Decimal("90.00")


@pytest.mark.long
def test_a_batch_is_retried_in_its_environment(both: Environments, tally: Tally) -> None:
    dev = both.open("dev")
    dev.activate("close")
    late = both.books.root / "data/sales/2026-02.csv"
    moved = late.rename(late.with_name("late.csv"))
    batch = dev.run_many(["close"], ["2026-01..2026-02"]).id
    moved.rename(late)
    assert batch is not None
    said = tally(both.books, "run", "--retry", batch, "--json")
    assert said.code == 0 and [item["period"] for item in said.json["items"]] == ["2026-02"]
    assert said.json["runs"][0]["run"]["environment"] == "dev"


@pytest.mark.long
def test_drafts_of_two_environments_do_not_meet_in_the_sandbox(both: Environments) -> None:
    for name in ("dev", "prod"):
        both.open(name).run("close", "2026-01", draft=True)
    folder = both.books.root / ".tallybook" / "sandbox"
    amounts = [delta_rows(folder / f"@{name}" / "close" / "2026-01" / "30-ledger")[0][2] for name in ("dev", "prod")]
    assert amounts == [Decimal("9.00"), Decimal("90.00")]


def test_the_environment_is_shown(both: Environments, tally: Tally) -> None:
    planned = tally(both.books, "plan", "close", "--period", "2026-01", "--env", "prod")
    assert "  environment prod\n" in planned.out and "prod/data/sales" in planned.out
    assert tally(both.books, "plan", "close", "-p", "2026-01", "--env", "prod", "--json").json["environment"] == "prod"
    ran = tally(both.books, "run", "close", "--period", "2026-01", "--env", "prod")
    assert ran.err.startswith("environment: prod\n")
    assert "close v1 for 2026-01 in environment prod: completed in " in ran.out
    listed = tally(both.books, "runs", "--env", "prod")
    assert "  2026-01  prod         completed  " in listed.out
    assert tally(both.books, "runs").out == "no runs\n"


def test_a_warm_session_belongs_to_the_spark_settings_of_an_environment(
    both: Environments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)

    def settings(environment: str | None) -> SparkSettings:
        return both.open(environment).resources.spark_settings

    assert find_warm(settings("dev")) == find_warm(settings(None)) is not None
    assert find_warm(settings("prod")) != find_warm(settings("dev"))
