"""Writes values of columns as text: for people, for YAML and for JSON."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

from tallybook.text import JOINERS, escaped


def plain(value: object) -> object:
    """Returns a value for JSON: exact numbers, as text where a JSON number would lose digits."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else number_text(value)
    if isinstance(value, datetime):
        return timestamp_text(value)
    return value.isoformat() if isinstance(value, date) else value


def show(value: object) -> str:
    """Returns a value for a table, printable; text is quoted where it is ambiguous."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        shown = "".join(char if char.isprintable() or char in JOINERS else escaped(char) for char in value)
        return f'"{shown}"' if value in ("", "NULL") or value != value.strip() or shown != value else value
    return written(value)


def written(value: object) -> str:
    """A value as it is written in YAML, without the quotes of text."""
    match value:
        case bool():
            return "true" if value else "false"
        case Decimal():
            return number_text(value)
        case datetime():
            return timestamp_text(value)
        case date():
            return value.isoformat()
    return str(value)


def number_text(value: Decimal) -> str:
    """Returns a number without an exponent and without trailing zeros."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) if value else "0"


def timestamp_text(value: datetime) -> str:
    """Returns a timestamp in UTC, as 2026-01-31T12:00:00Z."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
