"""What a run reads is fixed when its plan is made: files that change underneath end it, and nothing is published."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from tests.kit.workspaces import FEBRUARY, JANUARY, AtStep, Books, contents, delta_rows

from tallybook.engine.tables import LocatedTables
from tallybook.errors import Problem, RunError
from tallybook.storage import file_writer

SALES = "data/sales/2026-01.csv"
Change = Callable[[Path], object]
CHANGES: dict[str, tuple[Change, str]] = {
    "grows": (
        lambda root: (root / SALES).write_text("id,region,amount\na,EMEA,10\nx,EMEA,999\n"),
        f"{SALES} was changed",
    ),
    "is gone": (lambda root: (root / SALES).unlink(), f"{SALES} is gone"),
    "of a join is gone": (lambda root: (root / "data/tiers.csv").unlink(), "data/tiers.csv is gone"),
}


def refused(books: Books, *observers: AtStep) -> Problem:
    problem = books.fails(observers=observers)
    assert problem.type == "DataLoadError" and "changed after it was planned" in problem.message
    return problem


CHANGED = "an input file vanishes or changes between plan and read"


@contextmanager
def old_files(books: Books) -> Iterator[None]:
    """Runs, and sees to it that the run of the block changes no output, and completes once its files are back."""
    books.run()
    folders = [books.root / name for name in ("warehouse", "reports", "data")]
    *outputs, inputs = (contents(folder) for folder in folders)
    times = {name: (books.root / "data" / name).stat().st_mtime_ns for name in inputs}
    yield
    assert [contents(folder) for folder in folders[:2]] == outputs
    for name, content in inputs.items():
        file = books.root / "data" / name
        file.write_bytes(content)
        os.utime(file, ns=(times[name], times[name]))
    books.retry()
    assert books.ledger() == JANUARY


@pytest.mark.fault(CHANGED, "DataLoadError; old files as they were; retry completed with the file put back")
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_between_plan_and_read(active: Books, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    make, said = CHANGES[change]
    real = LocatedTables.of

    def of(*arguments: object) -> object:
        make(active.root)
        return real(*arguments)  # type: ignore[arg-type]  # as they come

    with old_files(active), monkeypatch.context() as patch:
        patch.setattr(LocatedTables, "of", of)
        assert said in refused(active).message


@pytest.mark.fault(CHANGED, "DataLoadError; nothing written")
@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_while_the_run_is_under_way(active: Books, change: str) -> None:
    make, said = CHANGES[change]
    assert said in refused(active, AtStep(10, lambda: make(active.root))).message
    assert not contents(active.root / "warehouse"), "the rows that were staged are cleared"


def test_a_place_that_was_missing_and_appears(active: Books) -> None:
    """Rows of a file that came later are not joined by a later operation, and not by this run at all."""
    (active.root / "data/tiers.csv").unlink()
    rule = 'path: "{{table_name}}.csv"}'
    active.edit("places.yaml", rule, f"{rule}, on_missing: empty")
    active.open().activate("close")
    late = AtStep(50, lambda: (active.root / "data/tiers.csv").write_text("region,tier\nEMEA,late\n"))
    assert "data/tiers.csv is new" in refused(active, late).message
    assert {row[1] for row in delta_rows(active.root / "warehouse/ledger", columns=["id", "tier"])} == {None}
    assert not (active.root / "reports/2026-01").exists()


def test_a_file_of_an_earlier_output_is_never_read_by_the_run_that_wrote_it(
    active: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If everything else fails: a link that leads from an input to an output is made while the run is under way."""
    active.edit("close.yaml", "{datasource_id: warehouse, table: ledger}", "{location: out.csv}")
    active.edit("close.yaml", "        register_as_dataset: ledger\n", "")
    active.open().activate("close")
    real = file_writer.publish

    def then_linked(ready: Path, target: Path) -> None:
        real(ready, target)
        if target.name == "out.csv":
            (active.root / "data/tiers.csv").unlink()
            (active.root / "data/tiers.csv").symlink_to(target)

    monkeypatch.setattr(file_writer, "publish", then_linked)
    assert "data/tiers.csv was changed" in refused(active).message
    assert not (active.root / "reports/2026-01").exists()


RUNNING = """\
dataset:
  id: running
  name: Running
  resolver_id: running
  main_table: {name: running, columns: [{name: id, type: string}]}
---
resolver:
  id: running
  rules:
    - {name: one, on_missing: empty, strategy: {type: table, datasource_id: warehouse, table: running}}
---
project:
  id: run-on
  name: Run on
  input_dataset_id: sales
  operations:
    - seq: 1
      name: Write
      type: output
      arguments: {destination: {datasource_id: warehouse, table: running}, columns: [id]}
    - {seq: 2, name: Drop, type: delete}
    - {seq: 3, name: Add what was there, type: append, arguments: {source: {dataset_id: running}}}
    - {seq: 4, name: Write again, type: output, arguments: {destination: {location: again.csv}, columns: [id]}}
"""


def test_a_delta_table_is_read_as_it_was_planned_although_the_run_writes_it(books: Books, spark: SparkSession) -> None:
    (books.root / "running.yaml").write_text(RUNNING)
    books.open().activate("run-on")
    assert [output.rows_written for output in books.run("run-on").outputs] == [3, 0], "there was no table"
    february = books.run("run-on", "2026-02")
    assert [output.rows_written for output in february.outputs] == [len(FEBRUARY), 3], "the rows of January"
    assert books.open().replay(february.run.id).identical


def test_a_delta_table_that_somebody_makes_after_the_plan_is_not_read(
    books: Books, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (books.root / "running.yaml").write_text(RUNNING.replace("table: running}, columns", "table: other}, columns"))
    books.open().activate("run-on")
    real = LocatedTables.of

    def of(*arguments: object) -> object:
        write_deltalake(books.root / "warehouse/running", pa.table({"id": ["late"]}))
        return real(*arguments)  # type: ignore[arg-type]  # as they come

    monkeypatch.setattr(LocatedTables, "of", of)
    result = books.run("run-on")
    assert [output.rows_written for output in result.outputs] == [3, 0]
    monkeypatch.undo()
    assert books.open().replay(result.run.id).identical


def test_a_table_of_the_catalog_is_not_overwritten_through_its_files(books: Books, spark: SparkSession) -> None:
    folder = books.root / "kept"
    spark.sql("DROP TABLE IF EXISTS tiers_kept")
    spark.createDataFrame([("EMEA", "gold")], "region string, tier string").write.option(
        "path", str(folder)
    ).saveAsTable("tiers_kept")
    try:
        (books.root / "catalog.yaml").write_text("datasource: {id: catalog, type: spark_catalog}\n")
        books.edit(
            "places.yaml",
            'strategy: {type: path, datasource_id: files, path: "{{table_name}}.csv"}',
            "strategy: {type: table, datasource_id: catalog, table: tiers_kept}",
        )
        books.edit("close.yaml", '{location: "reports/{{period}}"}', "{location: {path: kept/new, format: csv}}")
        books.open().activate("close")
        with pytest.raises(RunError, match="is inside a location") as caught:
            books.run()
        assert (caught.value.problem.type, caught.value.problem.seq) == ("InvalidDestination", 50)
        assert not (books.root / "warehouse").exists() and not (folder / "new").exists()
    finally:
        spark.sql("DROP TABLE tiers_kept")
        shutil.rmtree(folder)
