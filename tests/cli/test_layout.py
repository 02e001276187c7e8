"""Tables fit the terminal, lines break between words, numbers and durations are as people read them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tallybook.cli.layout import Column, broken, cut_to, data_table, duration, is_cut, number_text, table
from tallybook.text import Marked, unstyled, width

COLUMNS = [Column("name"), Column("amount", right=True), Column("note")]
ROWS = [["漢字", "1,250.00", "a"], ["é", "-5", "b\x1b[31m\n"]]


def test_numbers_are_right_aligned_and_wide_text_is_counted() -> None:
    assert [unstyled(line) for line in table(COLUMNS, ROWS)] == [
        "name    amount  note",
        "────  ────────  ───────────",
        "漢字  1,250.00  a",
        "é           -5  b\\x1b[31m\\n",
    ]


def test_what_does_not_fit_is_named() -> None:
    wide = [*COLUMNS, Column("text"), Column("last")]
    rows = [[*row, "x" * 300, "z"] for row in ROWS]
    assert data_table(wide, rows, None) == table(wide, rows)
    assert is_cut(wide, rows, 50) and not is_cut(wide, rows, None)
    lines = [unstyled(line) for line in data_table(wide, rows, 50)]
    assert max(map(width, lines)) <= 50
    assert lines[2].endswith("a") and lines[-1] == "… 2 more columns: text, last"
    lines = [unstyled(line) for line in data_table(wide, rows, 70)]
    assert lines[2] == f"漢字  1,250.00  a            {'x' * 34}…  z"


def test_one_column_is_shown_in_any_case() -> None:
    assert unstyled(data_table([Column("text"), Column("b")], [["x" * 90, "y"]], 10)[2]) == "x" * 15 + "…"


@pytest.mark.parametrize(("text", "shown"), [("abcdef", "abc…"), ("abcd", "abcd"), ("漢字漢字", "漢…"), ("", "")])
def test_a_cell_is_cut_to_a_width(text: str, shown: str) -> None:
    assert cut_to(text, 4) == shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2026, "2026"),
        (-12345, "-12,345"),
        (Decimal("1250.00"), "1,250.00"),
        (Decimal("0E-20"), "0.00000000000000000000"),
        (Decimal("-1234567890123456789012345678901234.5678"), "-1,234,567,890,123,456,789,012,345,678,901,234.5678"),
    ],
)
def test_numbers_keep_all_their_digits(value: object, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (2.34, "2.3 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min"),
        (72.4, "1 min 12 s"),
        (3599.8, "1 h"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_long_line_is_broken_between_words_and_keeps_its_marks() -> None:
    line = ("  ", Marked("hint:", "hint"), " 漢字漢字 b cc /a/path/that/is/longer d")
    shown = broken(line, 18)
    assert [unstyled(part) for part in shown] == ["  hint: 漢字漢字 b", "    cc", "/a/path/that/is/longer", "    d"]
    assert shown[0][1] == Marked("hint:", "hint")
    assert broken(line, 80) == [line]
    assert [unstyled(part) for part in broken(("a bb ccc",), 5, hang=0)] == ["a bb", "ccc"]


def test_a_long_word_begins_further_left_if_it_fits_there() -> None:
    line = ("   write  csv sandbox/close/2026-01.csv (overwrite)",)
    shown = [unstyled(part) for part in broken(line, 26, hang=12)]
    assert shown == ["   write  csv", " sandbox/close/2026-01.csv", "            (overwrite)"]
