"""Options of file formats that mean nothing, contradict each other, or cannot be used are problems of the checker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallybook.errors import Problem
from tallybook.expressions.functions.timestamp_patterns import timestamp_pattern
from tallybook.model.encoding import encoding_of

CSV = "datasource: {{id: s, type: csv, options: {{path_prefix: data, {}}}}}"


@pytest.mark.parametrize(
    "options",
    [
        "delimiter: ;, decimal: ',', thousands: ., date_format: dd.mm.yyyy, encoding: windows-1252",
        "thousands: ','",
        "timestamp_format: 'm/d/yyyy h:mm AM/PM', encoding: UTF-16, bom: true",
        'timestamp_format: yyyy-mm-ddThh:mm:ss.000, quote: "\'", encoding: latin1, thousands: "\\u00a0"',
    ],
)
def test_good_options(validate: Callable[..., list[Problem]], options: str) -> None:
    assert validate({"s.yaml": CSV.format(options)}) == []


@pytest.mark.parametrize(
    ("options", "key", "message"),
    [
        ("decimal: ','", "decimal", "`decimal` and `delimiter` are both ','"),
        ("thousands: .", "thousands", "`thousands` and `decimal` are both '.'"),
        ('thousands: "\'", quote: "\'"', "quote", "`quote` and `thousands` are both '''"),
        ("delimiter: '|\"'", "delimiter", "`delimiter` '|\"' contains the `quote` '\"'"),
        ("date_format: dd.mm", "date_format", "'dd.mm' cannot be used: a date needs one year"),
        ("date_format: mm/yyyy", "date_format", "'mm/yyyy' cannot be used: it has no day"),
        ("date_format: '%d.%m.%Y'", "date_format", "'y' is not a part of a date"),
        ("date_format: dd.mm.jjjj", "date_format", "'jjjj' is not a part of a date"),
        ("timestamp_format: dd.mm.yyyy", "timestamp_format", "a timestamp needs one year, month, day, hour and minute"),
        ("encoding: shift_jis", "encoding", "'shift_jis' is not a known encoding"),
        ("encoding: cp1252, bom: true", "bom", "a file in cp1252 has no byte order mark"),
        (
            "encoding: ascii, null_value: €",
            "null_value",
            "`null_value` has the character '€', which ascii does not have",
        ),
        ("decimal: ;", "decimal", "';' is not a valid value for 'decimal'"),
        ("quote: '\"\"'", "quote", "is not a valid value for 'quote'"),
        ("thousands: x", "thousands", "'x' is not a valid value for 'thousands'"),
    ],
)
def test_wrong_options(validate: Callable[..., list[Problem]], options: str, key: str, message: str) -> None:
    problem = validate({"s.yaml": CSV.format(options)})[0]
    assert (problem.type, problem.path) == ("InvalidArguments", f"datasource.options.{key}")
    assert message in problem.message
    assert problem.place is not None


@pytest.mark.parametrize(
    ("options", "key", "message"),
    [
        ("sheet: a/b", "sheet", "a sheet cannot be named 'a/b': it has the character '/'"),
        ("sheet: '{{period}}'", "sheet", "'{{period}}' is not replaced here"),
        ("range: B2:A1", "range", "'B2:A1' is not a range of cells"),
        ("delimiter: ;", "delimiter", "`delimiter` means nothing for files of type excel"),
    ],
)
def test_options_of_excel(validate: Callable[..., list[Problem]], options: str, key: str, message: str) -> None:
    document = "datasource: {id: s, type: excel, options: {path_prefix: data, " + options + "}}"
    [problem] = validate({"s.yaml": document})
    assert (problem.path, problem.message) == (f"datasource.options.{key}", message)


def test_an_option_of_another_format(validate: Callable[..., list[Problem]]) -> None:
    document = "datasource: {id: s, type: delta, options: {path_prefix: data, decimal: ',', delimiter: ';'}}"
    messages = [problem.message for problem in validate({"s.yaml": document})]
    assert messages == [
        "`decimal` means nothing for files of type delta",
        "`delimiter` means nothing for files of type delta",
    ]


@pytest.mark.parametrize(
    ("text", "java"),
    [
        ("dd.mm.yyyy hh:mm:ss", "dd'.'MM'.'yyyy' 'HH':'mm':'ss"),
        ("yyyy-MM-dd HH:mm:ss.SSS", "yyyy'-'MM'-'dd' 'HH':'mm':'ss'.'SSS"),
        ("yyyymmddhhmmss", "yyyyMMddHHmmss"),
        ("m/d/yyyy h:mm AM/PM", "M'/'d'/'yyyy' 'h':'mm' 'a"),
        ("yyyy-mm-ddThh:mm:ss.0", "yyyy'-'MM'-'dd'T'HH':'mm':'ss'.'S"),
        ("mm:ss hh dd.mm.yy", "mm':'ss' 'HH' 'dd'.'MM'.'yy"),
    ],
)
def test_minutes_are_the_mm_next_to_hours_or_seconds(text: str, java: str) -> None:
    assert timestamp_pattern(text).for_java() == java


@pytest.mark.parametrize(
    "text", ["hh:mm", "dd.mm.yyyy kk:mm", "dd.mm.yyyy hh", "d.m.yyyy hmm", "dd.mm.yyyy hh:mm:ss ss"]
)
def test_patterns_that_no_timestamp_can_be_read_with(text: str) -> None:
    with pytest.raises(ValueError, match=r"needs|separates|part"):
        timestamp_pattern(text)


def test_encodings() -> None:
    page = encoding_of("Windows-1252")
    assert page is not None
    assert page.lacks("Ä€") is None
    assert page.lacks("a\u2603") == "\u2603"
    assert b"\x80\xc4".decode("latin-1").translate(str.maketrans(*page.from_spark)) == "€Ä"
    assert encoding_of("utf-8-sig") is None
