"""CSV in the notation, encoding and quotes of a datasource: German numbers and dates, code pages, UTF-16."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from tests.storage.kit import refusal

GERMAN = {
    "delimiter": ";",
    "decimal": ",",
    "thousands": ".",
    "date_format": "dd.mm.yyyy",
    "timestamp_format": "dd.mm.yyyy hh:mm:ss",
}
SCHEMA = "id bigint, amount decimal(18,2), day date, at timestamp, note string"
COLUMNS = {"id": "integer", "amount": "decimal(18,2)", "day": "date", "at": "timestamp", "note": "string"}


def _utc(hour, second=0):
    """What `collect` gives for an instant: local time without a zone."""
    return datetime(2026, 12, 31, hour, 5, second, tzinfo=UTC).astimezone().replace(tzinfo=None)


ROWS = [
    (2026, Decimal("1234567.80"), date(2026, 12, 31), _utc(13, 9), "Ä€; 'x'"),
    (None, Decimal("-0.05"), date(2026, 2, 1), None, None),
]


def test_german_values_are_read(rows, locate, table, tmp_path):
    file = tmp_path / "de.csv"
    lines = [
        "id;amount;day;at;note",
        "1.000;1.234.567,8;31.12.2026;31.12.2026 13:05:09;\"Ä€; 'x'\"",
        "1000;-1234,50;01.02.2026;;",
        "7;1,5E3;;;",
    ]
    file.write_bytes("".join(f"{line}\r\n" for line in lines).encode("cp1252"))
    read = rows(locate("csv", file, encoding="windows-1252", null_value="", **GERMAN), table(**COLUMNS))
    assert read[0] == (1000, Decimal("1234567.80"), date(2026, 12, 31), _utc(13, 9), "Ä€; 'x'")
    assert read[1] == (1000, Decimal("-1234.50"), date(2026, 2, 1), None, None)
    assert read[2][1] == Decimal("1500.00")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("amount", "1234.56"),
        ("amount", "1.23"),
        ("amount", "12.34.567"),
        ("amount", "1,234.56"),
        ("id", "1.00"),
        ("day", "2026-12-31"),
        ("day", "31.2.2026"),
        ("day", "31.02.2026"),
        ("at", "31.12.2026 25:00:00"),
        ("at", "31.12.2026"),
    ],
)
def test_a_value_in_another_notation_is_refused(refused, locate, table, text, column, value):
    file = text("de.csv", column, value)
    problem = refused(locate("csv", file, **GERMAN), table(**{column: COLUMNS[column]}))
    assert problem.type == "DataLoadError"
    assert f"'{value}'" in problem.message
    hints = {"amount": "after it, with '.' before every three digits", "id": "with '.' before every three digits"}
    hints |= {"day": "a date written as dd.mm.yyyy", "at": "a timestamp written as dd.mm.yyyy hh:mm:ss"}
    assert hints[column] in problem.hint


@pytest.mark.parametrize(
    ("options", "first_bytes"),
    [
        pytest.param({**GERMAN, "encoding": "cp1252"}, b"id;amount", id="german"),
        pytest.param({"encoding": "utf-8", "bom": True}, b"\xef\xbb\xbfid,amount", id="utf-8 with a mark"),
        pytest.param({"encoding": "utf-16", "has_header": False}, b"\xff\xfe", id="utf-16"),
        pytest.param({"encoding": "utf-16be", "bom": True, "quote": "'"}, b"\xfe\xff\x00i\x00d", id="utf-16be"),
        pytest.param({"thousands": ",", "quote": "'", "timestamp_format": "m/d/yyyy h:mm:ss AM/PM"}, b"id,", id="us"),
    ],
)
def test_what_is_written_is_read_back(save, rows, locate, table, tmp_path, options, first_bytes):
    location = locate("csv", tmp_path / "out.csv", **options)
    assert save(ROWS, location, schema=SCHEMA).rows == 2
    assert (tmp_path / "out.csv").read_bytes().startswith(first_bytes)
    expected = [(*ROWS[0],), (*ROWS[1][:4], None)]
    assert sorted(rows(location, table(**COLUMNS)), key=repr) == sorted(expected, key=repr)


def test_german_text_of_an_output(save, locate, tmp_path):
    save(ROWS, locate("csv", tmp_path / "out.csv", encoding="cp1252", **GERMAN), schema=SCHEMA)
    header, *lines = (tmp_path / "out.csv").read_text(encoding="cp1252").splitlines()
    assert header == "id;amount;day;at;note"
    assert sorted(lines) == [
        "2026;1.234.567,80;31.12.2026;31.12.2026 13:05:09;\"Ä€; 'x'\"",
        ";-0,05;01.02.2026;;",
    ]


def test_rows_are_added_to_files_in_a_code_page(save, rows, locate, table, tmp_path):
    location = locate("csv", tmp_path / "out", encoding="cp1252")
    save([("€",)], location, schema="`Größe €` string")
    save([("Ä",)], location, mode="append", run="run-2", schema="`Größe €` string")
    assert sorted(rows(location, table(size="string Größe €"))) == [("Ä",), ("€",)]
    message = refusal(save, [("x",)], location, mode="append", run="run-3", schema="`Größe $` string")
    assert "has the columns Größe € string; the output has Größe $ string" in message


def test_a_value_that_the_notation_cannot_express_fails(save, locate, tmp_path):
    old = locate("csv", tmp_path / "out.csv", date_format="dd.mm.yy")
    assert "'day' has the value 1999-12-31, which cannot be stored exactly as dd.mm.yy" in refusal(
        save, [(date(1999, 12, 31),)], old, schema="day date"
    )
    short = locate("csv", tmp_path / "out.csv", timestamp_format="dd.mm.yyyy hh:mm")
    assert "cannot be stored exactly as dd.mm.yyyy hh:mm" in refusal(
        save, [(datetime(2026, 1, 1, 1, 1, 1),)], short, schema="at timestamp"
    )
    page = locate("csv", tmp_path / "out.csv", encoding="iso-8859-1")
    message = refusal(save, [("ok",), ("5 €",)], page, schema="note string")
    assert "column 'note' has the value 5 €, which cannot be stored exactly in iso-8859-1" in message
    assert "the column name '€'" in refusal(save, [("x",)], page, schema="`€` string")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (b"id\n1\n\x812\n", "cp1252", "de.csv line 3 has the byte 0x81, which cp1252 does not have"),
        (b"\xef\xbb\xbfid\n1\n", "cp1252", "de.csv is encoded in UTF-8, not in cp1252"),
        (b"\xff\xfei\x00d\x00", "utf-8", "de.csv is encoded in UTF-16, not in utf-8"),
        (b"i\x00d\x00\n\x00", "utf-16", "de.csv does not begin with the byte order mark of UTF-16"),
        (b"\xff\xfei\x00d\x00\n", "utf-16", "de.csv is not text in utf-16: truncated data"),
    ],
)
def test_a_file_in_another_encoding_is_refused(refused, locate, table, tmp_path, content, encoding, message):
    (tmp_path / "de.csv").write_bytes(content)
    problem = refused(locate("csv", tmp_path / "de.csv", encoding=encoding), table(id="integer"))
    assert problem.type == "DataLoadError"
    assert message in problem.message
    assert "encoding" in problem.hint


@pytest.mark.parametrize("content", [b"note\rx \x80\ry", b""])
def test_records_that_spark_cannot_split_are_read_in_a_code_page(rows, locate, table, tmp_path, content):
    (tmp_path / "de.csv").write_bytes(content)
    location = locate("csv", tmp_path / "de.csv", encoding="cp1252", has_header=bool(content))
    assert rows(location, table(note="string")) == ([("x €",), ("y",)] if content else [])


def test_a_row_that_cannot_be_read_is_shown_in_its_characters(refused, locate, table, tmp_path):
    (tmp_path / "de.csv").write_bytes("id;note\n1;€;x\n".encode("cp1252"))
    location = locate("csv", tmp_path / "de.csv", encoding="cp1252", delimiter=";")
    assert "row 1: '1;€;x'" in refused(location, table(id="integer", note="string")).message
