"""Reads a sheet of an Excel workbook on the driver: every cell as the text that a strict parser understands.

A number has the 15 digits that Excel keeps and shows, so that `0.1+0.2` is 0.3, and more where its column needs them. A
date, or a time at midnight, is an ISO date. An empty cell, or an empty text, is NULL. python-calamine reads a cell with
an error (#N/A), or with a formula that was never computed, like an empty one, so these are looked up in the XML of the
sheet.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

from tallybook.errors import RunError, fail
from tallybook.model.cell_range import CellRange, column_index, column_letters
from tallybook.model.written import number_text

_MOST_BYTES = 2**30
_MOST_CELLS = 50_000_000
_RELATIONS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_ERROR_CELL = re.compile(rb'<(?:\w+:)?c\b([^>]*\bt="e"[^>]*)>(?:.*?<(?:\w+:)?v>([^<]*)</)?', re.DOTALL)
_ADDRESS = re.compile(rb'\br="([A-Z]+)([0-9]+)"')
_DIMENSION = re.compile(rb'<(?:\w+:)?dimension\b[^>]*\bref="[A-Z0-9]+:([A-Z]+)([0-9]+)"')
_EMPTY_FORMULA = re.compile(
    rb"<(?:\w+:)?c\b([^>]*)>"
    rb"<(?:\w+:)?f\b(?:[^>]*/>|[^>]*>[^<]*</(?:\w+:)?f>)"
    rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?</(?:\w+:)?c>"
)
_DIGITS = 15
_EXACT_INTEGERS = 2**53
"""The numbers from which a double no longer holds every integer."""

Address = tuple[int, int]
"""Row and column, from 0."""
Cell = str | float | None
"""A number stays one until the type of its column is known; all others are text."""


@dataclass(frozen=True)
class Sheet:
    """The rows of a sheet that are not blank. Each has its number in the sheet, from 0, and its cells."""

    name: str
    first_column: int
    rows: Sequence[tuple[int, Sequence[Cell]]]
    doubts: Mapping[Address, str]
    """The cells that do not show what is in them, each with the reason."""

    def prefix(self, index: int) -> str:
        """Returns the address of a column without the row: `Sheet1!C` or `'Sheet 1'!C`."""
        name = self.name if re.fullmatch(r"[A-Za-z_]\w*", self.name) else "'" + self.name.replace("'", "''") + "'"
        return f"{name}!{column_letters(self.first_column + index)}"


def read_sheet(path: str, content: bytes | None, sheet: str | None, cells: CellRange) -> Sheet:
    """Returns a sheet of a workbook, by default its only visible one. `content` is that of a file that this process
    cannot read itself."""
    try:
        content = Path(path).read_bytes() if content is None else content
        with zipfile.ZipFile(io.BytesIO(content)) as parts:
            if sum(part.file_size for part in parts.infolist()) > _MOST_BYTES:
                raise fail("DataLoadError", f"{path} has more than 1 GiB of data", hint=_SMALLER)
            names = _sheet_parts(parts)
            workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
            name = _chosen(path, workbook, sheet)
            xml = parts.read(names[name]) if name in names else b""
        _check_size(path, name, xml)
        page = workbook.get_sheet_by_name(name)
        rows = page.to_python(skip_empty_area=False)
    except OSError as error:
        raise fail("DataLoadError", f"{path} cannot be read: {error.strerror}") from error
    except (CalamineError, zipfile.BadZipFile, KeyError, ElementTree.ParseError) as error:
        raise _unreadable(path) from error
    errors = dict(_error_cells(xml))
    doubts = (
        dict(_merged_cells(page.merged_cell_ranges or (), len(rows), max(map(len, rows), default=0)))
        | dict.fromkeys(_formulas_without_result(xml), "the formula has no result; open and save the file in Excel")
        | dict.fromkeys(errors, "the cell has an error")
    )
    return Sheet(name, cells.first_column, _within(rows, cells, errors), doubts)


def _unreadable(path: str) -> RunError:
    hint = "save it as .xlsx, without a password: .xls, .xlsb and .ods files cannot be read"
    return fail("DataLoadError", f"{path} is not a readable Excel workbook", hint=hint)


_SMALLER = "save the data as CSV or Parquet"


def _chosen(path: str, workbook: CalamineWorkbook, sheet: str | None) -> str:
    """Returns the sheet to read. A workbook with several visible sheets needs the option, because nothing says which
    one is meant."""
    sheets = [meta for meta in workbook.sheets_metadata if meta.typ == SheetTypeEnum.WorkSheet]
    visible = [meta.name for meta in sheets if meta.visible == SheetVisibleEnum.Visible]
    if sheet is not None and sheet not in {meta.name for meta in sheets}:
        listed = ", ".join(f"'{meta.name}'" for meta in sheets)
        raise fail("DataLoadError", f"{path} has no sheet '{sheet}'", hint=f"it has: {listed}")
    if sheet is None and len(visible) != 1:
        listed = ", ".join(f"'{name}'" for name in visible)
        message = f"{path} has {len(visible)} visible sheets: {listed}"
        raise fail("DataLoadError", message, hint="name one with `sheet` in the options of the datasource")
    return visible[0] if sheet is None else sheet


def _sheet_parts(parts: zipfile.ZipFile) -> dict[str, str]:
    """Returns the name of the XML part of each sheet."""
    relations = ElementTree.fromstring(parts.read("xl/_rels/workbook.xml.rels"))
    targets = {relation.get("Id"): str(relation.get("Target")) for relation in relations}
    book = ElementTree.fromstring(parts.read("xl/workbook.xml"))
    sheets = [element for element in book.iter() if element.tag.rpartition("}")[2] == "sheet"]
    found = ((str(sheet.get("name")), targets.get(sheet.get(_RELATIONS), "")) for sheet in sheets)
    return {name: target.lstrip("/") if target.startswith("/") else f"xl/{target}" for name, target in found}


def _check_size(path: str, sheet: str, xml: bytes) -> None:
    """Raises DataLoadError if a lone cell far away makes the sheet too large for the memory of this process."""
    dimension = _DIMENSION.search(xml[:10_000])
    if dimension and (column_index(dimension[1].decode()) + 1) * int(dimension[2]) > _MOST_CELLS:
        message = f"sheet '{sheet}' of {path} reaches to cell {dimension[1].decode()}{dimension[2].decode()}"
        raise fail("DataLoadError", message, hint="delete the empty rows and columns after the data, or save it as CSV")


def _error_cells(xml: bytes) -> Iterator[tuple[Address, str]]:
    for match in _ERROR_CELL.finditer(xml) if b't="e"' in xml else ():
        address = _ADDRESS.search(match[1])
        if address is not None:
            yield _address(address), unescape((match[2] or b"an error").decode())


def _formulas_without_result(xml: bytes) -> Iterator[Address]:
    """Returns cells that another program than Excel wrote. A result that is an empty text has the type `str`."""
    for match in _EMPTY_FORMULA.finditer(xml):
        address = _ADDRESS.search(match[1])
        if address is not None and b't="str"' not in match[1]:
            yield _address(address)


def _address(match: re.Match[bytes]) -> Address:
    return int(match[2]) - 1, column_index(match[1].decode())


def _merged_cells(ranges: Sequence[tuple[Address, Address]], height: int, width: int) -> Iterator[tuple[Address, str]]:
    """Returns the cells behind the first one of a merged area: they look as if they had its value, and are empty."""
    for (top, left), (bottom, right) in ranges:
        reason = f"the cell is merged with {column_letters(left)}{top + 1}"
        rows, columns = range(top, min(bottom + 1, height)), range(left, min(right + 1, width))
        area = ((row, column) for row in rows for column in columns)
        yield from ((address, reason) for address in area if address != (top, left))


def _within(
    rows: Sequence[Sequence[object]], cells: CellRange, errors: Mapping[Address, str]
) -> list[tuple[int, Sequence[Cell]]]:
    end = None if cells.last_column is None else cells.last_column + 1
    last = None if cells.last_row is None else cells.last_row + 1
    kept: list[tuple[int, Sequence[Cell]]] = []
    broken = {row for row, _ in errors}
    for number, row in enumerate(rows[cells.first_row : last], cells.first_row):
        values = [_value(value) for value in row[cells.first_column : end]]
        if number in broken:
            columns = range(cells.first_column, cells.first_column + len(values))
            values = [errors.get((number, column), value) for column, value in zip(columns, values, strict=True)]
        if any(value is not None for value in values):
            kept.append((number, values))
    return kept


def _value(value: object) -> Cell:
    match value:
        case str():
            return value or None
        case bool():
            return "true" if value else "false"
        case int() | float():
            return float(value)
        case datetime():
            return value.date().isoformat() if value.time() == time() else value.isoformat()
        case date() | time():
            return value.isoformat()
        case timedelta():
            seconds = value.total_seconds()
            minutes, rest = divmod(round(abs(seconds)), 60)
            return f"{'-' if seconds < 0 else ''}{minutes // 60:02}:{minutes % 60:02}:{rest:02}"
    return str(value)


def cell_text(value: Cell, fraction_digits: int = 0) -> str | None:
    """Returns the text of a cell for a column of so many fractional digits.

    15 digits are what Excel keeps and shows. More are taken where the column would lose digits otherwise, as other
    programs write them: 1234567890123456 for an integer, 12345678901234.56 for an amount.
    """
    if not isinstance(value, float):
        return value
    shown = Decimal(f"{value:.{_DIGITS}g}")
    needs_more = fraction_digits > _DIGITS - 1 - shown.adjusted()
    return number_text(Decimal(repr(value)) if needs_more else shown)


def has_lost_digits(value: Cell) -> bool:
    """True for a number so large that a cell cannot hold all its digits."""
    return isinstance(value, float) and abs(value) >= _EXACT_INTEGERS and float(f"{value:.{_DIGITS}g}") != value
