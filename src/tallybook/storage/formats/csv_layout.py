"""Finds out what Spark's parser needs to know of a CSV file: its header, its line ends, and that its quotes close.

Local files are searched here, at the speed of memory; compressed files, and files elsewhere, by a Spark job. Neither
parses the fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from tallybook.errors import RunError, fail
from tallybook.model.location import Location
from tallybook.rows import sql
from tallybook.storage.credentials import reader
from tallybook.storage.files import file_options, path_of, readable_here, reader_paths
from tallybook.storage.formats.csv_dialect import Dialect, Fault, Quote
from tallybook.storage.formats.csv_text import BOM, text_blocks
from tallybook.storage.scan import FILE, ORIGIN, START

_THREADS = 16
_HEAD = 2**20
_HEADER_LINES = 1000
_LONE_RETURN = re.compile(rb"\r(?!\n|\Z)")
_SPLIT_BYTES = 64 * 2**20
"""The largest file that is split into records by a pattern, because that holds the file in memory several times."""


@dataclass(frozen=True)
class Layout:
    """How to parse a file. Files with equal layouts are parsed together."""

    header: tuple[str, ...]
    """The names in the header record; empty if the files have no header."""
    crlf: bool = False
    """True if lines end with CRLF. Spark's parser then leaves the CR at the end of the last field."""
    split: bool = False
    """True if a pattern finds the records, because Spark's parser would find others. For example, it finds one in a
    file that has only a byte order mark."""


@dataclass(frozen=True)
class _Content:
    """The content of a file: `head` returns its beginning, `blocks` all of it in blocks of whole lines."""

    path: str
    head: Callable[[], bytes]
    blocks: Callable[[], Iterable[bytes]]


def layouts(spark: SparkSession, location: Location, files: Sequence[str]) -> dict[Layout, list[str]]:
    """Returns the files by their layout. Raises DataLoadError for a quoted field that is never closed."""
    options = file_options(location)
    dialect = Dialect.of(options)
    here = readable_here(files)
    summaries = {} if here else _summaries(spark, location, files, dialect)

    def layout_of(file: str) -> Layout:
        content = _content(spark, location, file, here=here)
        header, before = _header(content, dialect) if options.has_header else ((), "")
        lines = _look(content, dialect) if here else _look_elsewhere(content, summaries.get(file), dialect)
        split = lines.split or "\r" in before
        if split and lines.size > _SPLIT_BYTES:
            raise _too_large(content.path)
        if split:
            _check_quotes(content, dialect)
        return Layout(header, lines.crlf, split)

    groups: dict[Layout, list[str]] = {}
    with ThreadPoolExecutor(_THREADS) as pool:
        for file, layout in zip(files, pool.map(layout_of, files), strict=True):
            groups.setdefault(layout, []).append(file)
    return groups


def find_fault(spark: SparkSession, location: Location, file: str) -> RunError | None:
    """Returns the error for the first misplaced quote, with its line; None if there is none."""
    content = _content(spark, location, file, here=readable_here([file]))
    dialect = Dialect.of(file_options(location))
    fault = dialect.fault(content.blocks())
    return None if fault is None else _faulty(content.path, fault, dialect)


def _content(spark: SparkSession, location: Location, file: str, *, here: bool) -> _Content:
    path = path_of(file)
    encoding = Dialect.of(file_options(location)).encoding
    if here:
        return _Content(
            path, lambda: next(text_blocks(path, encoding, _HEAD), b""), lambda: text_blocks(path, encoding)
        )
    if not encoding.is_utf_8:
        raise fail(
            "DataLoadError",
            f"{path} cannot be read in {encoding.label}: it is compressed, or not on this machine",
            hint="copy it to this machine and decompress it, or save it as UTF-8",
        )
    lines = _text(spark, location, [file])
    return _Content(
        path, lambda: b"".join(_encoded(lines.take(_HEADER_LINES))), lambda: _encoded(lines.toLocalIterator())
    )


def _text(spark: SparkSession, location: Location, files: Sequence[str]) -> DataFrame:
    """Returns the lines of files, split at LF; CR is kept."""
    return reader(spark, location).option("lineSep", "\n").text(reader_paths(files))


def _encoded(lines: Iterable[Row]) -> Iterator[bytes]:
    for number, line in enumerate(lines):
        text = line["value"] if number else line["value"].removeprefix(BOM)
        yield f"{text}\n".encode()


def _header(content: _Content, dialect: Dialect) -> tuple[tuple[str, ...], str]:
    """Returns the names in the header record, and the blank lines before it."""
    record = dialect.first_record(content.head().decode(errors="replace"))
    if record is None:
        fault = dialect.fault(content.blocks())
        raise (
            _faulty(content.path, fault, dialect)
            if fault
            else fail("DataLoadError", f"the header of {content.path} is too long")
        )
    return record


@dataclass(frozen=True)
class _Lines:
    """What the lines of a file are like."""

    crlf: bool
    split: bool
    size: int


def _look(content: _Content, dialect: Dialect) -> _Lines:
    crlf = lone = False
    quote = None
    size = 0
    for block in content.blocks():
        size += len(block)
        if b"\r" in block:
            crlf = crlf or b"\r\n" in block or block.endswith(b"\r")
            lone = lone or _LONE_RETURN.search(block) is not None
        quote = dialect.last_quote(block) or quote
    if quote in (Quote.OPEN, Quote.UNCLEAR):
        _check_quotes(content, dialect)
    doubtful = lone or (quote is not None and dialect.doubles_quotes)
    split = doubtful and dialect.fault(content.blocks(), for_spark=True) is not None
    return _Lines(crlf, split or not size, size)


def _summaries(spark: SparkSession, location: Location, files: Sequence[str], dialect: Dialect) -> dict[str, Row]:
    """Summarises files that only Spark can read, in one pass over their lines; a file without lines has no summary."""
    lines = _text(spark, location, files).selectExpr(
        "value",
        f"{ORIGIN[FILE]} AS file",
        f"struct({ORIGIN[START]}, monotonically_increasing_id()) AS at",
        "instr(value, chr(13)) AS return",
    )
    quote, twice = sql.text(dialect.quote), sql.text(dialect.quote * 2)
    summaries = lines.groupBy("file").agg(
        F.expr("bool_or(return = length(value) AND return > 0) AS crlf"),
        F.expr("bool_or(return BETWEEN 1 AND length(value) - 1) AS lone"),
        F.expr(f"max_by(value, at) FILTER (WHERE contains(replace(value, {twice}), {quote})) AS quoted"),
        F.expr(f"sum(length(value) - length(replace(value, {quote}))) % 2 = 0 AS even"),
        F.expr("sum(octet_length(value) + 1) AS size"),
    )
    return {row["file"]: row for row in summaries.collect()}


def _look_elsewhere(content: _Content, summary: Row | None, dialect: Dialect) -> _Lines:
    """Describes the lines of a file by the summary that Spark made.

    It may depend on the whole file if the last quote closes a field. A small file is then searched here. In a large
    file the number of quotes decides: it is even unless one is missing.
    """
    if summary is None:
        return _Lines(crlf=False, split=True, size=0)
    quote = dialect.last_quote(f"{summary['quoted'] or ''}\n".encode())
    small = summary["size"] <= _SPLIT_BYTES
    if quote is Quote.OPEN or (quote is Quote.UNCLEAR and (small or not summary["even"])):
        _check_quotes(content, dialect)
    split = summary["lone"] or (quote is not None and dialect.doubles_quotes)
    return _Lines(summary["crlf"], split, summary["size"])


def _check_quotes(content: _Content, dialect: Dialect) -> None:
    fault = dialect.fault(content.blocks())
    if fault is not None:
        raise _faulty(content.path, fault, dialect)


def _faulty(path: str, fault: Fault, dialect: Dialect) -> RunError:
    where = f"{path} line {fault.line}"
    what = "a field begins with a quote that is never closed"
    if not fault.unclosed:
        what = "there is text after the closing quote of a field"
    example = '"5"" pipe"'.replace('"', dialect.quote)
    hint = f"a field that begins with a quote ends at the next one; a quote inside it is written twice: {example}"
    return fail("DataLoadError", f"{where}: {what}", hint=hint)


def _too_large(path: str) -> RunError:
    return fail(
        "DataLoadError",
        f"{path} has more than {_SPLIT_BYTES >> 20} MiB, too much for a file that Spark's CSV parser misreads: "
        "it has lines that end with CR alone, blank lines with CRLF before the header, or quotes together with a "
        "delimiter of several characters",
        hint="convert its line ends to LF, or write it with a delimiter of one character",
    )
