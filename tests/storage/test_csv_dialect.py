"""The grammar of CSV, without Spark: the header record, and misplaced quotes."""

from __future__ import annotations

import pytest

from tallybook.model.datasource import FileOptions
from tallybook.storage.formats.csv_dialect import Dialect, Quote

COMMA = Dialect(",")


@pytest.mark.parametrize(
    ("delimiter", "text", "fields"),
    [
        (",", "a,b\n1,2", ("a", "b")),
        (",", '"two\r\nlines","say ""hi""",c" \r1', ("two\r\nlines", 'say "hi"', 'c" ')),
        (",", "\n\r\n\ra,\n", ("a", "")),
        (",", '"a" ,b', ("a", "b")),
        ("||", '"a||b"||c|d\n', ("a||b", "c|d")),
        ("\t", '"a" \tb\n', ("a", "b")),
        (",", "", ()),
        (",", "\r\n", ()),
        (",", '"a" x,b\n', None),
        (",", '"a,b\n1,2\n', None),
    ],
)
def test_the_first_record(delimiter, text, fields):
    record = Dialect(delimiter).first_record(text)
    assert (record and record[0]) == fields


@pytest.mark.parametrize(
    ("text", "quote", "fault"),
    [
        (b'a,b\n1,"x"\n', Quote.CLOSED, None),
        (b'a,b\n1,"open\n2,y\n', Quote.OPEN, (2, True)),
        (b'a,b\n1,"\n', Quote.UNCLEAR, (2, True)),
        (b'"x,"\n1,2\n', Quote.UNCLEAR, None),
        (b'"x\r\n"\n', Quote.UNCLEAR, None),
        (b'5" pipe,"open\n', Quote.OPEN, (1, True)),
        (b'a,24"\n', Quote.CLOSED, None),
        (b'"",""""\n', None, None),
        (b'"""a\n', Quote.OPEN, (1, True)),
        (b'"A,1.00\nB,2.00\n"C",3.00\n', Quote.CLOSED, (3, False)),
        (b'a\r"b\r"\rc,"d"x', Quote.CLOSED, (4, False)),
    ],
)
def test_quotes_in_the_wrong_place(text, quote, fault):
    assert COMMA.last_quote(text) == quote
    for blocks in ([text], text.splitlines(keepends=True) if b"\r" not in text else [text]):
        found = COMMA.fault(blocks)
        assert (found and (found.line, found.unclosed)) == fault


@pytest.mark.parametrize(
    ("delimiter", "text", "exact"),
    [
        (",", b'a,"b\rc"\r\n', True),
        (",", b'a,"b\r"\r\n', False),
        (",", b"a\rb\n", False),
        (",", b'5" pipe,x\n', True),
        ("||", b'"a"||x\n', True),
        ("||", b'5" pipe||x\n', False),
    ],
)
def test_what_the_parser_of_spark_reads_exactly(delimiter, text, exact):
    assert (Dialect(delimiter).fault([text], for_spark=True) is None) == exact


def test_a_tab_may_be_written_with_a_backslash():
    options = FileOptions(path_prefix="/", delimiter="\\t")
    assert (Dialect.of(options).delimiter, Dialect("\\").spark_delimiter) == ("\t", "\\\\")
