"""Writes rows as a sheet of an Excel workbook that people can read and compute with.

Numbers, dates and booleans are real ones, and text is always text: `=1+1` is no formula. The header stays in view, and
columns are as wide as their values.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import xlsxwriter
from xlsxwriter.format import Format as CellFormat
from xlsxwriter.worksheet import Worksheet

_NARROWEST, _WIDEST = 6, 60
_HEADER = {"bold": True, "bg_color": "#E7ECF2", "bottom": 1, "valign": "vcenter"}
_ALIGNED: dict[str, dict[str, Any]] = {
    "left": {"align": "left", "indent": 1},  # else it would touch a number in the column before
    "center": {"align": "center"},
    "right": {"align": "right"},
}
_BOOLEAN = '"TRUE";"TRUE";"FALSE"'
"""Excel shows booleans like this by itself. LibreOffice would show 1 and 0."""
_MEASURED_ROWS = 10_000
"""The rows whose values decide how wide a column is."""
Write = Callable[[Worksheet, int, int, Any, CellFormat], Any]


def write_workbook(file: Path, table: pa.Table, sheet: str, *, header: bool) -> None:
    """Writes a table into a new file."""
    workbook = xlsxwriter.Workbook(str(file), {"constant_memory": True})
    try:
        page = workbook.add_worksheet(sheet)
        columns = [_Column(workbook, table.column(index), name) for index, name in enumerate(table.column_names)]
        for index, column in enumerate(columns):
            page.set_column(index, index, column.width)
            if header:
                page.write_string(0, index, column.name, column.header)
        row = int(header)
        for batch in table.to_batches():
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                for index, value in enumerate(values):
                    if value is not None:
                        columns[index].write(page, row, index, value)
                row += 1
        _lay_out(page, row, len(columns), header)
    finally:
        workbook.close()


def _lay_out(page: Worksheet, rows: int, columns: int, header: bool) -> None:
    if header:
        page.freeze_panes(1, 0)
        page.repeat_rows(0)
    page.set_landscape()
    page.set_paper(9)
    page.fit_to_pages(1, 0)
    if rows:
        page.ignore_errors({"number_stored_as_text": f"{xlsxwriter.utility.xl_range(0, 0, rows - 1, columns - 1)}"})


class _Column:
    """How the values of a column are written, and how wide it is."""

    def __init__(self, workbook: xlsxwriter.Workbook, values: pa.ChunkedArray, name: str) -> None:
        self.name = name
        self._write, pattern, shown, side = _kind(values)
        self._format = workbook.add_format({"num_format": pattern, **_ALIGNED[side]})
        self.header = workbook.add_format({**_HEADER, **_ALIGNED[side]})
        measured = (shown(value) for value in values.slice(0, _MEASURED_ROWS).to_pylist() if value is not None)
        longest = max((max(map(len, text.split("\n"))) for text in measured), default=0)
        self.width = min(max(longest, len(name), _NARROWEST), _WIDEST) + 2

    def write(self, page: Worksheet, row: int, column: int, value: Any) -> None:
        self._write(page, row, column, value, self._format)


def _kind(values: pa.ChunkedArray) -> tuple[Write, str, Callable[[Any], str], str]:
    """Returns how to write the values of a type, their number format, their text for measuring, and where they are in
    a cell."""
    type = values.type
    if pa.types.is_decimal(type):
        digits = _fraction_digits(values, type.scale)
        pattern = "#,##0" + ("." + "0" * digits if digits else "")
        return _number, pattern, lambda value: f"{value:,.{digits}f}", "right"
    if pa.types.is_integer(type):
        return _number, "0", str, "right"
    if pa.types.is_boolean(type):
        return Worksheet.write_boolean, _BOOLEAN, lambda _: "FALSE", "center"
    if pa.types.is_date(type):
        return _date, "yyyy-mm-dd", date.isoformat, "right"
    if pa.types.is_timestamp(type):
        fine = any(value is not None and value.microsecond for value in values.to_pylist())
        pattern = "yyyy-mm-dd hh:mm:ss" + (".000" if fine else "")
        return _timestamp, pattern, lambda _: pattern, "right"
    return Worksheet.write_string, "@", str, "left"


def _fraction_digits(values: pa.ChunkedArray, scale: int) -> int:
    """Returns how many fractional digits a column shows: as many as its values need, and at least two of its type."""
    needed = (_digits_after_point(value) for value in values.to_pylist() if value)
    return max(min(2, scale), max(needed, default=0))


def _digits_after_point(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _number(page: Worksheet, row: int, column: int, value: Decimal | int, format: CellFormat) -> None:
    page.write_number(row, column, float(value), format)


def _date(page: Worksheet, row: int, column: int, value: date, format: CellFormat) -> None:
    page.write_datetime(row, column, datetime(value.year, value.month, value.day), format)


def _timestamp(page: Worksheet, row: int, column: int, value: datetime, format: CellFormat) -> None:
    page.write_datetime(row, column, value.astimezone(UTC).replace(tzinfo=None), format)
