"""Expressions without rows: what Python computes is what Spark computes, for every function and random trees."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from tallybook.errors import ProblemError, RunError
from tallybook.expressions.check import Typed
from tallybook.expressions.evaluate import Evaluator as Plain
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Resolved
from tallybook.expressions.show import show
from tallybook.expressions.tree import Call, Literal
from tallybook.expressions.values import lower, upper

from .evaluation import COMPILER, Columns, Evaluator, check, text_of
from .test_every_function import MORE_CALLS, NULLS, PLAIN

ROW: Columns = {
    "b": ("boolean", True),
    "i": ("integer", 7),
    "least": ("integer", -(2**63)),
    "d": ("decimal(10,2)", Decimal("-12.50")),
    "long": ("decimal(38,10)", Decimal("1234567890123456789012345678.0123456789")),
    "s": ("string", "Straße_%"),
    "day": ("date", date(2024, 2, 29)),
    "at": ("timestamp", datetime(2026, 1, 31, 23, 59, 59, 120000, tzinfo=UTC)),
    "nb": ("boolean", None),
    "ni": ("integer", None),
    "nd": ("decimal(18,6)", None),
    "ns": ("string", None),
    "nday": ("date", None),
}
FAILS = "fails"


def plain(typed: Typed, row: Columns = ROW) -> object:
    """The value without Spark, or that there is none."""

    def read(column: Resolved) -> object:
        return row[column.column][1]

    try:
        return Plain(COMPILER.timestamp, COMPILER.period, read).value(typed)
    except RunError as error:
        assert error.problem.type == "EvaluationError"
        return FAILS


def on_spark(evaluate: Evaluator, typed: list[Typed], row: Columns = ROW) -> list[object]:
    """The values on Spark: all in one query, or one by one where some have none."""
    frame = evaluate.frame({name: type for name, (type, _) in row.items()}, [tuple(v for _, v in row.values())])
    try:
        return evaluate.collect(frame, typed)[0]
    except PySparkException:
        if len(typed) == 1:
            return [FAILS]
    half = len(typed) // 2
    return on_spark(evaluate, typed[:half], row) + on_spark(evaluate, typed[half:], row)


def same_values(evaluate: Evaluator, expressions: list[str], row: Columns = ROW) -> None:
    """Both sides give the same value of the same type, or both fail."""
    typed = [check(expression, row) for expression in expressions]
    here, there = [plain(each, row) for each in typed], on_spark(evaluate, typed, row)
    wrong = [
        f"{expression} is {text_of(mine)}, on Spark {text_of(theirs)}"
        for expression, mine, theirs in zip(expressions, here, there, strict=True)
        if (text_of(mine), type(mine)) != (text_of(theirs), type(theirs))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_function_that_makes_no_summary_computes():
    assert [function.name for function in PLAIN if function.compute is None] == []


def test_documented_examples(evaluate: Evaluator):
    same_values(
        evaluate, [function.example[0] for function in PLAIN] + [text for more in MORE_CALLS.values() for text in more]
    )


def test_nulls(evaluate: Evaluator):
    """NULL in place of each argument of each example."""
    expressions = []
    for function in PLAIN:
        call = parse(function.example[0])
        if isinstance(call, Call):
            shape = function.shapes(len(call.args)) or () if call.name == function.name else ()
            for index in range(len(shape)):
                args = (*call.args[:index], Literal(None), *call.args[index + 1 :])
                expressions.append(show(Call(call.name, args, operator=call.operator)))
    assert len(expressions) > 60
    same_values(evaluate, expressions, NULLS)


def test_truth_with_unknowns(evaluate: Evaluator):
    values = ("TRUE", "FALSE", "NULL", "nb", "b")
    same_values(evaluate, [f"{a} {op} {b}" for op in ("AND", "OR", "=", "<>") for a in values for b in values])
    same_values(
        evaluate, [f"{v} IN ({a}, {b})" for v in ("1", "ni", "2.0") for a in ("1", "NULL", "i") for b in ("2", "ni")]
    )
    same_values(
        evaluate, [f"{v} BETWEEN {a} AND {b}" for v in ("1", "ni") for a in ("0", "2", "ni") for b in ("3", "0", "ni")]
    )


HARD = r"""
0.5 / 7
1 / 3
2 / 3.0
10 / 4 = 2.5
long / 3
long * 3
long * 1.5
long % 0.07
-long % i
i / 0
i % 0
MOD(-7, 0.2)
least % -1
i + least
d - 12345678901234567890.123
-d
-0.0
ABS(d)
ABS(long)
-least
ABS(least)
least - 1
9223372036854775807 + 1
9223372036854775808 + 1
99999999999999999999999999999999999999 + 1
0.00000000000000000000000000000000000001 * 0.1
ROUND(2.5)
ROUND(-2.5)
ROUND(2.345, 2)
ROUND(d, 5)
ROUND(i, -1)
ROUND(15, -1)
ROUND(-15, -1)
ROUND(9223372036854775807, -1)
ROUND(long, -3)
ROUND(long, 4)
ROUND(0.4, -2)
FLOOR(d)
CEIL(d)
FLOOR(long)
CEIL(-0.5)
MIN(3, 1.5, d)
MAX(day, at)
TO_STRING(d)
TO_STRING(0.0000001)
TO_STRING(at)
TO_STRING(day)
TO_STRING(NOW())
TO_STRING(b)
TO_STRING(-0.00)
TO_INTEGER("42")
TO_INTEGER(" +42 ")
TO_INTEGER("4.2")
TO_INTEGER("")
TO_INTEGER("9223372036854775808")
TO_INTEGER("-000000000000000000000000000000000000000000005")
TO_INTEGER("１")
TO_INTEGER(d)
TO_INTEGER(long)
TO_DECIMAL("1e3")
TO_DECIMAL("1e-3")
TO_DECIMAL(".5")
TO_DECIMAL("5.")
TO_DECIMAL("5.5.5")
TO_DECIMAL("1_000")
TO_DECIMAL("NaN")
TO_DECIMAL("١٢")
TO_DECIMAL("0e39")
TO_DECIMAL("0e-99")
TO_DECIMAL("1e-99")
TO_DECIMAL("00012345678901234567890123456789012345678.5")
TO_DECIMAL(CONCAT("1", LEFT("x", 0)))
ABS(-9999999999999999999999999999999999.5)
TO_DECIMAL("1e40")
TO_DECIMAL("-0")
TO_DECIMAL("1.005", 10, 2)
TO_DECIMAL("999.995", 5, 2)
TO_DECIMAL(long)
TO_DECIMAL(i, 38, 30)
TO_DATE("2024-02-29")
TO_DATE("2023-02-29")
TO_DATE("2024-2-29")
TO_DATE("0000-01-01")
TO_DATE(" 2024-02-2")
TO_DATE("٢٠٢٤-٠٢-٢٩")
TO_DATE(at)
DATE(2024, 2, 30)
DATE(0, 1, 1)
DATE(10000, 1, 1)
DATE(99999999999, 1, 1)
DATE(1, 1, 1)
day + 1
1 + day
day - 60
day + 9999999
day + 99999999999999
DATEADD(day, -1)
ADD_MONTHS(day, 12)
ADD_MONTHS(day, -12)
ADD_MONTHS(day, 999999)
ADD_MONTHS(day, 99999999999)
MONTH_END(day)
DATEDIFF(at, day)
DATEDIFF(day, at)
YEAR(at) + MONTH(at) * 100 + DAY(at)
day < at
DATE("2026-01-31") < at
DATE("2026-02-01") > at
at = TIMESTAMP("2026-01-31T23:59:59.12Z")
"a" < "B"
"é" > "z"
"𝄞" > "￿"
"" < "a"
"a" = "a "
TRUE = b
1 = 1.00
i = 7.0000
long > 1234567890123456789012345678
d IN (-12.5, 3)
2.50 IN (1, 2.5)
UPPER(s)
LOWER("ΑΣ ΑΣΑ İ")
TRIM("  a ")
LEN("𝄞é")
LEFT(s, 3)
LEFT(s, -1)
RIGHT(s, 2)
RIGHT(s, 0)
RIGHT(s, 99999999999)
SUBSTRING(s, 2)
SUBSTRING(s, 0, 3)
SUBSTRING(s, -1, 3)
SUBSTRING(s, 2, 99999999999)
SUBSTRING(s, 99999999999)
SUBSTRING("𝄞é€", 2, 1)
SUBSTRING(s, -9223372036854775808, 9223372036854775807)
REPLACE(s, "", "x")
REPLACE("aaa", "aa", "b")
CONTAINS(s, "")
STARTS_WITH(s, "Str")
ENDS_WITH(s, "_%")
CONCAT(s, "x", PERIOD())
s LIKE "Stra_e%"
s LIKE "%\\%"
s LIKE s
s LIKE CONCAT("%", "\\")
"a\nb" LIKE "a_b"
"a\nb" LIKE "a%"
"a\n" LIKE "a"
"abab" LIKE "%a%b"
"𝄞" LIKE "_"
"a.c" LIKE "a.c"
"abc" LIKE "a.c"
"" LIKE "%"
"[x]" LIKE "[_]"
"abcabd" LIKE "a%b_"
"abc" LIKE "%_b_%"
"ab" LIKE "a%_%b"
"aab" LIKE "a%ab"
"ab" LIKE "ab%ab"
"x%y" LIKE "_\\%_"
"abxcdxef" LIKE "%x_d%f%"
IF(nb, 1, 2)
IF(b, d)
IF(b, 1, 1 / 3)
SWITCH(i, 7.0, "seven", "other")
SWITCH(ns, "a", 1)
SWITCH(s, ns, 1, 2)
COALESCE(nday, day)
COALESCE(ni, 1.5)
IF(b, 1, TO_INTEGER("x"))
ISNULL(ns)
ROUNDUP(d, 1)
ROUNDUP(-0.001, 2)
ROUNDUP(long, 3)
ROUNDUP(long, -3)
ROUNDUP(1, -20)
ROUNDUP(i, -1)
ROUNDUP(-i, -1)
ROUNDUP(least, -1)
ROUNDDOWN(d, 1)
TRUNC(d)
TRUNC(-0.9)
TRUNC(long, 2)
TRUNC(least, -1)
TRUNC(least, -30)
ROUND_HALF_EVEN(2.5)
ROUND_HALF_EVEN(-12.5, 0)
ROUND_HALF_EVEN(2.345, 2)
ROUND_HALF_EVEN(25, -1)
ROUND_HALF_EVEN(long, 4)
SIGN(long)
SIGN(-0.00000000000000000000000000000000000001)
SIGN(0.0)
POWER(2, 62)
POWER(2, 63)
POWER(-2, 63)
POWER(1.05, 12)
POWER(d, 3)
POWER(d, -2)
POWER(long, 2)
POWER(0, 0)
POWER(0.00, -1)
POWER(i, -1)
POWER(0.1, 38)
POWER(1.0001, 100)
PERCENT_OF(1, 3)
PERCENT_OF(d, long)
PERCENT_OF(least, 7)
PERCENT_OF(1, 0)
IFS(nb, 1, b, 2.5, 3)
IFS(nb, 1)
IFS(b, 1, TRUE, TO_INTEGER("x"))
ISBLANK(ns)
ISBLANK(" 	 ")
ISBLANK("a")
TRY_TO_INTEGER("9223372036854775808")
TRY_TO_INTEGER(long)
TRY_TO_DECIMAL("1e40")
TRY_TO_DECIMAL("999.995", 5, 2)
TRY_TO_DECIMAL(long, 5, 2)
TRY_TO_DATE("2023-02-29")
TRY_TO_DATE(at)
TRY_TO_DATE("0000-01-01")
TO_DATE("31.01.2026", "dd.mm.yyyy")
TO_DATE("31.02.2026", "dd.mm.yyyy")
TO_DATE("1/2/2026", "d/M/yyyy")
TO_DATE("011/2/2026", "d/M/yyyy")
TO_DATE("5 jan 26", "d mmm yy")
TO_DATE("May 31, 1999", "mmmm d, yyyy")
TO_DATE("June 31, 1999", "mmmm d, yyyy")
TO_DATE("2026-01", "yyyy-mm")
TO_DATE("00000101", "yyyymmdd")
TO_DATE("[2026]01", "[yyyy]mm")
TO_DATE("2026年3月", "yyyy年m月")
TEXT(d, "0.0")
TEXT(-0.001, "0.00")
TEXT(0.125, "0.00")
TEXT(long, "#,##0.00")
TEXT(least, "#,##0")
TEXT(least, "0%")
TEXT(0.12345, "0.0%")
TEXT(99999999999999999999999999999999999999, "0.00%")
TEXT(1.50, "0.0##")
TEXT(2, "0.##")
TEXT(7, "0000.0")
TEXT(day, "d.m.yy")
TEXT(at, "dd MMM yyyy")
TEXT(day, "'yy mmmm ''")
TEXT(DATE("0005-09-03"), "yyyy-mm-dd")
PROPER(s)
PROPER("o'neil & SONS-gmbh 2nd éCOLE ßa ǆ")
LPAD(s, 12, "ab")
LPAD(s, 3, "ab")
RPAD(s, 12, "𝄞")
RPAD(s, -1, "x")
LPAD(s, 99999999999, "x")
LPAD(s, 20, "")
FIND("e", s)
FIND("", s)
FIND("é", "𝄞é")
FIND("x", "")
SPLIT_PART("a--b---c", "--", 2)
SPLIT_PART("a--b---c", "--", 3)
SPLIT_PART("a--b---c", "--", 4)
SPLIT_PART("a.b", ".", 9223372036854775807)
SPLIT_PART("a.b", ".", 0)
SPLIT_PART("a.b", ".", -1)
SPLIT_PART("", ".", 1)
SPLIT_PART("ab", "", 1)
SPLIT_PART("aaa", "aa", 2)
MATCHES(s, "[A-Z].*")
MATCHES("aab", "a*ab")
REGEX_EXTRACT(s, "(ra)(x)?", 2)
REGEX_EXTRACT(s, "a.")
QUARTER(day) * 10000 + WEEK(day) * 10 + WEEKDAY(day)
WEEK(DATE("2027-01-01"))
WEEK(DATE("2026-12-31"))
WEEK(DATE("0001-01-01")) + WEEK(DATE("9999-12-31"))
MONTHS_BETWEEN(at, day)
MONTHS_BETWEEN(day, at)
MONTHS_BETWEEN(DATE("2026-02-28"), DATE("2026-01-31"))
MONTHS_BETWEEN(DATE("2026-02-28"), DATE("2026-01-30"))
MONTHS_BETWEEN(DATE("2026-03-30"), DATE("2026-02-28"))
MONTHS_BETWEEN(DATE("2026-02-27"), DATE("2026-01-28"))
MONTHS_BETWEEN(DATE("9999-12-31"), DATE("0001-01-01"))
YEARFRAC(day, at, "act/act")
YEARFRAC(at, day, "act/act")
YEARFRAC(day, at, "30/360")
YEARFRAC(at, day, "30/360")
YEARFRAC(DATE("2026-01-31"), DATE("2026-03-31"), "30/360")
YEARFRAC(DATE("2026-01-29"), DATE("2026-03-31"), "30/360")
YEARFRAC(day, at, "ACT/360")
YEARFRAC(day, at, "act/365")
YEARFRAC(DATE("0001-01-01"), DATE("9999-12-31"), "act/act")
"""


@pytest.mark.long
def test_hard_values(evaluate: Evaluator):
    same_values(evaluate, [line for line in HARD.splitlines() if line])


@pytest.mark.parametrize(
    ("begin", "middle", "end"),
    [
        ("TRUE IN (FALSE, ", "TRUE", ")"),
        ("IF(b, ", "d", ", i)"),
        ("NOT (b AND ", "TRUE", ")"),
        ("-(1.5 + ", "i", ")"),
    ],
)
def test_the_deepest_expression(begin: str, middle: str, end: str):
    depth = next(n for n in range(100, 0, -1) if _is_right(begin * n + middle + end * n))
    assert depth >= 33
    assert plain(check(begin * depth + middle + end * depth, ROW)) is not FAILS


def test_case_of_every_character(evaluate: Evaluator):
    """Texts of every character: Python may know an older Unicode than Spark."""
    characters = "\n".join(chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF)
    frame = evaluate.spark.createDataFrame([(characters,)], "text string")
    row = frame.select(F.upper("text") == F.lit(upper(characters)), F.lower("text") == F.lit(lower(characters))).first()
    assert row is not None and (row[0], row[1]) == (True, True)


Texts = st.SearchStrategy[str]
NUMBERS: Texts = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["0", "1", "-1", "2.5", "0.005", "7", "1234567.891", "i", "d", "ni", "nd", "long", "NULL"]),
        calls("({} {} {})", NUMBERS, st.sampled_from("+-*/%"), NUMBERS),
        calls("ROUND({}, {})", NUMBERS, st.sampled_from(["-2", "0", "1", "3"])),
        calls("{}({}, {})", st.sampled_from(["ROUNDUP", "TRUNC", "ROUND_HALF_EVEN"]), NUMBERS, st.sampled_from("012")),
        calls(
            "{}({})", st.sampled_from(["ABS", "FLOOR", "CEIL", "-", "TO_DECIMAL", "TRY_TO_INTEGER", "SIGN"]), NUMBERS
        ),
        calls("POWER({}, {})", NUMBERS, st.sampled_from(["2", "3", "-1"])),
        calls("{}({}, {})", st.sampled_from(["MIN", "MAX", "COALESCE", "MOD"]), NUMBERS, NUMBERS),
        calls("IF({}, {}, {})", TRUTHS, NUMBERS, NUMBERS),
        calls("SWITCH({}, {}, {}, {})", STRINGS, STRINGS, NUMBERS, NUMBERS),
        calls("LEN({})", STRINGS),
        calls("{}({})", st.sampled_from(["YEAR", "MONTH", "DAY", "QUARTER", "WEEK", "WEEKDAY"]), DAYS),
        calls("{}({}, {})", st.sampled_from(["DATEDIFF", "MONTHS_BETWEEN"]), DAYS, DAYS),
        calls('YEARFRAC({}, {}, "{}")', DAYS, DAYS, st.sampled_from(["30/360", "act/360", "act/act"])),
        calls("FIND({}, {})", STRINGS, STRINGS),
    )
)
STRINGS: Texts = st.deferred(
    lambda: st.one_of(
        st.sampled_from(['""', '"a"', '"2026-01"', '"42"', '"ä_B%"', "s", "ns", "PERIOD()", '"%a_"', "NULL"]),
        calls("{}({})", st.sampled_from(["UPPER", "LOWER", "TRIM", "PROPER"]), STRINGS),
        calls("{}({}, {}, {})", st.sampled_from(["LPAD", "RPAD"]), STRINGS, COUNTS, STRINGS),
        calls("SPLIT_PART({}, {}, {})", STRINGS, STRINGS, COUNTS),
        calls('TEXT({}, "{}")', NUMBERS, st.sampled_from(["0.00", "#,##0", "0.0#%"])),
        calls('TEXT({}, "{}")', DAYS, st.sampled_from(["dd.mm.yyyy", "d mmm yy"])),
        calls("TO_STRING({})", st.one_of(NUMBERS, DAYS, TRUTHS)),
        calls("CONCAT({}, {})", STRINGS, STRINGS),
        calls("{}({}, {})", st.sampled_from(["LEFT", "RIGHT"]), STRINGS, COUNTS),
        calls("SUBSTRING({}, {}, {})", STRINGS, COUNTS, COUNTS),
        calls("REPLACE({}, {}, {})", STRINGS, STRINGS, STRINGS),
        calls("COALESCE({}, {})", STRINGS, STRINGS),
    )
)
DAYS: Texts = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["day", "nday", 'DATE("2026-01-31")', "TODAY()", 'DATE("0001-01-01")']),
        calls("{}({}, {})", st.sampled_from(["DATEADD", "ADD_MONTHS"]), DAYS, COUNTS),
        calls("({} {} {})", DAYS, st.sampled_from("+-"), COUNTS),
        calls("MONTH_END({})", DAYS),
        calls("MAX({}, {})", DAYS, DAYS),
        calls("TRY_TO_DATE({})", STRINGS),
        calls("DATE({}, {}, {})", st.sampled_from(["2024", "1900"]), COUNTS, COUNTS),
    )
)
TRUTHS: Texts = st.deferred(
    lambda: st.one_of(
        st.sampled_from(["TRUE", "FALSE", "NULL", "b", "nb"]),
        *(calls("({} {} {})", side, COMPARISONS, side) for side in (NUMBERS, STRINGS, DAYS)),
        *(calls("({} IN ({}, {}))", side, side, side) for side in (NUMBERS, STRINGS)),
        *(calls("({} BETWEEN {} AND {})", side, side, side) for side in (NUMBERS, DAYS)),
        calls("({} {} {})", TRUTHS, st.sampled_from(["AND", "OR"]), TRUTHS),
        calls("(NOT {})", TRUTHS),
        calls("ISNULL({})", st.one_of(NUMBERS, STRINGS, DAYS)),
        calls("{}({}, {})", st.sampled_from(["CONTAINS", "STARTS_WITH", "ENDS_WITH"]), STRINGS, STRINGS),
        calls("({} LIKE {})", STRINGS, STRINGS),
        calls('("{}" LIKE "{}")', st.text("ab%", max_size=6), st.text("ab%_", max_size=6)),
    )
)
COMPARISONS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
COUNTS = st.sampled_from(["-1", "0", "1", "2", "12", "31", "ni", "i", "LEN(s)"])


def calls(form: str, *parts: Texts) -> Texts:
    return st.tuples(*parts).map(lambda texts: form.format(*texts))


def _is_right(expression: str) -> bool:
    try:
        return check(expression, ROW) is not None
    except ProblemError:
        return False


EXPRESSIONS: Texts = st.deferred(
    lambda: st.one_of(TRUTHS, TRUTHS, NUMBERS, STRINGS, DAYS).filter(lambda text: len(text) < 400 and _is_right(text))
)
SHORT = settings(max_examples=6, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@SHORT
@given(st.lists(EXPRESSIONS, min_size=20, max_size=40))
def test_random_trees(evaluate: Evaluator, expressions: list[str]):
    same_values(evaluate, expressions)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(SHORT, max_examples=300)
@given(st.lists(EXPRESSIONS, min_size=20, max_size=40))
def test_random_trees_at_length(evaluate: Evaluator, expressions: list[str]):
    same_values(evaluate, expressions)
