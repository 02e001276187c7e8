"""What is found out about the rows of Parquet files without Spark: unique keys, and texts that are never blank."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallybook.storage.formats import parquet_rows
from tallybook.storage.formats.parquet_rows import are_never_blank, are_unique


def files(folder: Path, *tables: dict[str, object]) -> list[str]:
    written = [folder / f"{number}.parquet" for number in range(len(tables))]
    for file, columns in zip(written, tables, strict=True):
        pq.write_table(pa.table(columns), file)
    return list(map(str, written))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 1, 2], True),
        ([3, 1, 3], False),
        ([3, None, None], True),
        (["a", "A", "a "], True),
        (["a", "b", "a"], False),
        ([None, "b", None], True),
        ([Decimal("1.10"), Decimal("1.20")], True),
        ([Decimal("1.10"), Decimal("1.1")], False),
        ([], False),
        ([date(2026, 1, 1), date(2026, 1, 2)], True),
        ([date(2026, 1, 1), None, date(2026, 1, 1)], False),
        ([date(1582, 10, 14), date(2026, 1, 2)], False),
        ([datetime(2026, 1, 1), datetime(2026, 1, 2)], False),
        ([1.5, 2.5], False),
        ([[1], [2]], False),
    ],
)
def test_one_key(tmp_path: Path, values: Sequence[object], expected: bool) -> None:
    assert are_unique(files(tmp_path, {"k": values, "other": values}), ["k"]) is expected


@pytest.mark.parametrize(
    ("second", "expected"), [("x", False), ("y", True), (None, True)], ids=["the same", "another", "no value"]
)
def test_two_keys_over_two_files(tmp_path: Path, second: str | None, expected: bool) -> None:
    tables = {"a": [1, 2], "b": ["x", "x"]}, {"a": [1, 3], "b": [second, "x"]}
    assert are_unique(files(tmp_path, *tables), ["a", "b"]) is expected
    assert are_unique(files(tmp_path, *tables), ["a"]) is False


def test_only_rows_of_the_periods_count(tmp_path: Path) -> None:
    data = files(tmp_path, {"k": [1, 1, 2], "_period": ["2026-01", "2026-02", "2026-01"]})
    assert are_unique(data, ["k"]) is False
    assert are_unique(data, ["k"], ("_period", ["2026-01"])) is True
    assert are_unique(data, ["k"], ("_period", ["2026-01", "2026-02"])) is False
    assert are_unique(data, ["k"], ("month", ["2026-01"])) is False
    assert are_unique(data, ["_period", "k"], ("_period", ["2026-01"])) is True


def test_nothing_is_concluded_from_what_cannot_be_compared(tmp_path: Path) -> None:
    assert are_unique([], ["k"]) is False
    assert are_unique(files(tmp_path, {"k": [1]}, {"other": [1]}), ["k"]) is False
    assert are_unique(files(tmp_path, {"k": [1]}, {"k": ["x"]}), ["k"]) is False
    assert are_unique(files(tmp_path, {"n": [{"k": 1}, {"k": 2}]}), ["k"]) is False
    assert are_unique(files(tmp_path, {"K": [1, 2]}), ["k"]) is False


@pytest.mark.parametrize("limit", ["_MOST_ROWS", "_MOST_BYTES"])
def test_many_rows_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    data = files(tmp_path, {"k": [1, 2, 3]})
    assert are_unique(data, ["k"])
    monkeypatch.setattr(parquet_rows, limit, 2)
    assert not are_unique(data, ["k"])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [(["a", "b c"], True), (["a", None], False), (["a", ""], False), (["a", " b"], False), (["a", "\t"], False)],
)
def test_never_blank(tmp_path: Path, texts: Sequence[str | None], expected: bool) -> None:
    data = files(tmp_path, {"t": ["z"]}, {"t": texts})
    assert are_never_blank(data, "t") is expected
    assert are_never_blank(data, "other") is False
    assert are_never_blank([], "t") is False
