"""Small joined tables are fetched: the same values, and only if no key has two rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import Books

from tallybook.engine import fetching
from tallybook.engine.collect import collected
from tallybook.engine.fetching import fetch_unique
from tallybook.rows.joins import KeyedTables

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
    monkeypatch.setattr(fetching, "_MOST_ROWS", 3)
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
