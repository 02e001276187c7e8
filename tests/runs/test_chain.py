"""Registered datasets: each version keeps its rows, and later projects read them pinned or latest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import FEBRUARY, JANUARY, Books, delta_rows

from tallybook.errors import ValidationError
from tallybook.project.recorded import Changes
from tallybook.runs.registered import location_of
from tallybook.storage.read import read

USER = """\
project:
  id: user
  name: User
  input_dataset_id: tiers
  operations:
    - seq: 1
      name: Join
      type: update
      arguments:
        joins: [{alias: l, dataset_id: ledger, dataset_version: 1, on: tiers.tier = l.tier}]
        assignments: [{column: id, expression: l.id}]
    - seq: 2
      name: Append the newest
      type: append
      arguments:
        source: {dataset_id: ledger}
        aggregation: {group_by: [id], aggregations: [{column: tier, expression: MAX_AGG(tier)}]}
    - seq: 3
      name: Write
      type: output
      arguments: {destination: {location: used.delta}, columns: [id, tier, region]}
"""


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Books]:
    """January, then February into the same table."""
    books = Books.at(tmp_path_factory.mktemp("chain"))
    books.open().activate("close")
    books.run(period="2026-01")
    books.run(period="2026-02")
    yield books


def test_every_version_keeps_reading_its_own_rows(chain: Books, spark: SparkSession) -> None:
    with chain.store() as store:
        recorded = store.recorded()
    located = {(entry.dataset_id, entry.version): location_of(entry) for entry in recorded.registrations}
    found = {}
    for version, dataset in Changes(recorded).datasets.versions["ledger"].items():
        frame = read(spark, located["ledger", version], dataset.main_table)
        found[version] = sorted(tuple(row) for row in frame.select("id", "tier", "net", "_period").collect())
    assert found == {1: JANUARY, 2: FEBRUARY}
    assert chain.ledger() == FEBRUARY


def test_an_input_that_is_not_by_period_stays_and_says_that_there_is_a_newer_one(
    tmp_path: Path, spark: SparkSession
) -> None:
    books = Books.at(tmp_path)
    books.edit("close.yaml", "columns: [id, tier, net, _period]", "columns: [id, tier, net]")
    books.open().activate("close")
    books.run(period="2026-01")
    books.open().activate("report")
    books.run(period="2026-02")
    result = books.run("report", "2026-01")
    assert (tmp_path / "texts" / "2026-01.csv").read_text() == "id,double\na,18.00\nb,36.00\n"
    assert list(result.warnings) == [
        "the input is version 1 of 'ledger', version 2 is registered; `tallybook activate report` pins the newest"
    ]


def test_joined_at_one_version_and_appended_at_that_of_the_period(chain: Books) -> None:
    (chain.root / "user.yaml").write_text(USER)
    chain.open().activate("user")
    result = chain.run("user", "2026-01")
    assert {(use.dataset.id, use.dataset.version) for use in result.plan.locations} == {
        ("tiers", 1),
        ("ledger", 1),
        ("ledger", 2),
    }
    assert delta_rows(chain.root / "used.delta", columns=["id", "region"]) == [
        ("a", "EMEA"),
        ("a", None),
        ("b", "APAC"),
        ("b", None),
    ]


LOOKING = """\
dataset:
  id: looking
  name: Sales with what was booked of them
  resolver_id: by-month
  main_table:
    name: sales
    temporal_mode: period
    columns: [{name: id, type: string}, {name: region, type: string}, {name: amount, type: "decimal(10,2)"}]
  lookups:
    - {alias: booked, target: {dataset_id: ledger}, join_conditions: [{source_column: id, target_column: id}]}
---
project:
  id: shares
  name: Shares
  input_dataset_id: looking
  operations:
    - seq: 1
      name: Lost
      type: update
      arguments: {assignments: [{column: lost, expression: amount - booked.net}]}
    - {seq: 2, name: Write, type: output, arguments: {destination: {location: lost.csv}, columns: [id, lost]}}
"""


def test_a_lookup_into_a_registered_dataset(tmp_path: Path, spark: SparkSession) -> None:
    books = Books.at(tmp_path)
    (tmp_path / "looking.yaml").write_text(LOOKING)
    assert books.open().validate() == []
    with pytest.raises(ValidationError) as early:
        books.run("shares")
    assert early.value.problem.message == "there is no dataset 'ledger'; lookup 'booked' reads it"
    hint = "`tallybook run close` registers it; an active project reads only what active projects register"
    assert early.value.problem.hint == hint
    books.open().activate("close")
    books.run()
    books.open().activate("shares")
    result = books.run("shares")
    assert ("ledger", 1) in {(use.dataset.id, use.dataset.version) for use in result.plan.locations}
    assert (tmp_path / "lost.csv").read_text() == "id,lost\na,1.00\nb,2.00\nc,\n"
    books.edit("close.yaml", "columns: [id, tier, net, _period]", "columns: [id, tier, net, region, _period]")
    books.edit("looking.yaml", "source_column: id, target_column: id", "source_column: region, target_column: region")
    with pytest.raises(ValidationError) as late:
        books.open().activate("shares")
    assert late.value.problem.message == "lookup 'booked': 'ledger' has no column 'region'"


def test_a_new_version_that_breaks_a_reader_puts_it_in_conflict(tmp_path: Path, spark: SparkSession) -> None:
    books = Books.at(tmp_path)
    books.open().activate("close")
    books.run()
    books.open().activate("report")
    books.edit("close.yaml", "columns: [id, tier, net, _period]", "columns: [id, tier, _period]")
    books.open().activate("close")
    books.run()
    states = {each.project_id: each for each in books.open().apply().states}
    [conflict] = states["report"].conflicts
    assert (conflict.dataset_id, conflict.from_version, conflict.to_version) == ("ledger", 1, 2)
    assert [str(each) for each in conflict.changes] == ["column net: removed, used by operation 1"]
