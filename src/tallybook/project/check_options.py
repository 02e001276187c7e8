"""Checks the options of file formats: which mean something for a format, and which contradict each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from urllib.parse import urlsplit

from tallybook.errors import Problem
from tallybook.expressions.functions.date_patterns import date_pattern
from tallybook.expressions.functions.timestamp_patterns import timestamp_pattern
from tallybook.model.cell_range import CellRange, why_no_sheet
from tallybook.model.datasource import DataSource, FileOptions, FormatOptions, S3Options, storage_kind
from tallybook.model.encoding import Encoding, encoding_of
from tallybook.resolve.render import check_no_tokens

_SEPARATORS = ("decimal", "thousands", "delimiter", "quote")


def check_options(source: DataSource) -> Iterator[Problem]:
    """Yields the problems of the options of a datasource that has files; the path of each is the key."""
    options = source.format_options
    if options is None:
        return
    unused = source.unused_options
    for key in unused:
        message = f"`{key}` means nothing for files of type {source.type}"
        yield Problem("InvalidArguments", message, "remove it, or use another type", path=key)
    problems = (
        *_check_separators(options),
        *_check_patterns(options),
        *_check_encoding(options),
        *_check_sheet(options),
    )
    yield from (problem for problem in problems if problem.path not in unused)
    yield from _check_store(source)


def _check_store(source: DataSource) -> Iterator[Problem]:
    """Yields the problems of options that reach an S3 store."""
    options = source.options
    if not isinstance(options, FileOptions):
        return
    fields = S3Options.model_fields.items()
    given = [key for key, field in fields if getattr(options, key) != field.default]
    if storage_kind(options.path_prefix) != "s3":
        for key in given:
            message = f"`{key}` means nothing for files at '{options.path_prefix}'"
            yield Problem("InvalidArguments", message, "it is for s3:// and s3a:// URLs; remove it", path=key)
    elif options.endpoint is not None and urlsplit(options.endpoint).scheme not in ("http", "https"):
        yield Problem("InvalidArguments", "`endpoint` must begin with https:// or http://", path="endpoint")
    elif options.endpoint is not None and options.endpoint.startswith("http://") and not options.allow_http:
        message = "`endpoint` has no encryption: secrets and rows could be read on the way"
        yield Problem("InvalidArguments", message, "use https://, or add `allow_http: true`", path="endpoint")


def _check_separators(options: FormatOptions) -> Iterator[Problem]:
    """A separator of thousands may equal the delimiter: such numbers are in quotes."""
    for key, other in (
        ("decimal", "delimiter"),
        ("thousands", "decimal"),
        ("quote", "decimal"),
        ("quote", "thousands"),
    ):
        value = getattr(options, key)
        if value is not None and value == getattr(options, other):
            hint = "files with a decimal comma usually have `delimiter: ;`" if other == "delimiter" else None
            hint = hint or "use two different characters"
            yield Problem("InvalidArguments", f"`{key}` and `{other}` are both '{value}'", hint, path=key)
    if options.quote in options.delimiter:
        message = f"`delimiter` '{options.delimiter}' contains the `quote` '{options.quote}'"
        yield Problem("InvalidArguments", message, "use two different characters", path="delimiter")


def _check_patterns(options: FormatOptions) -> Iterator[Problem]:
    parts = "yyyy or yy, mm, m, mmm or mmmm, and dd or d"
    hints = {
        "date_format": f"write {parts}, as in dd.mm.yyyy",
        "timestamp_format": f"write {parts}, then hh, mm and ss, as in dd.mm.yyyy hh:mm:ss",
    }
    readers: dict[str, Callable[[str], str | None]] = {
        "date_format": lambda text: date_pattern(text).why_not_readable() or _without_day(text),
        "timestamp_format": lambda text: timestamp_pattern(text).why_not_readable(),
    }
    for key, why_not in readers.items():
        pattern = getattr(options, key)
        try:
            reason = why_not(pattern) if pattern is not None else None
        except ValueError as error:
            reason = str(error)
        if reason is not None:
            message = f"the pattern '{pattern}' cannot be used: {reason}"
            yield Problem("InvalidArguments", message, hints[key], path=key)


def _without_day(pattern: str) -> str | None:
    return None if date_pattern(pattern).group("d") else "it has no day"


def _check_encoding(options: FormatOptions) -> Iterator[Problem]:
    encoding = encoding_of(options.encoding)
    if encoding is None:
        hint = "use utf-8, utf-16, or a code page such as windows-1252, iso-8859-15 or cp850"
        yield Problem("InvalidArguments", f"'{options.encoding}' is not a known encoding", hint, path="encoding")
        return
    if options.bom and not encoding.is_unicode:
        message = f"a file in {options.encoding} has no byte order mark"
        yield Problem("InvalidArguments", message, "remove `bom`, or use `encoding: utf-8`", path="bom")
    yield from _check_letters(options, encoding)


def _check_sheet(options: FormatOptions) -> Iterator[Problem]:
    for problem in check_no_tokens(options.sheet or "", "write the name itself, and put the period into the path"):
        yield replace(problem, path="sheet")
    reason = why_no_sheet(options.sheet) if options.sheet is not None else None
    if reason is not None:
        message = f"a sheet cannot be named '{options.sheet}': {reason}"
        yield Problem("InvalidArguments", message, "use at most 31 characters, none of []:*?/\\", path="sheet")
    try:
        CellRange.parse(options.range or "A1")
    except ValueError as error:
        hint = "write A3:F200, A3:F, A:F, or A3 for all cells from there on"
        yield Problem("InvalidArguments", str(error), hint, path="range")


def _check_letters(options: FormatOptions, encoding: Encoding) -> Iterator[Problem]:
    for key in (*_SEPARATORS, "null_value", "date_format", "timestamp_format"):
        letter = encoding.lacks(getattr(options, key) or "")
        if letter is not None:
            message = f"`{key}` has the character '{letter}', which {options.encoding} does not have"
            yield Problem("InvalidArguments", message, "use another encoding or another character", path=key)
