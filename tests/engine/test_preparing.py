"""Joins without a check: tables whose keys are known to be unique, and small tables that are fetched."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession
from tests.kit.workspaces import Books

from tallybook.engine import preparing
from tallybook.engine.collect import collected
from tallybook.engine.preparing import fetch_unique
from tallybook.model.dataset import Table
from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.rows.joins import KeyedTables
from tallybook.storage import inputs

ALL_TYPES = """
    SELECT * FROM VALUES
        ('a', 1L, true, 12345678901234567890123456789.123456789BD,
         DATE '0001-01-01', TIMESTAMP '0001-01-01 00:00:00.000001'),
        ('ä🙂', -9223372036854775808L, false, -0.000000001BD,
         DATE '9999-12-31', TIMESTAMP '9999-12-31 23:59:59.999999'),
        ('', NULL, NULL, NULL, NULL, NULL)
    AS t(text, whole, flag, number, day, moment)
"""


def test_every_value_stays_the_same(spark: SparkSession) -> None:
    frame = spark.sql(ALL_TYPES)
    for key in frame.columns:
        fetched = fetch_unique(frame, [key])
        assert fetched is not None
        assert [field.dataType for field in fetched.schema] == [field.dataType for field in frame.schema]
        assert sorted(map(str, collected(fetched))) == sorted(map(str, collected(frame)))


@pytest.mark.parametrize(
    ("rows", "is_fetched"),
    [
        ("('a', 1.0BD), ('a', 2.0BD), ('b', 1.0BD)", True),
        ("('a', 1.0BD), ('b', 1.0BD), ('a', 1.0BD)", False),
        ("('a', NULL), ('a', NULL), (NULL, NULL)", True),
        ("('a', 1.0BD), ('a ', 1.0BD), ('A', 1.0BD)", True),
        ("('a', 1.0BD), ('b', 1.0BD), ('c', 1.0BD), ('d', 1.0BD)", False),
    ],
    ids=["unique together", "twice", "twice without a match", "text is exact", "too many"],
)
def test_unique_keys(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, rows: str, is_fetched: bool) -> None:
    monkeypatch.setattr(preparing, "_MOST_ROWS", 3)
    frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(k, n)")
    assert (fetch_unique(frame, ["k", "n"]) is not None) == is_fetched


def test_no_row_at_all(spark: SparkSession) -> None:
    fetched = fetch_unique(spark.sql(ALL_TYPES).filter("false"), ["text"])
    assert fetched is not None and collected(fetched) == []


@pytest.fixture
def books(tmp_path: Path, spark: SparkSession) -> Books:
    books = Books.at(tmp_path)
    books.open().activate("close")
    return books


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each joined table that was looked for is known to be unique."""
    seen: list[bool] = []
    by_key = KeyedTables.by_key

    def look(self: KeyedTables, *given: object, **named: object) -> object:
        rows = by_key(self, *given, **named)  # type: ignore[arg-type]
        seen.append(rows.is_unique)
        return rows

    monkeypatch.setattr(KeyedTables, "by_key", look)
    return seen


def test_a_run_fetches_what_it_joins(books: Books, fetched: list[bool]) -> None:
    books.run()
    assert fetched == [True]
    assert [row[:3] for row in books.ledger()] == [("a", "gold", Decimal("9.00")), ("b", "silver", Decimal("18.00"))]


def test_a_second_match_is_found_by_the_join(books: Books, fetched: list[bool]) -> None:
    books.edit("data/tiers.csv", "EMEA,gold\n", "EMEA,gold\nEMEA,silver\n")
    problem = books.fails()
    assert (problem.type, problem.seq) == ("JoinNotUnique", 10)
    assert "EMEA" in problem.message
    assert fetched[0] is False


def test_a_second_match_that_nothing_needs(books: Books, fetched: list[bool]) -> None:
    books.edit("data/tiers.csv", "EMEA,gold\n", "EMEA,gold\nAMER,silver\nAMER,gold\n")
    books.run()
    assert fetched == [False]
    assert len(books.ledger()) == 2


def test_a_bad_value_in_a_small_table_is_a_problem_of_the_operation(tmp_path: Path, spark: SparkSession) -> None:
    books = Books.at(tmp_path)
    books.edit("tiers.yaml", "{name: tier, type: string}", "{name: tier, type: integer}")
    problem = books.fails()
    assert (problem.type, problem.seq) == ("DataLoadError", 10)
    assert "gold" in problem.message


class Tiers:
    """The table that the books join, in Parquet files or as a Delta table, and too large to be fetched."""

    def __init__(self, books: Books, format: str) -> None:
        self.books, self.format = books, format
        self.folder = books.root / "data" / "tiers"
        books.edit(
            "places.yaml",
            'datasource_id: files, path: "{{table_name}}.csv"}}',
            'datasource_id: stored, path: "{{table_name}}"}}',
        )
        (books.root / "stored.yaml").write_text(
            f"datasource: {{id: stored, type: {format}, options: {{path_prefix: data}}}}\n", encoding="utf-8"
        )

    def write(self, *rows: tuple[str | None, str]) -> None:
        """Writes each row to a file of its own."""
        for number, (region, tier) in enumerate(rows):
            table = pa.table({"region": pa.array([region], pa.string()), "tier": [tier]})
            if self.format == "delta":
                write_deltalake(self.folder, table, mode="append")
            else:
                self.folder.mkdir(exist_ok=True)
                pq.write_table(table, self.folder / f"{number}.parquet")


@pytest.fixture(params=["parquet", "delta"])
def tiers(request: pytest.FixtureRequest, books: Books, monkeypatch: pytest.MonkeyPatch) -> Tiers:
    monkeypatch.setattr(inputs, "_SMALL_BYTES", 0)
    return Tiers(books, request.param)


def test_unique_keys_of_files_need_no_check(tiers: Tiers, fetched: list[bool]) -> None:
    tiers.write(("EMEA", "gold"), ("APAC", "silver"), (None, "none"), (None, "none"))
    tiers.books.run()
    assert fetched == [True]
    assert [row[:3] for row in tiers.books.ledger()] == [
        ("a", "gold", Decimal("9.00")),
        ("b", "silver", Decimal("18.00")),
    ]


def test_keys_of_files_that_repeat_are_checked(tiers: Tiers, fetched: list[bool]) -> None:
    tiers.write(("EMEA", "gold"), ("APAC", "silver"), ("AMER", "gold"), ("AMER", "gold"))
    tiers.books.run()
    assert fetched == [False]
    tiers.write(("EMEA", "gold"), ("EMEA", "silver"))
    problem = tiers.books.fails()
    assert (problem.type, problem.seq) == ("JoinNotUnique", 10)
    assert "EMEA" in problem.message


def test_groups_by_the_keys_of_a_join_need_no_check(books: Books, fetched: list[bool]) -> None:
    grouped = "aggregation: {group_by: [region], aggregations: [{column: tier, expression: MAX_AGG(tier)}]}"
    books.edit("close.yaml", "dataset_id: tiers, on", f"dataset_id: tiers, {grouped}, on")
    books.edit("data/tiers.csv", "EMEA,gold\n", "EMEA,gold\nEMEA,bronze\n")
    books.open().activate("close")
    books.run()
    assert fetched == [True]
    assert [row[1] for row in books.ledger()] == ["gold", "silver"]


def test_system_columns_of_a_joined_table_are_filled_in(books: Books) -> None:
    selector = '\'_period = PERIOD() AND _source_dataset = "tiers" AND _labels = ""\''
    books.edit("close.yaml", "dataset_id: tiers, on", f"dataset_id: tiers, selector: {selector}, on")
    rows = "EMEA,gold,,other\nAPAC,silver,2025-12,other\n"
    (books.root / "data/tiers.csv").write_text(f"region,tier,_period,_source_dataset_id\n{rows}")
    books.open().activate("close")
    books.run()
    assert [row[1] for row in books.ledger()] == ["gold", None]


def test_nothing_is_known_of_system_columns(tmp_path: Path) -> None:
    rows = pa.table({"k": ["a", "b"], "_labels": ["x", None], "_source_table": ["s", "t"]})
    pq.write_table(rows, tmp_path / "t.parquet")
    source = FileSource(id="s", type="parquet", options=FileOptions(path_prefix=str(tmp_path)))
    table = Table.model_validate({"name": "t", "columns": [{"name": "k", "type": "string"}]}, strict=False)
    locations = [Location(source, str(tmp_path / "t.parquet"))]
    assert inputs.have_unique_keys(locations, table, ["k"], [])
    for name in ("_labels", "_source_table", "_row_id"):
        assert not inputs.have_unique_keys(locations, table, [name], [])
