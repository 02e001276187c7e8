"""Dates and timestamps in ORC files: read as they were written, or refused; our own files are read back exactly."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from pyarrow import orc

from tallybook.errors import RunError
from tallybook.storage import read_all, write
from tallybook.storage.formats.orc_footer import orc_reading

DAYS = [dt.date(1, 1, 1), dt.date(1500, 3, 10), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1969, 12, 31),
        dt.date(2026, 1, 31), dt.date(9999, 12, 31)]  # fmt: skip
GAP = dt.date(1582, 10, 10)
MOMENTS = ["0001-01-01 00:00:00", "1500-03-10 01:02:03", "1582-10-15 00:00:00", "1899-12-31 23:59:59",
           "1969-12-31 23:59:59", "1970-01-01 00:00:00", "1970-01-01 00:00:00.000999", "2026-07-31 01:02:03.456789",
           "9999-12-31 23:59:59.999999"]  # fmt: skip
FRACTIONS = ["0001-01-01 00:00:00.000001", "1582-10-04 12:00:00.000005", "1899-12-31 23:59:59.999999",
             "1960-06-01 00:00:00.123456", "1969-12-31 23:59:58.5", "1969-12-31 23:59:59.000999"]  # fmt: skip
UTC = dt.UTC


def moments(texts, zone=None):
    values = [dt.datetime.fromisoformat(text) for text in texts]
    return pa.array([value.replace(tzinfo=UTC) if zone else value for value in values], pa.timestamp("us", zone))


@pytest.fixture
def texts(spark, locate, table):
    """The values of column `v` of a file as text, which also exists in year 1 and in every time zone."""

    def read(target, type):
        frame = read_all(spark, [locate("orc", target)], table(v=type))
        return [row[0] for row in frame.selectExpr("string(v)").collect()]

    return read


@pytest.fixture
def stored(spark, locate, tmp_path):
    """Values written by Tallybook itself."""

    def make(type, values):
        rows = spark.createDataFrame([(value,) for value in values], "v string").selectExpr(f"CAST(v AS {type}) v")
        target = tmp_path / "out"
        write(spark, rows.coalesce(1), locate("orc", target), mode="overwrite", run_id="r", seq=1)
        return target

    return make


def test_dates_of_another_writer(texts, tmp_path):
    days = [*DAYS, GAP]
    orc.write_table(pa.table({"v": days}), tmp_path / "a.orc")
    assert texts(tmp_path / "a.orc", "date") == [day.isoformat() for day in days]
    assert texts(tmp_path / "a.orc", "timestamp") == [f"{day.isoformat()} 00:00:00" for day in days]


def test_our_own_dates_come_back(texts, stored):
    days = [day.isoformat() for day in DAYS]
    assert texts(stored("date", days), "date") == days


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_timestamps_of_another_writer(texts, tmp_path, zone):
    orc.write_table(pa.table({"v": moments([*MOMENTS, "1582-10-10 12:00:00"], zone)}), tmp_path / "a.orc")
    assert texts(tmp_path / "a.orc", "timestamp") == [*MOMENTS, "1582-10-10 12:00:00"]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("text", FRACTIONS)
def test_fractions_before_1970_of_another_writer_are_refused(refused, locate, table, tmp_path, zone, text):
    orc.write_table(pa.table({"v": moments(["2026-01-31 00:00:00", text], zone)}), tmp_path / "a.orc")
    problem = refused(locate("orc", tmp_path / "a.orc"), table(v="timestamp"))
    assert (problem.type, "before 1970" in problem.message) == ("DataLoadError", True)


def test_our_own_timestamps_come_back(texts, stored):
    assert texts(stored("timestamp", MOMENTS + FRACTIONS), "timestamp") == MOMENTS + FRACTIONS


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("date", "1582-10-05"),
        ("date", "1582-10-14"),
        ("timestamp", "1582-10-14 23:59:59.999999"),
        ("timestamp", "1969-12-31 23:59:59.001"),
        ("timestamp", "1969-12-31 23:59:59.999999"),
        ("timestamp", "1970-01-01 00:00:00.001"),
        ("timestamp", "1970-01-01 01:30:00.5"),
    ],
)
def test_what_orc_cannot_hold_is_not_written(stored, type, value):
    with pytest.raises(RunError) as caught:
        stored(type, ["2026-01-31", value])
    problem = caught.value.problem
    assert (problem.type, f"column 'v' has the value {value}" in problem.message) == ("WriteFailed", True)


def test_the_seconds_around_1970_are_refused_where_they_may_be_wrong(spark, refused, locate, table, tmp_path):
    spark.sql("SELECT TIMESTAMP '1969-12-31 23:59:59.5' AS v").write.orc(str(tmp_path / "a"))
    problem = refused(locate("orc", tmp_path / "a"), table(v="timestamp"))
    assert (problem.type, "cannot tell the last second before 1970" in problem.message) == ("DataLoadError", True)


def test_nanoseconds_are_refused_not_cut(refused, locate, table, tmp_path):
    orc.write_table(pa.table({"v": pa.array([1_001, 1_000], pa.timestamp("ns"))}), tmp_path / "a.orc")
    problem = refused(locate("orc", tmp_path / "a.orc"), table(v="timestamp"))
    assert (problem.type, "'1970-01-01 00:00:00.000001001'" in problem.message) == ("DataLoadError", True)


def test_files_of_both_kinds_in_one_folder(spark, texts, tmp_path):
    rows = spark.sql("SELECT DATE '0001-01-01' AS v UNION ALL SELECT DATE '2026-01-31'")
    rows.coalesce(1).write.orc(str(tmp_path / "a"))
    orc.write_table(pa.table({"v": [dt.date(1, 1, 1), dt.date(2026, 1, 31)]}), tmp_path / "a/z.orc")
    assert sorted(texts(tmp_path / "a", "date")) == ["0001-01-01", "0001-01-01", "2026-01-31", "2026-01-31"]


def written_by(path, writer, calendar=None):
    """A file of Arrow that claims another writer and calendar: two fields near the end of its footer."""
    orc.write_table(pa.table({"v": DAYS[:1] + DAYS[-2:-1]}), path, compression="uncompressed")
    stated = b"" if calendar is None else bytes([0x58, calendar])
    content = path.read_bytes()
    mark = (
        b"\x48\x01\x62\x05"  # field 9, the writer; field 12, the version of its software, which can give up two bytes
    )
    at = content.rindex(mark)
    version = content[at + 4 : at + 9]
    kept = version[: len(version) - len(stated)]
    footer = bytes([0x48, writer]) + stated + bytes([0x62, len(kept)]) + kept
    path.write_bytes(content[:at] + footer + content[at + 9 :])
    return path


def test_a_calendar_that_the_file_states(texts, tmp_path):
    assert texts(written_by(tmp_path / "a.orc", writer=0, calendar=2), "date") == ["0001-01-01", "2026-01-31"]
    assert texts(written_by(tmp_path / "b.orc", writer=0, calendar=1), "date") == ["0001-01-03", "2026-01-31"]


def test_an_unknown_calendar_is_refused_for_old_dates_only(refused, texts, locate, table, tmp_path):
    problem = refused(locate("orc", written_by(tmp_path / "a.orc", writer=0)), table(v="date"))
    assert problem.type == "DataLoadError"
    assert "(the file does not say which calendar" in problem.message and "2026-01-31" not in problem.message


def test_a_type_is_judged_even_where_text_is_read(refused, locate, table, tmp_path):
    orc.write_table(pa.table({"v": DAYS}), tmp_path / "a.orc")
    assert refused(locate("orc", tmp_path / "a.orc"), table(v="string")).type == "SchemaMismatch"


def test_recent_dates_are_read_as_they_are(spark, tmp_path):
    spark.sql("SELECT DATE '2026-01-31' AS d, TIMESTAMP '2026-01-31 01:02:03' AS t").write.orc(str(tmp_path / "a"))
    [file] = (tmp_path / "a").glob("*.orc")
    assert [column.read_as for _, column in orc_reading(str(file), ["d", "t"]).columns] == [None, None]


def test_columns_without_names_are_found_by_position(rows, locate, table, tmp_path):
    orc.write_table(pa.table({"_col0": [1], "_col1": [DAYS[0]], "_col2": ["x"]}), tmp_path / "a.orc")
    assert rows(locate("orc", tmp_path / "a.orc"), table(name="string _col2", day="date _col1")) == [("x", DAYS[0])]


@pytest.mark.parametrize("name", ["a.b", "a b", "ä=1"])
def test_odd_column_names(rows, locate, table, tmp_path, name):
    orc.write_table(pa.table({"other": [1], name: [DAYS[0]]}), tmp_path / "a.orc")
    [column] = table(v="date").columns
    orders = table(v="date").model_copy(update={"columns": (column.model_copy(update={"source": name}),)})
    assert rows(locate("orc", tmp_path / "a.orc"), orders) == [(DAYS[0],)]


def test_a_column_name_that_spark_loses_is_refused(refused, locate, table, tmp_path):
    orc.write_table(pa.table({"a`b": [1]}), tmp_path / "a.orc")
    assert refused(locate("orc", tmp_path / "a.orc"), table(v="integer a`b")).type == "SchemaMismatch"


def test_files_elsewhere_tell_no_calendar(monkeypatch, refused, texts, locate, table, tmp_path):
    monkeypatch.setattr("tallybook.storage.formats.columnar._readable_here", lambda paths: False)
    orc.write_table(pa.table({"v": [DAYS[0]]}), tmp_path / "a.orc")
    assert refused(locate("orc", tmp_path / "a.orc"), table(v="date")).type == "DataLoadError"
    orc.write_table(pa.table({"v": moments(MOMENTS[-2:])}), tmp_path / "b.orc")
    assert texts(tmp_path / "b.orc", "timestamp") == MOMENTS[-2:]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"id,name\n1,x\n", "it contains text"),
        (b"ORC" + b"\0" * 100, "its end is missing"),
        (b"ORC" + b"\xff" * 100 + b"ORC\x17", "its footer is damaged"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, content, reason):
    (tmp_path / "a.orc").write_bytes(content)
    with pytest.raises(RunError) as caught:
        orc_reading(str(tmp_path / "a.orc"), ["id"])
    assert (caught.value.problem.type, reason in caught.value.problem.message) == ("DataLoadError", True)
