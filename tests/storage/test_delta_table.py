"""Delta tables read through delta-rs' log and Spark's Parquet reader."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake


def test_versions(rows, refused, locate, table, tmp_path):
    path = tmp_path / "a table"
    write_deltalake(path, pa.table({"id": [1, 2]}))
    write_deltalake(path, pa.table({"id": [3], "note": ["x"]}), mode="append", schema_mode="merge")
    write_deltalake(path, pa.table({"id": [4]}), mode="overwrite", schema_mode="overwrite")
    assert rows(locate("delta", path, version=0), table(id="integer!")) == [(1,), (2,)]
    both = rows(locate("delta", path, version=1), table(id="integer!", note="string"))
    assert sorted(both) == [(1, None), (2, None), (3, "x")]
    assert rows(locate("delta", path), table(id="integer!")) == [(4,)]
    assert refused(locate("delta", path), table(note="string")).type == "SchemaMismatch"
    assert refused(locate("delta", path, version=9), table(id="integer")).type == "DataNotFound"
    assert refused(locate("delta", tmp_path / "none"), table(id="integer")).type == "DataNotFound"


def test_rows_a_cleanup_took(refused, locate, table, tmp_path):
    path = tmp_path / "t"
    write_deltalake(path, pa.table({"id": [1]}))
    write_deltalake(path, pa.table({"id": [2]}), mode="overwrite")
    DeltaTable(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    assert refused(locate("delta", path, version=0), table(id="integer")).type == "DataNotFound"


def test_partition_columns_come_from_the_log(rows, refused, locate, table, tmp_path):
    path = tmp_path / "t"
    data = pa.table({"id": [1, 2, 3], "region": ["a b/é", "x=1", None], "month": pa.array([1, 2, None], pa.int32())})
    write_deltalake(path, data, partition_by=["region", "month"])
    found = rows(locate("delta", path), table(id="integer", region="string", month="integer"))
    assert sorted(found) == [(1, "a b/é", 1), (2, "x=1", 2), (3, None, None)]
    assert refused(locate("delta", path), table(id="integer", region="integer")).type == "DataLoadError"


def test_an_empty_table(rows, locate, table, tmp_path):
    DeltaTable.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    assert rows(locate("delta", tmp_path / "t"), table(id="integer")) == []


def test_reader_features_are_refused(refused, locate, table, tmp_path):
    DeltaTable.create(
        tmp_path / "t", pa.schema([("id", pa.int64())]), configuration={"delta.enableDeletionVectors": "true"}
    )
    problem = refused(locate("delta", tmp_path / "t"), table(id="integer"))
    assert (problem.type, "deletionVectors" in problem.message) == ("SchemaMismatch", True)
