"""Excel workbooks: real cells written, strict cells read, bad ones named by their address."""

from __future__ import annotations

import re
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
import xlsxwriter
from python_calamine import CalamineWorkbook
from tests.storage.kit import refusal

from tallybook.model.cell_range import CellRange, column_letters, why_no_sheet

SCHEMA = "id bigint, amount decimal(18,6), code string, day date, at timestamp, ok boolean"
COLUMNS = {
    "id": "integer",
    "amount": "decimal(18,6)",
    "code": "string",
    "day": "date",
    "at": "timestamp",
    "ok": "boolean",
}


def _utc(*parts):
    """What `collect` gives for an instant: local time without a zone."""
    return datetime(*parts, tzinfo=UTC).astimezone().replace(tzinfo=None)


ROWS = [
    (4711, Decimal("1234567.895000"), "007", date(2026, 1, 31), _utc(2026, 1, 31, 10, 5, 7), True),
    (-5, Decimal("-0.100000"), "=1+1", date(1900, 3, 1), _utc(2026, 12, 31), False),
    (999999999999999, Decimal("999999999.999999"), "_x0041_\tÄ 😀\nb", None, _utc(2026, 1, 1, 0, 0, 0, 123000), None),
    (None, None, None, date(9999, 12, 31), None, None),
]


@pytest.fixture
def workbook(tmp_path):
    """`workbook({"Sheet1": [["id"], [1]]})`: a file with these cells, written by type."""

    def make(sheets, name="book.xlsx", **options):
        path = tmp_path / name
        with xlsxwriter.Workbook(str(path), options) as book:
            for title, rows in sheets.items():
                page = book.add_worksheet(title)
                for number, row in enumerate(rows):
                    for index, value in enumerate(row):
                        if isinstance(value, tuple):
                            page.write_formula(number, index, value[0], None, value[1])
                        elif isinstance(value, date):
                            form = "yyyy-mm-dd hh:mm" if isinstance(value, datetime) else "yyyy-mm-dd"
                            page.write_datetime(number, index, value, book.add_format({"num_format": form}))
                        elif isinstance(value, str):
                            page.write_string(number, index, value)
                        elif value is not None:
                            page.write(number, index, value)
        return path

    return make


def test_what_is_written_is_read_back(save, rows, locate, table, tmp_path):
    location = locate("excel", tmp_path / "out.xlsx", sheet="Umsätze 2026")
    assert save(ROWS, location, schema=SCHEMA).rows == 4
    assert sorted(rows(location, table(**COLUMNS)), key=repr) == sorted(ROWS, key=repr)
    [sheet] = CalamineWorkbook.from_path(tmp_path / "out.xlsx").sheet_names
    assert sheet == "Umsätze 2026"


def test_cells_are_real_and_text_is_never_a_formula(save, locate, tmp_path):
    save(ROWS[:2], locate("excel", tmp_path / "out.xlsx"), schema=SCHEMA)
    cells = CalamineWorkbook.from_path(tmp_path / "out.xlsx").get_sheet_by_name("Sheet1").to_python()
    assert cells[0] == list(COLUMNS)
    assert [4711.0, 1234567.895, "007", date(2026, 1, 31), datetime(2026, 1, 31, 10, 5, 7), True] in cells[1:]
    with zipfile.ZipFile(tmp_path / "out.xlsx") as parts:
        sheet, styles = (parts.read(f"xl/{part}.xml").decode() for part in ("worksheets/sheet1", "styles"))
    assert "<f>" not in sheet
    assert '<pane ySplit="1" topLeftCell="A2"' in sheet
    assert 'state="frozen"' in sheet
    for pattern in ("#,##0.000", "yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"):
        assert f'formatCode="{pattern}"' in styles
    widths = [float(width) for width in re.findall(r'<col [^>]*width="([0-9.]+)"', sheet)]
    assert len(widths) == 6
    assert widths[1] > len("1,234,567.895"), "wide enough for the number with its separators"


@pytest.mark.parametrize(
    ("value", "type"),
    [
        (Decimal("1234567890.1234567"), "decimal(20,7)"),
        (1234567890123456, "bigint"),
        (date(1900, 2, 28), "date"),
        (datetime(2026, 1, 1, 0, 0, 0, 1), "timestamp"),
        ("x" * 32768, "string"),
    ],
    ids=["decimal", "integer", "date", "timestamp", "text"],
)
def test_a_value_that_a_cell_cannot_hold_fails(save, locate, tmp_path, value, type):
    location = locate("excel", tmp_path / "out.xlsx")
    message = refusal(save, [(value,)], location, schema=f"v {type}")
    assert "column 'v' has the value" in message
    assert message.endswith("which cannot be stored exactly in an Excel cell")
    assert not (tmp_path / "out.xlsx").exists()


def test_numbers_with_zeros_at_the_end_are_exact(save, rows, locate, table, tmp_path):
    location = locate("excel", tmp_path / "out.xlsx")
    number = Decimal("12345678901234500000.00")
    save([(number,)], location, schema="v decimal(38,2)")
    assert rows(location, table(v="decimal(38,2)")) == [(number,)]


def test_more_rows_than_a_sheet_has_are_refused(spark, locate, tmp_path, run_id, monkeypatch):
    from tallybook.storage import write
    from tallybook.storage.formats import excel

    monkeypatch.setattr(excel, "MAX_ROWS", 3)
    location = locate("excel", tmp_path / "out.xlsx")
    write(spark, spark.range(2), location, mode="overwrite", run_id=run_id("run-1"), seq=1)
    save = lambda: write(spark, spark.range(3), location, mode="overwrite", run_id=run_id("run-2"), seq=1)  # noqa: E731
    assert "the output has more than 2 rows" in refusal(save)
    assert len(CalamineWorkbook.from_path(tmp_path / "out.xlsx").get_sheet_by_index(0).to_python()) == 3


def test_rows_are_added_to_a_folder_as_another_workbook(save, rows, locate, table, tmp_path):
    location = locate("excel", tmp_path / "out")
    save([(1,)], location)
    save([(2,)], location, mode="append", run="run-2")
    assert sorted(rows(location, table(id="integer"))) == [(1,), (2,)]
    assert "has the columns id string" in refusal(save, [(3,)], location, mode="append", run="run-3", schema="n bigint")


@pytest.mark.parametrize("date_1904", [False, True])
def test_cells_of_people(rows, locate, table, workbook, date_1904):
    path = workbook(
        {
            "Data": [
                [None, None, None],
                [None, "Amount", "Day", "Code", "Amount "],
                [None, 12.5, datetime(2026, 1, 31), 4711, 1],
                [],
                [None, "1234.50", date(2026, 2, 1), "007", 2],
                [None, 0.1 + 0.2, None, True, None],
                [None, ("=SUM(B3)", 0.125), None, " ", None],
            ]
        },
        date_1904=date_1904,
    )
    orders = table(amount="decimal(10,3) Amount", day="date Day", code="string Code")
    assert rows(locate("excel", path), orders) == [
        (Decimal("12.500"), date(2026, 1, 31), "4711"),
        (Decimal("1234.500"), date(2026, 2, 1), "007"),
        (Decimal("0.300"), None, "true"),
        (Decimal("0.125"), None, " "),
    ]


def test_a_range_and_a_sheet(rows, locate, table, workbook):
    path = workbook(
        {"A": [["x"]], "Q1 data": [["Title"], [None, "id", "n"], [None, 1, 2], [None, 3, 4], [None, "Sum", 6]]}
    )
    ids = table(id="integer", n="integer")
    assert rows(locate("excel", path, sheet="Q1 data", range="B2:C4"), ids) == [(1, 2), (3, 4)]
    assert rows(locate("excel", path, sheet="Q1 data", range="B3:C4", has_header=False), ids) == [(1, 2), (3, 4)]


def test_bad_cells_are_named_by_their_address(refused, locate, table, workbook):
    path = workbook({"Q1 data": [["id", "n"], [1, 2], [2, "1,5"], [3, ("=NA()", "#N/A")], [4, 1.5]]})
    problem = refused(locate("excel", path), table(id="integer", n="integer"))
    assert problem.type == "DataLoadError"
    assert f"{path} 'Q1 data'!B3: '1,5'" in problem.message
    assert f"{path} 'Q1 data'!B4: '#N/A (the cell has an error)'" in problem.message
    assert f"{path} 'Q1 data'!B5: '1.5'" in problem.message


def test_an_error_in_a_text_column_is_no_text(refused, locate, table, workbook):
    path = workbook({"S": [["t"], ["a"], [("=1/0", "#DIV/0!")]]})
    assert "S!A3: '#DIV/0! (the cell has an error)'" in refused(locate("excel", path), table(t="string")).message


def test_numbers_keep_the_digits_their_columns_need(rows, locate, table, workbook):
    """16 digits of other programs, which a double holds, and noise that Excel does not show."""
    path = workbook(
        {"S": [["n", "a", "t"], [1234567890123456, 12345678901234.56, 4111111111111111], [1, 0.1 + 0.2, 0.1]]}
    )
    assert rows(locate("excel", path), table(n="integer", a="decimal(18,2)", t="string")) == [
        (1234567890123456, Decimal("12345678901234.56"), "4111111111111111"),
        (1, Decimal("0.30"), "0.1"),
    ]


def test_cells_without_a_clear_value_are_bad(refused, locate, table, workbook):
    """A number that a double cannot hold, a formula nobody computed, and the second cell of a merged area."""
    path = workbook(
        {"S": [["id", "n"], [1, 12345678901234567890], [2, ("=A2", "?")], [3, "a"], [4, None], [5, ("=A1", "")]]}
    )
    with zipfile.ZipFile(path) as parts:
        content = {name: parts.read(name) for name in parts.namelist()}
    sheet = content["xl/worksheets/sheet1.xml"].decode()
    sheet = re.sub('<c r="B3" t="str"><f>A2</f><v>.</v></c>', '<c r="B3"><f>A2</f><v/></c>', sheet)
    sheet = sheet.replace('<c r="B6">', '<c r="B6" t="str">')
    sheet = re.sub("</sheetData>", '</sheetData><mergeCells count="1"><mergeCell ref="B4:B5"/></mergeCells>', sheet)
    with zipfile.ZipFile(path, "w") as parts:
        for name, data in (content | {"xl/worksheets/sheet1.xml": sheet}).items():
            parts.writestr(name, data)
    bad = refused(locate("excel", path), table(id="integer", n="string")).bad_values
    assert [(value.cell, value.value) for value in bad] == [
        ("S!B2", "12345678901234570000 (the number has more digits than a cell can hold; store it as text)"),
        ("S!B3", "the formula has no result; open and save the file in Excel"),
        ("S!B5", "the cell is merged with B4"),
    ]


@pytest.mark.parametrize(
    ("sheets", "options", "type", "message"),
    [
        ({"A": [["id"]], "B": [["id"]]}, {}, "DataLoadError", "has 2 visible sheets: 'A', 'B'"),
        ({"A": [["id"]]}, {"sheet": "C"}, "DataLoadError", "has no sheet 'C'"),
        ({"A": [["id", "id"]]}, {}, "SchemaMismatch", "has the column 'id' twice in sheet 'A'"),
        ({"A": [["ID"]]}, {}, "SchemaMismatch", "has no column 'id'"),
        ({"A": [[], ["Title"], ["id"]]}, {}, "SchemaMismatch", "row 2 of sheet 'A' in"),
        ({"A": []}, {}, "SchemaMismatch", "has no column 'id'"),
        ({"A": [[1, 2]]}, {"has_header": False}, "SchemaMismatch", "has 2 columns in sheet 'A', and the table has 1"),
    ],
)
def test_sheets_that_cannot_be_read(refused, locate, table, workbook, sheets, options, type, message):
    problem = refused(locate("excel", workbook(sheets), **options), table(id="integer"))
    assert problem.type == type
    assert message in problem.message


def test_a_file_that_is_no_workbook(refused, locate, table, tmp_path):
    (tmp_path / "book.xlsx").write_text("id\n1\n")
    problem = refused(locate("excel", tmp_path / "book.xlsx"), table(id="integer"))
    assert problem.message == f"{tmp_path}/book.xlsx is not a readable Excel workbook"


def test_folders_and_files_that_excel_has_open(rows, locate, table, workbook, tmp_path):
    for month in ("01", "02"):
        (tmp_path / f"data/month={month}").mkdir(parents=True)
        workbook({"A": [["id"], [int(month)]]}, f"data/month={month}/b.xlsx")
    (tmp_path / "data/month=01/~$b.xlsx").write_bytes(b"owner")
    months = table(id="integer", month="string")
    assert sorted(rows(locate("excel", tmp_path / "data"), months)) == [(1, "01"), (2, "02")]


def test_ranges_and_names_of_sheets():
    assert CellRange.parse("$B$3:aa20") == CellRange(2, 1, 19, 26)
    assert CellRange.parse("A:F") == CellRange(0, 0, None, 5)
    assert [column_letters(index) for index in (0, 25, 26, 701, 702, 16383)] == ["A", "Z", "AA", "ZZ", "AAA", "XFD"]
    for text in ("", "1", "A0", "B2:A3", "A5:A4", "XFE1", "A1:B2:C3", "A1048577"):
        with pytest.raises(ValueError, match="is not a range of cells"):
            CellRange.parse(text)
    assert [why_no_sheet(name) is None for name in ("Q1 2026", "a/b", "x" * 32, "'a", "History", " ")] == [
        True,
        *[False] * 5,
    ]
