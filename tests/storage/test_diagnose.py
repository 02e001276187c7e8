"""Damaged files and logs are explained in plain words, each with the name of the damaged file."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from tallybook.errors import RunError
from tallybook.storage.diagnose import failed_read
from tallybook.storage.formats.delta_log import log_fault
from tallybook.storage.formats.delta_table import open_table, scan_delta

FOREIGN = ("Kernel", "Exception", "org.apache", "java.", "unknown", "\n")


def entry(path, version):
    return path / "_delta_log" / f"{version:020d}.json"


@pytest.fixture
def orders(tmp_path):
    """A Delta table of three versions, each with a row more."""
    path = tmp_path / "orders"
    for id in range(3):
        write_deltalake(path, pa.table({"id": [id]}), mode="append")
    return path


def cut(file, end):
    file.write_bytes(file.read_bytes()[:end])


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda file: cut(file, -30), "is cut off or damaged"),
        (lambda file: cut(file, 0), "is empty"),
        (lambda file: file.write_bytes(b"\x00\xff garbage"), "is cut off or damaged"),
        (lambda file: file.write_text("[1]\n"), "is damaged"),
        (lambda file: file.write_bytes(file.read_bytes().splitlines()[0]), "is cut off: files are missing in it"),
    ],
)
@pytest.mark.parametrize("version", [0, 2])
def test_a_damaged_entry_of_the_log_is_named(spark, locate, orders, damage, what, version):
    damage(entry(orders, version))
    with pytest.raises(RunError) as caught:
        scan_delta(spark, locate("delta", orders), [], 0)
    problem = caught.value.problem
    assert (problem.type, f"{entry(orders, version)} {what}" in problem.message) == ("DataLoadError", True)
    assert problem.hint and not any(word in problem.message for word in FOREIGN)


def test_a_version_before_the_damage_can_still_be_read(locate, orders):
    cut(entry(orders, 2), -30)
    table = open_table(locate("delta", orders, version=1))
    assert table is not None and pa.table(table.get_add_actions()).num_rows == 2
    with pytest.raises(RunError) as caught:
        open_table(locate("delta", orders, version=2))
    assert str(entry(orders, 2)) in caught.value.problem.message


def test_a_damaged_checkpoint_is_named(locate, orders):
    DeltaTable(orders).create_checkpoint()
    [checkpoint] = (orders / "_delta_log").glob("*.parquet")
    cut(checkpoint, -50)
    with pytest.raises(RunError) as caught:
        open_table(locate("delta", orders))
    problem = caught.value.problem
    assert (problem.type, f"{checkpoint} is damaged" in problem.message) == ("DataLoadError", True)


def test_entries_below_a_checkpoint_do_not_count(locate, orders):
    DeltaTable(orders).create_checkpoint()
    cut(entry(orders, 1), 10)
    assert open_table(locate("delta", orders)) is not None
    assert log_fault(str(orders), 2) is None


def test_versions_that_are_not_there(locate, orders):
    with pytest.raises(RunError, match="the newest version of the table is 2"):
        open_table(locate("delta", orders, version=7))


def test_a_table_of_a_newer_delta(locate, orders):
    first = entry(orders, 0)
    first.write_text(first.read_text().replace('"minReaderVersion":1', '"minReaderVersion":99'))
    with pytest.raises(RunError) as caught:
        open_table(locate("delta", orders))
    assert caught.value.problem.type == "SchemaMismatch"


def test_an_entry_says_how_much_it_adds(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    file = entry(tmp_path, 0)
    add = {"add": {"path": "a", "stats": json.dumps({"numRecords": 2})}}
    info = {"commitInfo": {"tallybook.rows": 4}}
    file.write_text("\n".join(map(json.dumps, [info, add, add])))
    assert log_fault(str(tmp_path)) is None
    file.write_text("\n".join(map(json.dumps, [info, add])))
    assert log_fault(str(tmp_path)) == f"{file} is cut off: files are missing in it"


def test_a_data_file_of_another_size_than_the_log_says(refused, locate, table, orders):
    file = min(orders.glob("*.parquet"))
    cut(file, -20)
    problem = refused(locate("delta", orders), table(id="integer"))
    assert (problem.type, f"{file} is damaged" in problem.message) == ("DataLoadError", True)
    file.unlink()
    problem = refused(locate("delta", orders), table(id="integer"))
    assert (problem.type, str(file) in problem.message) == ("DataNotFound", True)


def test_damage_that_spark_does_not_place_is_looked_for(locate, tmp_path):
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "good.parquet")
    pq.write_table(pa.table({"id": range(1000)}), tmp_path / "bad.parquet")
    assert failed_read(Exception("boom"), [locate("parquet", tmp_path)]) is None
    content = bytearray((tmp_path / "bad.parquet").read_bytes())
    content[4:400] = bytes(396)
    (tmp_path / "bad.parquet").write_bytes(content)
    found = failed_read(Exception("boom"), [locate("parquet", tmp_path)])
    assert found is not None
    problem, file = found
    assert (problem.type, file) == ("DataLoadError", str(tmp_path / "bad.parquet"))
    assert problem.hint is not None
