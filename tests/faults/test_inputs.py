"""Truncated and corrupt input files of each format: a clear problem, outputs as they were, and the retry completes."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest
from tests.kit.workspaces import Books, contents
from tests.runs.test_damaged_files import ROWS, SOURCE, written

FORMATS = ("csv", "json", "parquet", "orc", "delta")
OUTCOME = "DataLoadError; old files as they were; run completed with the file put back"
TRIES = [
    pytest.param(format, seed, marks=() if (format, seed) == ("csv", 0) else pytest.mark.long)
    for format in FORMATS
    for seed in range(3)
]


def as_text(format: str, folder: Path) -> Path:
    """The same rows as the other formats have, in one file of text."""
    folder.mkdir(parents=True)
    file = folder / f"a.{format}"
    with file.open("w", encoding="utf-8", newline="") as handle:
        if format == "json":
            handle.writelines(json.dumps(row, default=str) + "\n" for row in ROWS.to_pylist())
        else:
            writer = csv.DictWriter(handle, ROWS.column_names, quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(ROWS.to_pylist())
    return file


@pytest.fixture
def damaged(active: Books) -> Damaged:
    return Damaged(active)


class Damaged:
    """A workspace that has run once; then its input is of another format, in one file that can be damaged."""

    def __init__(self, books: Books) -> None:
        self.books = books
        books.run()

    def read(self, format: str) -> Path:
        self.books.edit("places.yaml", "---\nresolver:\n  id: by-month", SOURCE.format(format=format))
        self.books.edit(
            "places.yaml",
            'datasource_id: files, path: "{{table_name}}/{{period}}.csv"',
            'datasource_id: columns, path: "{{table_name}}/{{period}}"',
        )
        self.books.open().activate("close")
        make = as_text if format in ("csv", "json") else written
        return make(format, self.books.root / "data/sales/2026-01")

    def check(self, format: str, content: bytes, file: Path) -> None:
        """Runs with the content in the file, then with the file as it was."""
        good, books = file.read_bytes(), self.books
        outputs = [books.root / "warehouse", books.root / "reports"]
        before = [contents(folder) for folder in outputs]
        file.write_bytes(content)
        problem = books.fails()
        assert (problem.type, str(file.parent) in problem.message) == ("DataLoadError", True), problem
        assert problem.hint
        assert [contents(folder) for folder in outputs] == before
        file.write_bytes(good)
        assert books.run().run.status == "completed"
        assert len(books.ledger()) == ROWS.num_rows


@pytest.mark.fault("a truncated input file", OUTCOME)
@pytest.mark.parametrize(("format", "seed"), TRIES)
def test_a_truncated_file(damaged: Damaged, format: str, seed: int) -> None:
    """Cuts a file of text inside a row, because a file that ends with a row is not visibly damaged."""
    file = damaged.read(format)
    content = file.read_bytes()
    end = random.Random(seed).randrange(len(content) // 4, len(content) - 3)
    while format in ("csv", "json") and content[end - 1 : end + 1].strip() != content[end - 1 : end + 1]:
        end -= 1
    damaged.check(format, content[:end], file)


@pytest.mark.fault("a corrupt input file", OUTCOME)
@pytest.mark.parametrize(("format", "seed"), TRIES)
def test_a_corrupt_file(damaged: Damaged, format: str, seed: int) -> None:
    """Replaces a tenth of the file with random bytes."""
    file = damaged.read(format)
    content = bytearray(file.read_bytes())
    choice = random.Random(seed)
    size = len(content) // 10
    start = choice.randrange(size, len(content) - size)
    content[start : start + size] = choice.randbytes(size)
    damaged.check(format, bytes(content), file)
