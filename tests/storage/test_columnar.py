"""Parquet, ORC and catalog tables: types widen without loss or are refused, positions do not depend on parallelism."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.errors import PySparkException

from tallybook.model.datasource import CatalogSource
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.rows.ids import POSITION
from tallybook.rows.raising import parse_raised
from tallybook.storage import read, read_all, scan


def save(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def test_widening_without_loss(rows, locate, table, tmp_path):
    day = dt.date(2026, 1, 31)
    file = save(
        tmp_path / "a.parquet",
        small=pa.array([1], pa.int32()),
        whole=pa.array([Decimal(7)], pa.decimal128(18, 0)),
        amount=pa.array([Decimal("1.5")], pa.decimal128(5, 1)),
        count=pa.array([2], pa.int32()),
        at=pa.array([day], pa.date32()),
        naive=pa.array([dt.datetime(2026, 1, 31, 10)], pa.timestamp("us")),
        ignored=pa.array([0.5]),
    )
    orders = table(
        small="integer", whole="integer", amount="decimal(10,2)", count="decimal(12,2)", at="timestamp",
        naive="timestamp",
    )  # fmt: skip
    local = dt.datetime.now().astimezone().utcoffset()
    assert rows(locate("parquet", file), orders) == [
        (1, 7, Decimal("1.50"), Decimal("2.00"), dt.datetime(2026, 1, 31) + local, dt.datetime(2026, 1, 31, 10) + local)
    ]


def test_all_columns_that_do_not_fit_are_named(refused, locate, table, tmp_path):
    file = save(tmp_path / "a.parquet", id=pa.array([1]), amont=pa.array(["1"]), rate=pa.array([0.5]))
    orders = table(id="string", amount="decimal(10,2)", rate="decimal(5,2)", region="string")
    problem = refused(locate("parquet", file), orders)
    assert (problem.type, problem.message) == (
        "SchemaMismatch",
        f"4 columns of {file} do not fit table 'orders': 'id' is bigint, declared as string; 'amount' is missing (did "
        "you mean 'amont'?); 'rate' is double, declared as decimal(5,2); 'region' is missing",
    )
    assert problem.hint == "declare the names and types that the data has, or correct the data"


def test_of_very_many_columns_the_first_are_named(refused, locate, table, tmp_path):
    file = save(tmp_path / "a.parquet", id=pa.array([1]))
    problem = refused(locate("parquet", file), table(**{f"value_{number}": "string" for number in range(12)}))
    assert problem.message.startswith(f"12 columns of {file} do not fit table 'orders': 'value_0' is missing; ")
    assert problem.message.endswith("'value_9' is missing; and 2 more")


@pytest.mark.parametrize(
    ("array", "declared"),
    [
        (pa.array([1.5]), "decimal"),
        (pa.array(["1"]), "integer"),
        (pa.array([1]), "string"),
        (pa.array([1], pa.int64()), "decimal(20,2)"),
        (pa.array([Decimal("1.234")], pa.decimal128(10, 3)), "decimal(10,2)"),
        (pa.array([Decimal("1")], pa.decimal128(19, 0)), "integer"),
        (pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us", "UTC")), "date"),
        (pa.array([b"x"]), "string"),
    ],
)
def test_another_type_is_refused(refused, locate, table, tmp_path, array, declared):
    file = save(tmp_path / "a.parquet", value=array)
    problem = refused(locate("parquet", file), table(value=declared))
    assert problem.type == "SchemaMismatch"
    assert str(file) in problem.message
    assert "'value'" in problem.message


def test_nulls_where_none_may_be(refused, locate, table, tmp_path):
    file = save(tmp_path / "a.parquet", id=[1, None, 3, None])
    problem = refused(locate("parquet", file), table(id="integer!"))
    assert (problem.type, f"{file} row 2: NULL; {file} row 4: NULL" in problem.message) == ("DataLoadError", True)


def test_a_column_missing_in_one_of_the_files(refused, rows, locate, table, tmp_path):
    save(tmp_path / "orders/a.parquet", id=pa.array([1], pa.int32()), note=["x"])
    save(tmp_path / "orders/b.parquet", note=["y"], id=pa.array([2], pa.int64()))
    location = locate("parquet", tmp_path / "orders")
    assert rows(location, table(id="integer", note="string")) == [(1, "x"), (2, "y")]
    file = save(tmp_path / "orders/c.parquet", id=[3])
    problem = refused(location, table(id="integer", note="string"))
    assert (problem.type, str(file) in problem.message) == ("SchemaMismatch", True)


def test_files_elsewhere_are_asked_through_spark(monkeypatch, refused, locate, table, tmp_path):
    monkeypatch.setattr("tallybook.storage.formats.columnar._readable_here", lambda paths: False)
    save(tmp_path / "a [1]/a.parquet", id=[1], note=["x"])
    file = save(tmp_path / "a [1]/b.parquet", id=[2])
    problem = refused(locate("parquet", tmp_path / "a \\[1\\]"), table(id="integer", note="string"))
    assert (problem.type, str(file) in problem.message) == ("SchemaMismatch", True)


def test_system_columns_come_along_where_they_are(spark, locate, table, tmp_path):
    file = save(
        tmp_path / "a.parquet", id=[1], month=["2026-01"], _row_id=["r"], _operation_seq=pa.array([3], pa.int32())
    )
    orders = table("period", id="integer").model_copy(update={"period_column": "month"})
    frame = read(spark, locate("parquet", file), orders)
    assert set(frame.columns) == {"id", "_row_id", "_operation_seq", "_period", POSITION}
    assert dict(frame.dtypes)["_operation_seq"] == "bigint"
    assert frame.select("_period", "_row_id").collect() == [("2026-01", "r")]


@pytest.mark.parametrize("at_once", [True, False])
def test_names_that_begin_with_underscores_are_the_users(rows, locate, table, tmp_path, at_once):
    file = save(tmp_path / "a.parquet", a=[11, 22], __file=["x", "y"], __row=pa.array([3, 4], pa.int32()))
    orders = table(__position="integer a", __file="string", __row="integer" if at_once else "integer!")
    assert rows(locate("parquet", file), orders) == [(11, "x", 3), (22, "y", 4)]


def test_validity_columns_must_be_there(refused, locate, table, tmp_path):
    problem = refused(locate("parquet", save(tmp_path / "a.parquet", id=[1])), table("bitemporal", id="integer"))
    assert (problem.type, "'_valid_from'" in problem.message) == ("SchemaMismatch", True)


def test_locations_of_child_periods(spark, rows, locate, table, tmp_path):
    save(tmp_path / "01/a.parquet", id=[1, 2])
    save(tmp_path / "02/a.parquet", id=[3], _period=["2026-02"])
    locations = [locate("parquet", tmp_path / month, period=f"2026-{month}") for month in ("01", "02")]
    locations.append(locate("parquet", tmp_path / "03", period="2026-03", on_missing="empty"))
    found = read_all(spark, locations, table("period", id="integer")).orderBy(POSITION)
    assert found.select("id", "_period").collect() == [(1, "2026-01"), (2, "2026-01"), (3, "2026-02")]
    assert [row[0] for row in found.select(POSITION).collect()] == [0, 1, 1 << 40]


def test_a_period_must_be_known(refused, locate, table, tmp_path):
    problem = refused(locate("parquet", save(tmp_path / "a.parquet", id=[1])), table("period", id="integer"))
    assert (problem.type, "'_period'" in problem.message) == ("SchemaMismatch", True)


@pytest.mark.parametrize("searched", [1, 32])
def test_positions_follow_files_and_rows(monkeypatch, spark, locate, table, tmp_path, searched):
    monkeypatch.setattr(scan, "_SEARCHED_FILES", searched)
    names = ["b c%20+é", "a", "z{1}", "m"]
    for number, name in enumerate(sorted(names)):
        save(tmp_path / "orders" / f"{name}.parquet", id=[number * 10 + row for row in range(3)])
    frame = read(spark, locate("parquet", tmp_path / "orders"), table(id="integer"))
    for partitions in (1, 3):
        found = {row.id: row[POSITION] for row in frame.repartition(partitions).collect()}
        assert found == {file * 10 + row: file << 40 | row for file in range(4) for row in range(3)}


@pytest.mark.parametrize("searched", [1, 32])
def test_a_file_that_was_not_listed_gets_no_position(monkeypatch, spark, tmp_path, searched):
    monkeypatch.setattr(scan, "_SEARCHED_FILES", searched)
    columns = [scan.FILE, scan.NAME, scan.ROW]
    rows = spark.createDataFrame([("b", "b", 0), ("bb", "bb", 1)], columns)
    with pytest.raises(PySparkException) as caught:
        values = {name: sql.name(name) for name in columns}
        source, values = scan.positioned(spark, rows, values, {"a": 0, "b": 1, "c": 2})
        source.selectExpr(values[POSITION]).collect()
    assert parse_raised(caught.value) == {"type": "InternalError", "unlisted_file": "bb"}


def test_missing_locations(spark, refused, locate, table, tmp_path):
    (tmp_path / "empty/_hidden").mkdir(parents=True)
    for target in (tmp_path / "no.parquet", tmp_path / "empty", tmp_path / "no*"):
        location = locate("parquet", target, resolver="by-month", rule="monthly")
        problem = refused(location, table(id="integer"))
        assert problem.type == "DataNotFound"
        assert all(fact in problem.message for fact in ("by-month", "monthly", str(target)))
    frame = read(spark, locate("parquet", tmp_path / "no", on_missing="empty"), table(id="integer"))
    assert (frame.dtypes[0], frame.count()) == (("id", "bigint"), 0)


def test_a_file_a_folder_and_a_pattern(rows, locate, table, tmp_path):
    save(tmp_path / "a1.parquet", id=[1])
    save(tmp_path / "a2.parquet", id=[2])
    save(tmp_path / "b.parquet", id=[3])
    (tmp_path / "_SUCCESS").touch()
    targets = {"a1.parquet": [(1,)], "a*.parquet": [(1,), (2,)], "": [(1,), (2,), (3,)]}
    for target, expected in targets.items():
        assert rows(locate("parquet", tmp_path / target), table(id="integer")) == expected


def test_not_such_a_file(refused, locate, table, text, tmp_path):
    file = text("a.parquet", "id", "1")
    problem = refused(locate("parquet", file), table(id="integer"))
    assert (problem.type, str(file) in problem.message) == ("DataLoadError", True)


def test_orc(rows, refused, locate, table, tmp_path):
    (tmp_path / "orders").mkdir()
    orc.write_table(pa.table({"id": pa.array([1, 2], pa.int32())}), tmp_path / "orders/a.orc")
    location = locate("orc", tmp_path / "orders")
    assert rows(location, table(id="integer!")) == [(1,), (2,)]
    orc.write_table(pa.table({"no": [1]}), tmp_path / "orders/b.orc")
    assert refused(location, table(id="integer")).type == "SchemaMismatch"


def test_catalog_tables(spark, rows, refused, table):
    spark.range(3).selectExpr("id", "cast(id as double) amount").createOrReplaceTempView("stored_orders")
    location = Location(CatalogSource(id="warehouse", type="spark_catalog"), "stored_orders")
    assert sorted(rows(location, table(id="integer"))) == [(0,), (1,), (2,)]
    assert refused(location, table(amount="decimal")).type == "SchemaMismatch"
    assert refused(Location(location.source, "no_such_table"), table(id="integer")).type == "DataNotFound"
    assert refused(Location(location.source, "orders_2026-01"), table(id="integer")).type == "DataNotFound"
