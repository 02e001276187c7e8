"""Patterns and texts that fit them, or nearly."""

from __future__ import annotations

REGEXES = (
    "a",
    "a.*",
    "[A-Z]+",
    "[^a]*",
    ".*b.*",
    "(.)(.)?",
    "([0-9]+)-([0-9]+)",
    "-?[0-9]+(?:\\.[0-9]+)?",
    "\\w+",
    "\\s*(\\S*)\\s*",
    "(?:EM|AP)EA?",
    "^.{1,3}$",
    ".*?(🙂)",
    "[a-zß-ü]{2,}",
    "(x)|(a)",
    "",
)
NUMBER_FORMS = ("0", "0.00", "#,##0", "#,##0.00", "00000", "0.##", "0.0#", "0.0%", "0%", "#,##0.######")
DATE_FORMS = (
    "yyyy-mm-dd",
    "dd.MM.yyyy",
    "d.m.yy",
    "mmm yyyy",
    "d MMMM yyyy",
    "yyyymmdd",
    "DD/MM/YY",
    "yyyy年m月d日",
    "'yy",
)
WRITTEN_DATES = {
    "dd.mm.yyyy": ("31.01.2026", "29.02.2024", "29.02.2025", "1.1.2026", "31.01.26", "01.01.0000", "31.01.2026 "),
    "d/m/yyyy": ("1/2/2026", "31/12/9999", "031/1/2026", "1/13/2026", "//2026"),
    "yyyymmdd": ("20260131", "20261301", "2026-01-31", "00010101", "２０２６０１３１"),
    "d mmm yy": ("5 Jan 26", "05 FEB 00", "5 Foo 26", "5 June 26"),
    "mmmm d, yyyy": ("January 5, 2026", "may 31, 1999", "Jan 5, 2026", "June 31, 2026"),
    "yyyy-mm": ("2026-01", "2026-12", "2026-1", "2026-00"),
}
"""Patterns of dates, each with texts."""
