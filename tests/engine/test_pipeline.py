"""The loop that runs a plan: what is computed once, what is cut, and ids that stay the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from tests.rules.kit import NOW, aggregate, applied, orders, rows, update

from tallybook.engine import pipeline as pipelines
from tallybook.engine.context import RunContext
from tallybook.engine.pipeline import Pipeline
from tallybook.engine.tables import LocatedTables
from tallybook.model.dataset import Dataset
from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.model.period import GREGORIAN
from tallybook.operations.publication import Publication
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project

COLUMNS = [{"name": "key", "type": "string"}, {"name": "amount", "type": "decimal(10,2)"}]
DATASET = Dataset.model_validate(
    {"id": "d", "name": "D", "main_table": {"name": "t", "columns": COLUMNS}}, strict=False
)


def output(seq: int, **arguments: object) -> dict[str, object]:
    destination = {"destination": {"location": "nowhere"}}
    return {"seq": seq, "name": f"out {seq}", "type": "output", "arguments": destination | arguments}


def make_pipeline(spark: SparkSession, folder: Path, *operations: dict[str, object]) -> Pipeline:
    project = Project.model_validate(
        {"id": "p", "name": "P", "input_dataset_id": "d", "operations": operations}, strict=False
    )
    bound = bind_project(project, project.operations, DatasetVersions.of({"d": DATASET}))
    assert bound.problems == () and bound.input is not None and bound.schema is not None
    period = GREGORIAN.period("2026-01")
    source = FileSource(id="s", type="parquet", options=FileOptions(path_prefix=str(folder)))
    tables = LocatedTables(spark, {bound.input: (Location(source, str(folder)),)}, period, GREGORIAN)
    context = RunContext("r", period, period.start_date, NOW, 1_770_000_000_000)
    return Pipeline(spark, bound.input, bound.schema, bound.steps, context, tables)


def collected(pipeline: Pipeline) -> tuple[dict[int, list[Row]], list[Row]]:
    """The rows of every output and of the final working dataset."""
    written: dict[int, list[Row]] = {}

    def write(output: Publication, frame: DataFrame) -> None:
        written[output.seq] = frame.collect()

    final = pipeline.run(write).collect()
    pipeline.release()
    return written, final


@pytest.fixture
def parquet(spark: SparkSession, tmp_path: Path) -> Path:
    frame = spark.range(0, 100, numPartitions=3).selectExpr(
        "concat('k', id % 7) AS key", "CAST(id AS decimal(10,2)) AS amount"
    )
    frame.write.parquet(str(tmp_path / "in"))
    return tmp_path / "in"


SUMS = {"seq": 2, **aggregate(["key"], total="SUM(amount)"), "name": "sums"}


def test_two_outputs_of_a_run_agree_on_every_id(spark: SparkSession, parquet: Path) -> None:
    written, _ = collected(make_pipeline(spark, parquet, output(1), SUMS, output(3), output(4)))
    ids = [{row["_row_id"]: row["amount"] for row in written[seq]} for seq in (1, 3, 4)]
    assert len(ids[0]) == 100 and ids[0].items() <= ids[1].items() and ids[1] == ids[2]
    assert len(ids[1]) == 107


def test_a_run_evaluated_again_agrees_on_every_cell(spark: SparkSession, parquet: Path) -> None:
    once = collected(make_pipeline(spark, parquet, SUMS, output(3)))
    again = collected(make_pipeline(spark, parquet, SUMS, output(3)))
    assert Counter(once[0][3]) == Counter(again[0][3])
    assert Counter(once[1]) == Counter(again[1])


def test_ids_are_ordered_as_the_rows_lie(spark: SparkSession, parquet: Path) -> None:
    _, final = collected(make_pipeline(spark, parquet, output(1)))
    by_id = [row["amount"] for row in sorted(final, key=lambda row: row["_row_id"])]
    in_files = [
        row["amount"] for file in sorted(parquet.glob("*.parquet")) for row in spark.read.parquet(str(file)).collect()
    ]
    assert by_id == in_files


def test_the_time_of_a_run_is_not_written_into_generated_code(
    spark: SparkSession, parquet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs of a project share their code, so a session compiles it once."""
    frame = make_pipeline(spark, parquet, SUMS).run(lambda _step, _frame: None)
    adaptive = spark.conf.get("spark.sql.adaptive.enabled", "true")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        frame.select("*").explain("codegen")
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", str(adaptive))
    shown = capsys.readouterr().out
    assert "Generated code" in shown
    assert f"{int(NOW.timestamp())}000000L" not in shown


def test_what_is_kept_is_let_go(spark: SparkSession, parquet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[DataFrame] = []
    keep = Pipeline.keep
    monkeypatch.setattr(Pipeline, "keep", lambda self, *args: kept.append(keep(self, *args)) or kept[-1])
    again = {**SUMS, "seq": 5, "name": "again", **aggregate(["key"], other="COUNT(*)")}
    collected(make_pipeline(spark, parquet, output(1), SUMS, output(3), {**again, "seq": 5}, output(6)))
    assert kept and not any(frame.storageLevel.useMemory or frame.storageLevel.useDisk for frame in kept)


def test_a_long_chain_is_cut_and_stays_right(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "CUT_EVERY", 3)
    cuts: list[int] = []
    frame = orders(spark, ("A", "EMEA", "on", 0, 0), ("B", "APAC", "on", 0, 5))
    checkpoint = type(frame).localCheckpoint
    monkeypatch.setattr(type(frame), "localCheckpoint", lambda self, **kw: cuts.append(1) or checkpoint(self, **kw))
    after = applied(frame, *[update("quantity < 5", quantity="quantity + 1")] * 8)
    assert rows(after, "order_id", "quantity") == [("A", 5), ("B", 5)]
    assert len(cuts) == 2
