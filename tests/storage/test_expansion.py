"""`${...}` in names and paths is plain text: Spark and Hadoop would put variables and settings there."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyarrow import orc

from tallybook.model.datasource import CatalogSource
from tallybook.model.location import Location
from tallybook.storage import write

SPARK = ["${env:PATH}", "${system:java.home}", "${spark:tallybook.secret}"]
HADOOP = ["${tallybook.secret}", "${env.PATH}", "${java.home}", "${env.NONE:-other}"]


@pytest.fixture(autouse=True)
def _expanding(spark):
    """A session as others start it."""
    settings = {"spark.sql.variable.substitute": "true", "tallybook.secret": "hunter2"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    assert spark.range(1).selectExpr(f"'{'|'.join(SPARK)}' AS t").first().t.startswith(os.environ["PATH"])
    yield
    for key in settings:
        spark.conf.unset(key)


def _data(format, folder, names):
    data = pa.table({name: [f"value of {name}"] for name in names})
    folder.mkdir()
    match format:
        case "parquet":
            pq.write_table(data, folder / "a.parquet")
        case "orc":
            orc.write_table(data, folder / "a.orc")
        case "delta":
            write_deltalake(folder, data)
        case "csv":
            (folder / "a.csv").write_text(",".join(names) + "\n" + ",".join(f"value of {n}" for n in names) + "\n")
        case "json":
            (folder / "a.json").write_text("{" + ", ".join(f'"{n}": "value of {n}"' for n in names) + "}\n")


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc", "delta"])
def test_columns(rows, locate, table, tmp_path, format):
    _data(format, tmp_path / "data", SPARK)
    columns = {f"c{index}": f"string {name}" for index, name in enumerate(SPARK)}
    expected = [tuple(f"value of {name}" for name in SPARK)]
    assert rows(locate(format, tmp_path / "data"), table(**columns)) == expected
    checked = columns | {"c0": f"string! {SPARK[0]}"}
    assert rows(locate(format, tmp_path / "data"), table(**checked)) == expected


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc", "delta"])
@pytest.mark.parametrize("name", HADOOP)
def test_columns_that_hadoop_would_expand(rows, refused, locate, table, tmp_path, format, name):
    """The columnar readers ask for columns in a setting of Hadoop's, which replaces them: the column would be NULL."""
    _data(format, tmp_path / "data", ["id", name])
    location = locate(format, tmp_path / "data")
    if format in ("csv", "json"):
        assert rows(location, table(c=f"string {name}")) == [(f"value of {name}",)]
    else:
        problem = refused(location, table(c=f"string {name}"))
        assert (problem.type, name in problem.message) == ("SchemaMismatch", True)
        assert rows(location, table(id="string")) == [("value of id",)]


@pytest.mark.parametrize("name", [*SPARK, *HADOOP])
def test_bad_values_are_named(refused, locate, table, text, name):
    problem = refused(locate("csv", text("a.csv", name, "x")), table(n=f"integer {name}"))
    assert (problem.type, f"'{name}'" in problem.message) == ("DataLoadError", True)


@pytest.mark.parametrize(
    "format", ["csv", "parquet", *(pytest.param(name, marks=pytest.mark.long) for name in ("json", "orc"))]
)
def test_paths(spark, rows, locate, table, tmp_path, format):
    for name in ("${tallybook.secret}", "${env.PATH}", "${java.home}"):
        for target in (tmp_path / name / "folder", tmp_path / name / f"one.{format}", tmp_path / f"of {name}.{format}"):
            write(spark, spark.range(1), locate(format, target), mode="overwrite", run_id="run", seq=1)
            assert rows(locate(format, target), table(id="integer")) == [(0,)]
    assert len(list(tmp_path.iterdir())) == 6


def test_paths_of_delta_tables(spark, rows, locate, table, tmp_path):
    for name in ("${tallybook.secret}", "${env.PATH}"):
        write(spark, spark.range(1), locate("delta", tmp_path / name), mode="overwrite", run_id="run", seq=1)
        assert rows(locate("delta", tmp_path / name), table(id="integer")) == [(0,)]
    assert len(list(tmp_path.iterdir())) == 2


def test_texts_of_options_and_folders(rows, locate, table, tmp_path):
    for name in ("${env:PATH}", "${java.home}"):
        (tmp_path / f"data/part={name.replace(':', '%3A')}").mkdir(parents=True)
        (tmp_path / f"data/part={name.replace(':', '%3A')}/a.csv").write_text(f"a\n{name}\nx\n")
    location = locate("csv", tmp_path / "data", null_value="${env:PATH}", period="${env:PATH}")
    found = rows(location, table("period", a="string", part="string"))
    assert sorted(found, key=str) == [
        ("${java.home}", "${java.home}", "${env:PATH}"),
        ("x", "${env:PATH}", "${env:PATH}"),
        ("x", "${java.home}", "${env:PATH}"),
        (None, "${env:PATH}", "${env:PATH}"),
    ]


@pytest.mark.parametrize("name", SPARK)
def test_tables_of_the_catalog(spark, rows, refused, table, name):
    location = Location(CatalogSource(id="warehouse", type="spark_catalog"), name.replace(".", "_"))
    problem = refused(location, table(id="integer"))
    assert (problem.type, location.target in problem.message) == ("DataNotFound", True)
    spark.conf.set("spark.sql.variable.substitute", "false")
    spark.range(1).toDF(name).createOrReplaceTempView(f"`{location.target}`")
    spark.conf.set("spark.sql.variable.substitute", "true")
    assert rows(location, table(id=f"integer {name}")) == [(0,)]
