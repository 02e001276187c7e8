"""All files of a folder are read, or reading fails and names those that would be left out."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tallybook.storage.inputs import fingerprint


@pytest.fixture
def file(text, tmp_path):
    """`file("csv", "d/1.csv", 7)`: a file with the column id and one value."""

    def make(format, name, id):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match format:
            case "csv":
                text(name, "id", id)
            case "json":
                text(name, f'{{"id": {id}}}')
            case "parquet":
                pq.write_table(pa.table({"id": [id]}), path)
            case "orc":
                orc.write_table(pa.table({"id": [id]}), path)
        return path

    return make


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc"])
@pytest.mark.parametrize(
    ("names", "left_out"),
    [
        (["1", "month=01/x"], ["1"]),
        (["1", "sub/2"], ["sub/2"]),
        (["a/1", "b/2"], ["a/1", "b/2"]),
        (["y=1/1", "y=2/m=1/2"], ["y=2/m=1/2"]),
        (["y=1/1", "z=1/2"], ["z=1/2"]),
        (["y=1/1", "y=3/3", "Y=2/2"], ["Y=2/2"]),
        (["y=1/m=1/1", "m=1/y=1/2"], ["y=1/m=1/1"]),
        (["y=1/1", "y=2/sub/2"], ["y=2/sub/2"]),
        (["a/y=1/1", "b/y=1/2"], ["a/y=1/1", "b/y=1/2"]),
        (["x.csv/1"], ["x.csv/1"]),
    ],
)
def test_a_mixture_is_refused(refused, locate, table, file, tmp_path, format, names, left_out):
    for number, name in enumerate(names):
        file(format, f"d/{name}", number)
    problem = refused(locate(format, tmp_path / "d", on_missing="empty"), table(id="integer"))
    assert problem.type == "DataLoadError"
    assert problem.message.endswith(" " + ", ".join(left_out))
    assert str(tmp_path / "d") in problem.message


@pytest.mark.parametrize(("names", "left_out"), [(["1", "m=1/x"], "1"), (["1", "sub/2"], "sub/2"), (["a/1"], "a/1")])
def test_a_mixture_elsewhere(monkeypatch, refused, locate, table, file, tmp_path, names, left_out):
    monkeypatch.setattr("tallybook.storage.folders.local_files", lambda location: None)
    for number, name in enumerate(names):
        file("csv", f"a b%20é/{name}", number)
    problem = refused(locate("csv", tmp_path / "a b%20é"), table(id="integer"))
    assert (problem.type, problem.message.endswith(f" {left_out}")) == ("DataLoadError", True)


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc"])
def test_a_pattern_says_which_files_are_meant(spark, rows, refused, locate, table, file, tmp_path, format):
    for name, id in {"1.x": 1, "sub/2.x": 2, "sub/deep/3.x": 3, ".git/4.x": 4, "_tmp/5.x": 5, "_6.x": 6}.items():
        file(format, f"d/{name}", id)
    for pattern, ids in {"d/*.x": [1], "d/*/*.x": [2], "d/{sub/2,1}.x": [1, 2], "d/_*/*": [5]}.items():
        location = locate(format, tmp_path / pattern)
        assert sorted(rows(location, table(id="integer"))) == [(id,) for id in ids]
        assert len(fingerprint(spark, location)) == len(ids)
    problem = refused(locate(format, tmp_path / "d/*"), table(id="integer"))
    assert (problem.type, "deep/3.x" in problem.message) == ("DataLoadError", True)


def test_hidden_files_are_no_data(spark, rows, locate, table, file, tmp_path):
    file("csv", "d/1.csv", 1)
    for hidden in (".2.csv", "_3.csv", "_tmp/4.csv", ".git/5.csv", "6.csv._COPYING_"):
        file("csv", f"d/{hidden}", 9)
    location = locate("csv", tmp_path / "d")
    assert rows(location, table(id="integer")) == [(1,)]
    assert [listed["file"] for listed in fingerprint(spark, location)] == [str(tmp_path / "d/1.csv")]


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc"])
def test_a_pattern_next_to_hidden_folders_of_partitions(rows, locate, table, file, tmp_path, format):
    file(format, f"d/a.{format}", 1)
    file(format, f"d/_logs/month=01/b.{format}", 2)
    assert rows(locate(format, tmp_path / "d" / "*"), table(id="integer")) == [(1,)]


def test_links(rows, refused, locate, table, file, tmp_path):
    file("csv", "elsewhere/x.csv", 1)
    (tmp_path / "linked.csv").symlink_to(tmp_path / "elsewhere/x.csv")
    (tmp_path / "d").symlink_to(tmp_path / "elsewhere")
    for target in ("linked.csv", "d"):
        assert rows(locate("csv", tmp_path / target), table(id="integer")) == [(1,)]
    (tmp_path / "elsewhere/self").symlink_to(tmp_path / "elsewhere")
    assert (
        "is a link to a folder that contains it" in refused(locate("csv", tmp_path / "d"), table(id="integer")).message
    )
    (tmp_path / "elsewhere/self").unlink()
    (tmp_path / "elsewhere/y.csv").symlink_to("nowhere.csv")
    problem = refused(locate("csv", tmp_path / "d"), table(id="integer"))
    assert (problem.type, "y.csv is a link to a file that does not exist" in problem.message) == ("DataLoadError", True)


def test_what_is_no_file(refused, locate, table, file, tmp_path):
    file("csv", "d/1.csv", 1)
    os.mkfifo(tmp_path / "d/pipe")
    problem = refused(locate("csv", tmp_path / "d"), table(id="integer"))
    assert (problem.type, "pipe is neither a file nor a folder" in problem.message) == ("DataLoadError", True)


@pytest.mark.parametrize("target", ["pipe.csv", "p*.csv", "p{i,o}pe.csv"])
def test_a_pipe_that_is_named_is_not_waited_for(refused, locate, table, tmp_path, target):
    os.mkfifo(tmp_path / "pipe.csv")
    problem = refused(locate("csv", tmp_path / target), table(id="integer"))
    assert (problem.type, "pipe.csv is neither a file nor a folder" in problem.message) == ("DataLoadError", True)


def test_a_folder_column_named_twice(refused, locate, table, file, tmp_path):
    file("csv", "d/y=1/y=2/1.csv", 1)
    problem = refused(locate("csv", tmp_path / "d"), table(id="integer"))
    assert (problem.type, "names the column 'y' twice" in problem.message) == ("DataLoadError", True)
