"""The core that executes a calculation: what is computed once, what is cut, what observers hear, and stable ids."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from tests.kit.operations import NOW, aggregate, applied, orders, rows, update

from tallybook.engine import keeping
from tallybook.engine.events import Event, Failed, Finished, OutputWritten, RunStarted, StepPlanned, StepStarted, Warned
from tallybook.engine.execute import Sink, Warn, execute, working_rows
from tallybook.engine.keeper import Keeper, MemoryKeeper, keeper_of
from tallybook.engine.plan import Calculation, RunContext
from tallybook.engine.tables import LocatedTables
from tallybook.errors import RunError, StoreError
from tallybook.model.dataset import Dataset
from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.model.period import GREGORIAN
from tallybook.operations.aggregate import AggregateStep
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


@dataclass
class Collected(Sink):
    """The rows of every output and of the final working dataset."""

    needs_working: bool = True

    written: dict[int, list[Row]] = field(default_factory=dict)
    final: list[Row] = field(default_factory=list)

    def publish(self, output: Publication, rows: DataFrame, _warn: Warn) -> None:
        self.written[output.seq] = rows.collect()

    def take_working(self, working: DataFrame) -> None:
        self.final = working.collect()


def calculated(spark: SparkSession, folder: Path, *operations: dict[str, object]) -> tuple[Calculation, LocatedTables]:
    project = Project.model_validate(
        {"id": "p", "name": "P", "input_dataset_id": "d", "operations": operations}, strict=False
    )
    period = GREGORIAN.period("2026-01")
    context = RunContext("r", period, period.start_date, NOW, 1_770_000_000_000)
    calculation = Calculation.of(bind_project(project, project.operations, DatasetVersions.of({"d": DATASET})), context)
    source = FileSource(id="s", type="parquet", options=FileOptions(path_prefix=str(folder)))
    return calculation, LocatedTables(spark, {calculation.input: (Location(source, str(folder)),)}, context)


def executed(spark: SparkSession, folder: Path, sink: Sink, *operations: dict[str, object], **options: object) -> None:
    execute(spark, *calculated(spark, folder, *operations), sink, **options)  # type: ignore[arg-type]  # of execute


def collected(spark: SparkSession, folder: Path, *operations: dict[str, object]) -> Collected:
    sink = Collected()
    executed(spark, folder, sink, *operations)
    return sink


@pytest.fixture
def parquet(spark: SparkSession, tmp_path: Path) -> Path:
    frame = spark.range(0, 100, numPartitions=3).selectExpr(
        "concat('k', id % 7) AS key", "CAST(id AS decimal(10,2)) AS amount"
    )
    frame.write.parquet(str(tmp_path / "in"))
    return tmp_path / "in"


SUMS = {"seq": 2, **aggregate(["key"], total="SUM(amount)"), "name": "sums"}


def test_two_outputs_of_a_run_agree_on_every_id(spark: SparkSession, parquet: Path) -> None:
    written = collected(spark, parquet, output(1), SUMS, output(3), output(4)).written
    ids = [{row["_row_id"]: row["amount"] for row in written[seq]} for seq in (1, 3, 4)]
    assert len(ids[0]) == 100 and ids[0].items() <= ids[1].items() and ids[1] == ids[2]
    assert len(ids[1]) == 107


def test_a_run_evaluated_again_agrees_on_every_cell(spark: SparkSession, parquet: Path) -> None:
    once, again = (collected(spark, parquet, SUMS, output(3)) for _ in range(2))
    assert Counter(once.written[3]) == Counter(again.written[3])
    assert Counter(once.final) == Counter(again.final)


def test_ids_are_ordered_as_the_rows_lie(spark: SparkSession, parquet: Path) -> None:
    final = collected(spark, parquet, output(1)).final
    by_id = [row["amount"] for row in sorted(final, key=lambda row: row["_row_id"])]
    in_files = [
        row["amount"] for file in sorted(parquet.glob("*.parquet")) for row in spark.read.parquet(str(file)).collect()
    ]
    assert by_id == in_files


def test_the_time_of_a_run_is_not_written_into_generated_code(
    spark: SparkSession, parquet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs of a project share their code, so a session compiles it once."""
    frame = working_rows(spark, *calculated(spark, parquet, SUMS))
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
    """On a cluster; checkpoints are removed by Spark."""
    monkeypatch.setattr("tallybook.engine.execute.keeper_of", lambda _spark: MemoryKeeper())
    kept: list[DataFrame] = []
    keep = MemoryKeeper.keep
    monkeypatch.setattr(MemoryKeeper, "keep", lambda self, *args: kept.append(keep(self, *args)) or kept[-1])
    again = {**SUMS, "seq": 5, "name": "again", **aggregate(["key"], other="COUNT(*)")}
    collected(spark, parquet, output(1), SUMS, output(3), {**again, "seq": 5}, output(6))
    assert kept and not any(frame.storageLevel.useMemory or frame.storageLevel.useDisk for frame in kept)


@pytest.mark.long
def test_twelve_aggregates_over_all_rows_before_them_end_soon(spark: SparkSession, parquet: Path) -> None:
    """A plan that doubles with each of them would take hours."""
    every = [{"seq": seq, "name": f"n{seq}", **aggregate(["key"], **{f"n{seq}": "COUNT(*)"})} for seq in range(1, 13)]
    written = collected(spark, parquet, *every, output(50, columns=["key", "n12"])).written[50]
    keys = Counter(row["key"] for row in spark.read.parquet(str(parquet)).collect())
    assert {row["key"]: row["n12"] for row in written if row["n12"] is not None} == {
        key: count + 11 for key, count in keys.items()
    }


@pytest.mark.long
def test_totals_over_rows_of_many_origins_end_soon(spark: SparkSession, parquet: Path) -> None:
    """Each update reads the rows of six origins. A plan that grew six times with each of them would take hours."""
    every = [{"seq": seq, "name": f"n{seq}", **aggregate(["key"], **{f"n{seq}": "COUNT(*)"})} for seq in range(1, 6)]
    chain = [f"COUNT(*) OVER (key) + {value}" for value in ("0", "a", "b", "c", "d")]
    named = zip("abcde", chain, strict=True)
    updates = [{"seq": 10 + seq, "name": name, **update(**{name: text})} for seq, (name, text) in enumerate(named)]
    done = collected(spark, parquet, *every, *updates, output(50, columns=["key", "e"]), output(60, columns=["e"]))
    keys = Counter(row["key"] for row in spark.read.parquet(str(parquet)).collect())
    assert {(row["key"], row["e"]) for row in done.written[50]} == {(key, 5 * (n + 5)) for key, n in keys.items()}
    assert Counter(row["e"] for row in done.written[60]) == Counter(row["e"] for row in done.written[50])


@pytest.mark.parametrize("keeper", [Keeper, MemoryKeeper])
def test_totals_are_computed_once_for_two_outputs(
    spark: SparkSession, parquet: Path, keeper: type[Keeper], capsys: pytest.CaptureFixture[str]
) -> None:
    @dataclass
    class Explained(Collected):
        def publish(self, output: Publication, rows: DataFrame, warn: Warn) -> None:
            super().publish(output, rows, warn)
            rows.explain()

    share = {"seq": 1, "name": "share", **update(share="amount / SUM(amount) OVER (key)")}
    sink = Explained(needs_working=False)
    executed(spark, parquet, sink, share, output(2), output(3), keeper=keeper())
    plans = capsys.readouterr().out
    assert "Scan ExistingRDD" in plans if keeper is Keeper else "InMemoryTableScan" in plans
    totals: Counter[str] = Counter()
    for row in sink.written[2]:
        totals[row["key"]] += row["share"]
    assert {round(total, 6) for total in totals.values()} == {1}
    assert Counter(sink.written[2]) == Counter(sink.written[3])


def test_results_that_nothing_looks_at_may_read_columns_that_were_not_kept(spark: SparkSession, parquet: Path) -> None:
    """The summary is kept with its key alone; `n` is read later only for columns that no output has."""
    sink = Collected(needs_working=False)
    dead = [
        {"seq": 3, "name": "dead update", **update(twice="n * 2")},
        {"seq": 4, "name": "dead result", **aggregate(["key"], most="MAX_AGG(n)", total="SUM(amount)")},
    ]
    counted = {"seq": 1, "name": "counted", **aggregate(["key"], n="COUNT(*)")}
    executed(spark, parquet, sink, counted, output(2, columns=["key"]), *dead, output(5, columns=["key"]))
    keys = len({row["key"] for row in sink.written[2]})
    assert len(sink.written[5]) == len(sink.written[2]) + keys


@pytest.mark.parametrize(
    ("master", "keeper"),
    [("local", Keeper), ("local[2]", Keeper), ("local-cluster[2,1,512]", MemoryKeeper), ("yarn", MemoryKeeper)],
)
def test_rows_are_kept_so_that_a_lost_executor_can_be_replaced(master: str, keeper: type[Keeper]) -> None:
    session = SimpleNamespace(conf={"spark.master": master})
    assert type(keeper_of(session)) is keeper


def test_a_long_chain_is_cut_and_stays_right(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "CUT_EVERY", 3)
    cuts: list[int] = []
    frame = orders(spark, ("A", "EMEA", "on", 0, 0), ("B", "APAC", "on", 0, 5))
    checkpoint = type(frame).localCheckpoint
    monkeypatch.setattr(type(frame), "localCheckpoint", lambda self, **kw: cuts.append(1) or checkpoint(self, **kw))
    after = applied(frame, *[update("quantity < 5", quantity="quantity + 1")] * 11)
    assert rows(after, "order_id", "quantity") == [("A", 5), ("B", 5)]
    assert len(cuts) == 2


def test_observers_hear_what_happens_in_order(spark: SparkSession, parquet: Path) -> None:
    class Warning(Collected):
        def publish(self, output: Publication, rows: DataFrame, warn: Warn) -> None:
            super().publish(output, rows, warn)
            warn(f"output {output.seq} is odd")

        def finish(self, warn: Warn) -> None:
            warn("all is odd")

    heard: list[Event] = []
    also: list[Event] = []
    executed(spark, parquet, Warning(), SUMS, output(3), observers=[heard.append, also.append])
    assert heard == also
    started, first, planned, second, warned, written, last, finished = heard
    assert isinstance(started, RunStarted) and [step.seq for step in started.steps] == [2, 3]
    assert isinstance(first, StepStarted) and isinstance(planned, StepPlanned) and first.step is planned.step
    assert isinstance(second, StepStarted) and isinstance(written, OutputWritten) and second.step is written.step
    assert written.seconds > 0
    assert (warned, last, finished) == (Warned("output 3 is odd"), Warned("all is odd"), Finished())


def test_a_step_that_cannot_be_planned_is_not_told_as_planned(
    spark: SparkSession, parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(AggregateStep, "add", fail)
    heard: list[Event] = []
    with pytest.raises(ZeroDivisionError):
        executed(spark, parquet, Collected(), SUMS, output(3), observers=[heard.append])
    assert [type(event) for event in heard] == [RunStarted, StepStarted, Failed]


def test_a_failure_is_attributed_to_its_step_and_told(spark: SparkSession, parquet: Path) -> None:
    heard: list[Event] = []
    wrong = {"seq": 2, **update("TRUE", amount='TO_DECIMAL(CONCAT("x", key))'), "name": "wrong"}
    with pytest.raises(RunError) as caught:
        executed(spark, parquet, Collected(), wrong, output(3), observers=[heard.append])
    problem = caught.value.problem
    assert (problem.type, problem.seq, problem.operation) == ("EvaluationError", 2, "wrong")
    assert isinstance(heard[-1], Failed) and heard[-1].step is not None
    assert (heard[-1].step.seq, heard[-1].problems) == (2, (problem,))


@pytest.mark.parametrize(
    "error", [StoreError("gone"), KeyboardInterrupt(), ZeroDivisionError("a bug")], ids=["store", "interrupt", "bug"]
)
def test_what_is_no_problem_of_a_step_comes_out_as_it_is(
    spark: SparkSession, parquet: Path, error: BaseException
) -> None:
    class Failing(Sink):
        def publish(self, _output: Publication, _rows: DataFrame, _warn: Warn) -> None:
            raise error

    heard: list[Event] = []
    with pytest.raises(type(error)) as caught:
        executed(spark, parquet, Failing(), output(3), observers=[heard.append])
    assert caught.value is error
    assert isinstance(heard[-1], Failed) and heard[-1].problems == ()
