"""Runs whose files are damaged end in a plain problem that names the file, and write nothing."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import orc
from pyspark.sql import SparkSession
from tests.kit.workspaces import FOREIGN, Books

from tallybook.errors import Problem, RunError

ROWS = pa.table(
    {
        "id": ["a", "b"] * 500,
        "region": ["EMEA", "APAC"] * 500,
        "amount": pa.array([Decimal(number) for number in range(1, 1001)], pa.decimal128(10, 2)),
    }
)

CORRUPT, TRUNCATED = (
    pytest.mark.fault(f"a {damage} input file", "DataLoadError; nothing written") for damage in ("corrupt", "truncated")
)


def zeros_in_the_middle(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[10:200] = bytes(190)
    file.write_bytes(content)


def cut_in_half(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def written(format: str, folder: Path) -> Path:
    """Rows of the table in a format, and the file that has them."""
    folder.mkdir(parents=True, exist_ok=True)
    match format:
        case "delta":
            write_deltalake(folder, ROWS)
            return folder / DeltaTable(folder).file_uris()[0].rpartition("/")[2]
        case "orc":
            orc.write_table(ROWS, folder / "a.orc", compression="zlib")
        case _:
            pq.write_table(ROWS, folder / "a.parquet")
    return folder / f"a.{format}"


def problem_of(books: Books) -> Problem:
    with pytest.raises(RunError) as failed:
        books.run()
    return failed.value.problem


@pytest.mark.parametrize(
    ("format", "damage"),
    [
        pytest.param("parquet", zeros_in_the_middle, marks=CORRUPT),
        pytest.param("parquet", cut_in_half, marks=TRUNCATED),
        pytest.param("orc", zeros_in_the_middle, marks=CORRUPT),
        pytest.param("delta", zeros_in_the_middle, marks=CORRUPT),
    ],
)
def test_a_damaged_file_is_a_plain_problem(
    spark: SparkSession, active: Books, format: str, damage: Callable[[Path], None]
) -> None:
    active.edit("places.yaml", "---\nresolver:\n  id: by-month", SOURCE.format(format=format))
    active.edit("places.yaml", 'datasource_id: files, path: "{{table_name}}/{{period}}.csv"',
                'datasource_id: columns, path: "{{table_name}}/{{period}}"')  # fmt: skip
    file = written(format, active.root / "data/sales/2026-01")
    damage(file)
    problem = problem_of(active)
    assert (problem.type, str(file) in problem.message) == ("DataLoadError", True)
    assert problem.hint and not any(word in problem.message for word in FOREIGN)
    assert not list(active.root.glob("warehouse/ledger/*")), "not even a staged file or folder is left"


SOURCE = """---
datasource: {{id: columns, type: {format}, options: {{path_prefix: data}}}}
---
resolver:
  id: by-month"""


def test_a_file_that_another_program_has_changed_has_old_checksums(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    spark.range(1000).coalesce(1).write.parquet(str(folder))
    (file,) = folder.glob("*.parquet")
    pq.write_table(pa.table({"id": list(range(2000))}), file)
    with pytest.raises(Exception) as caught:
        spark.read.schema("id long").parquet(str(folder)).collect()
    from tallybook.storage.diagnose import failed_read

    found = failed_read(caught.value, [])
    assert found is not None and found[0].hint is not None
    assert found[0].hint.endswith(f"remove .{file.name}.crc, which has its old checksums")


def test_a_file_that_is_removed_while_it_is_read(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    frame = spark.read.parquet(str(tmp_path))
    assert frame.columns  # a Connect server lists the files now, too
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(Exception) as caught:
        frame.collect()
    from tallybook.storage.diagnose import failed_read

    found = failed_read(caught.value, [])
    assert found is not None
    assert found[0].message == f"{tmp_path}/a.parquet was removed while the run was reading it"
