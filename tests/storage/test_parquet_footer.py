"""Parquet files of other writers: what the file itself has counts, and a value is read exactly or refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallybook.errors import RunError
from tallybook.storage.formats.parquet_footer import parquet_reading

STATED = b"org.apache.spark.sql.parquet.row.metadata"


@pytest.fixture
def rewritten(spark, tmp_path):
    """`rewritten(change)`: a file of Spark that another tool has changed, with what Spark said about its columns."""

    def make(change):
        folder = tmp_path / "spark"
        rows = spark.range(1).selectExpr("id", "'x' AS name", "1.50BD AS amount", "DATE '2026-01-31' AS day")
        rows.coalesce(1).write.parquet(str(folder))
        file = tmp_path / "changed.parquet"
        table = change(pq.read_table(next(folder.glob("*.parquet"))))
        pq.write_table(table, file)
        assert STATED in pq.read_metadata(file).metadata
        return file

    return make


def test_a_column_that_only_the_metadata_names_is_missing(rewritten, refused, rows, locate, table):
    file = rewritten(lambda data: data.drop(["name"]))
    problem = refused(locate("parquet", file), table(id="integer", name="string"))
    assert (problem.type, f"{file} has no column 'name'" in problem.message) == ("SchemaMismatch", True)
    assert rows(locate("parquet", file), table(id="integer", amount="decimal(3,2)")) == [(0, Decimal("1.50"))]


def test_a_column_that_the_metadata_does_not_name_is_there(rewritten, rows, locate, table):
    file = rewritten(lambda data: data.append_column("region", pa.array(["EMEA"])))
    assert rows(locate("parquet", file), table(id="integer", region="string")) == [(0, "EMEA")]


@pytest.mark.parametrize(
    ("array", "declared", "expected"),
    [
        (pa.array([Decimal("1.2345")], pa.decimal128(10, 4)), "decimal(10,4)", Decimal("1.2345")),
        (pa.array([7], pa.int32()), "integer", 7),
        (pa.array([1.5]), "decimal(3,2)", None),
        (pa.array([Decimal("1.2345")], pa.decimal128(10, 4)), "decimal(3,2)", None),
        (pa.array(["1.50"]), "decimal(3,2)", None),
    ],
)
def test_a_type_counts_as_the_file_has_it(rewritten, refused, rows, locate, table, array, declared, expected):
    file = rewritten(lambda data: data.set_column(2, "amount", array))
    location, orders = locate("parquet", file), table(amount=declared)
    if expected is None:
        assert refused(location, orders).type == "SchemaMismatch"
    else:
        assert rows(location, orders) == [(expected,)]


def test_files_with_different_columns_of_their_own(spark, refused, rows, locate, table, tmp_path):
    spark.range(2).selectExpr("id", "'x' AS name").coalesce(1).write.parquet(str(tmp_path / "orders"))
    first = next((tmp_path / "orders").glob("*.parquet"))
    pq.write_table(pq.read_table(first), tmp_path / "orders/same.parquet")
    location, orders = locate("parquet", tmp_path / "orders"), table(id="integer", name="string")
    assert sorted(rows(location, orders)) == [(0, "x"), (0, "x"), (1, "x"), (1, "x")]
    changed = tmp_path / "orders/z.parquet"
    pq.write_table(pq.read_table(first).drop(["name"]), changed)
    problem = refused(location, orders)
    assert (problem.type, str(changed) in problem.message) == ("SchemaMismatch", True)


def save(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


def test_unsigned_numbers(rows, refused, locate, table, tmp_path):
    largest = {f"u{bits}": pa.array([2**bits - 1], f"uint{bits}") for bits in (8, 16, 32, 64)}
    location = locate("parquet", save(tmp_path / "a.parquet", **largest))
    assert rows(location, table(u8="integer", u16="decimal(10,0)", u32="integer")) == [(255, 65535, 2**32 - 1)]
    assert rows(location, table(u64="decimal(20,0)")) == [(2**64 - 1,)]
    assert refused(location, table(u64="integer")).type == "SchemaMismatch"


@pytest.mark.parametrize("as_integer", [True, False])
def test_decimals_in_every_layout(rows, locate, table, tmp_path, as_integer):
    arrays = {f"d{p}": pa.array([Decimal("-1.25"), None], pa.decimal128(p, 2)) for p in (4, 9, 18, 38)}
    pq.write_table(pa.table(arrays), tmp_path / "a.parquet", store_decimal_as_integer=as_integer)
    orders = table(d4="decimal(6,4)", d9="decimal(9,2)", d18="decimal(20,2)", d38="decimal(38,2)")
    assert rows(locate("parquet", tmp_path / "a.parquet"), orders) == [(Decimal("-1.25"),) * 4, (None,) * 4]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_nanoseconds_are_exact_or_refused(spark, rows, refused, locate, table, tmp_path, zone):
    type = pa.timestamp("ns", zone)
    location = locate("parquet", save(tmp_path / "a.parquet", at=pa.array([-1_000, 1_769_817_600_123_456_000], type)))
    local = dt.datetime.now().astimezone().utcoffset()
    expected = [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2026, 1, 31, 0, 0, 0, 123456)]
    assert rows(location, table(at="timestamp")) == [(moment + local,) for moment in expected]
    save(tmp_path / "a.parquet", at=pa.array([1_000, 1_001], type))
    problem = refused(location, table(at="timestamp"))
    assert (problem.type, "row 2: '1970-01-01 00:00:00.000001 (it has digits beyond" in problem.message) == (
        "DataLoadError",
        True,
    )


def test_old_timestamps_of_96_bits(rows, refused, locate, table, tmp_path):
    def save_int96(*nanos):
        columns = pa.table({"at": pa.array(nanos, pa.timestamp("ns"))})
        pq.write_table(columns, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
        return locate("parquet", tmp_path / "a.parquet")

    local = dt.datetime.now().astimezone().utcoffset()
    assert rows(save_int96(1_000, None), table(at="timestamp")) == [
        (dt.datetime(1970, 1, 1, 0, 0, 0, 1) + local,),
        (None,),
    ]
    problem = refused(save_int96(1_000, 1_001), table(at="timestamp"))
    assert (problem.type, "digits beyond microseconds" in problem.message) == ("DataLoadError", True)


@pytest.mark.parametrize("name", ["a.b", "a b", "a`b", "ä=1", '"'])
def test_odd_column_names(rows, locate, table, tmp_path, name):
    file = save(tmp_path / "a.parquet", **{name: [7], "other": [1]})
    orders = table(value="integer").model_copy(
        update={"columns": (table(value="integer").columns[0].model_copy(update={"source": name}),)}
    )
    assert rows(locate("parquet", file), orders) == [(7,)]


def test_columns_that_differ_only_in_case(rows, refused, locate, table, tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table([[1], [2], [3], [4]], names=["id", "ID", "Id", "n"]), file)
    assert rows(locate("parquet", file), table(n="integer")) == [(4,)]
    problem = refused(locate("parquet", file), table(id="integer"))
    assert (problem.type, "'ID' and 'Id' and 'id'" in problem.message) == ("SchemaMismatch", True)
    pq.write_table(pa.table([[1], [2]], names=["id", "id"]), file)
    assert "the column 'id' twice" in refused(locate("parquet", file), table(id="integer")).message


def test_columns_nobody_can_declare(rows, refused, locate, table, tmp_path):
    file = save(
        tmp_path / "a.parquet",
        id=[1],
        tags=[["x"]],
        address=[{"street": "s"}],
        at=pa.array([dt.time(1)], pa.time64("ns")),
        nothing=pa.array([None], pa.null()),
    )
    location = locate("parquet", file)
    assert rows(location, table(id="integer", nothing="date")) == [(1, None)]
    for name in ("tags", "address", "at"):
        problem = refused(location, table(**{name: "string"}))
        assert (problem.type, f"column '{name}'" in problem.message) == ("SchemaMismatch", True)


OLD = [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(2026, 1, 31)]


def test_old_dates_of_other_writers_are_exact(rows, locate, table, tmp_path):
    file = save(tmp_path / "a.parquet", day=OLD)
    assert rows(locate("parquet", file), table(day="date")) == [(day,) for day in OLD]


def test_old_dates_of_spark(spark, rows, locate, table, tmp_path):
    days = spark.createDataFrame([(day,) for day in OLD[::2]], "day date").coalesce(1)
    for mode in ("LEGACY", "CORRECTED"):
        with_mode = days.write.option("spark.sql.parquet.datetimeRebaseModeInWrite", mode)
        spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", mode)
        try:
            with_mode.parquet(str(tmp_path / mode))
        finally:
            spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInWrite")
        assert rows(locate("parquet", tmp_path / mode), table(day="date")) == [(day,) for day in OLD[::2]]


def foreign(path, said, created_by="parquet-mr version 1.8.1"):
    """A file of another writer: its metadata replaced, and the name of its writer in place of Arrow's."""
    columns = pa.table({"day": OLD, "at": pa.array([dt.datetime(1890, 1, 1)] * 3, pa.timestamp("us", "UTC"))})
    pq.write_table(columns.replace_schema_metadata(said), path)
    ours = pq.read_metadata(path).created_by.encode()
    path.write_bytes(path.read_bytes().replace(ours, created_by.ljust(len(ours)).encode()))
    return path


def test_old_dates_in_an_unknown_calendar_are_refused(refused, rows, locate, table, tmp_path):
    file = foreign(tmp_path / "a.parquet", {})
    problem = refused(locate("parquet", file), table(day="date"))
    assert problem.type == "DataLoadError"
    assert "row 1: '0001-01-01 (the file does not say which calendar" in problem.message
    assert "row 2: '1582-10-10" in problem.message and "row 3" not in problem.message
    assert (
        "row 1: '1890-01-01 00:00:00 (the file does not say"
        in refused(locate("parquet", file), table(at="timestamp")).message
    )


def test_the_calendar_a_footer_states(rows, locate, table, tmp_path):
    proleptic = foreign(tmp_path / "a.parquet", {"writer.date.proleptic": "true"})
    assert rows(locate("parquet", proleptic), table(day="date")) == [(day,) for day in OLD]
    julian = foreign(tmp_path / "b.parquet", {"writer.date.proleptic": "false"})
    assert rows(locate("parquet", julian), table(day="date"))[0] == (dt.date(1, 1, 3),)
    spark_2 = foreign(tmp_path / "c.parquet", {"org.apache.spark.version": "2.4.8"})
    assert rows(locate("parquet", spark_2), table(day="date"))[0] == (dt.date(1, 1, 3),)


@pytest.mark.parametrize(
    ("said", "created_by", "doubted"),
    [
        ({}, "parquet-cpp-arrow version 1", {}),
        ({}, "parquet-mr version 1.8.1", {"day", "at"}),
        ({"org.apache.spark.version": "4.2.1"}, "parquet-mr version 1.17.0", {}),
        ({"org.apache.spark.version": "2.4.8"}, "parquet-mr version 1.10.1", {"at"}),
        ({"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}, "parquet-mr version 1", {"at"}),
        ({"org.apache.spark.version": "2.4.8", "org.apache.spark.timeZone": "UTC"}, "parquet-mr version 1", {}),
        ({"org.apache.spark.version": "2.4.8"}, "parquet-cpp-arrow version 1", {"day", "at"}),
        ({"writer.date.proleptic": "false"}, "parquet-mr version 1", {"at"}),
    ],
)
def test_which_writers_are_trusted(tmp_path, said, created_by, doubted):
    reading = parquet_reading(str(foreign(tmp_path / "a.parquet", said, created_by)), ["day", "at"])
    assert {name for name, column in reading.columns if column.doubt} == set(doubted)


def test_years_beyond_9999_are_refused(refused, locate, table, tmp_path):
    file = save(tmp_path / "a.parquet", day=pa.array([2932897, -800_000], pa.int32()).cast(pa.date32()))
    problem = refused(locate("parquet", file), table(day="date"))
    assert (problem.type, problem.message.count("outside the years 1 to 9999")) == ("DataLoadError", 2)


def test_recent_values_are_read_without_checks(tmp_path):
    file = save(
        tmp_path / "a.parquet",
        day=[dt.date(2026, 1, 1)],
        at=[dt.datetime(2026, 1, 1)],
        none=pa.array([None], pa.date32()),
    )
    assert [column.doubt for _, column in parquet_reading(str(file), ["day", "at", "none"]).columns] == [None] * 3


def test_no_statistics_no_trust(tmp_path):
    pq.write_table(pa.table({"day": [dt.date(2026, 1, 1)]}), tmp_path / "a.parquet", write_statistics=False)
    [(_, column)] = parquet_reading(str(tmp_path / "a.parquet"), ["day"]).columns
    assert column.doubt is not None


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"id,name\n1,x\n", "it contains text"),
        (b"\x00\x01\x02\x03" * 20, "a file of another format"),
        (b"PAR1" + b"\0" * 100, "its end is missing"),
        (b"PAR1" + b"\xff" * 60 + b"PAR1", "its footer is damaged"),
        (b"PARE" + b"\0" * 60 + b"PARE", "it is encrypted"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, content, reason):
    file = tmp_path / "a.parquet"
    file.write_bytes(content)
    with pytest.raises(RunError) as caught:
        parquet_reading(str(file), ["id"])
    problem = caught.value.problem
    assert (problem.type, reason in problem.message, str(file) in problem.message) == ("DataLoadError", True, True)
    assert problem.hint is not None
