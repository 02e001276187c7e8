"""What holds for every function and operator, read from the registry: examples, NULLs, wrong types, wrong counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from tallybook.expressions.check import Checker
from tallybook.expressions.elsewhere import EQUIVALENTS
from tallybook.expressions.functions import FAMILIES
from tallybook.expressions.parse import parse
from tallybook.expressions.registry import FUNCTIONS, Function, find_function, load_functions
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.expressions.show import show
from tallybook.expressions.tree import Call, ColumnName, Literal, Node, walk
from tallybook.model.columns import BOOLEAN, DATE, DECIMAL, INTEGER, NULL, STRING, TIMESTAMP, decimal

from .evaluation import Evaluator, check, same, text_of

load_functions()
ALL = list(dict.fromkeys(FUNCTIONS.values()))
PLAIN = [function for function in ALL if not function.aggregate]
KINDS = {
    "a_boolean": BOOLEAN,
    "an_integer": INTEGER,
    "a_decimal": DECIMAL,
    "a_string": STRING,
    "a_date": DATE,
    "a_timestamp": TIMESTAMP,
}
ROW_OF_EXAMPLES = {"amount": decimal(18, 2), "region": STRING, "day": DATE}
NULLS = {name: (str(type), None) for name, type in KINDS.items()}
TAKES_ANYTHING = {"ISNULL", "IS NULL", "TO_STRING", "COUNT", "COUNT_DISTINCT", "FIRST_BY", "LAST_BY"}
"""Functions that take any value as their first argument."""
MORE_CALLS = {
    "DATE": ['DATE("2026-01-31")'],
    "COALESCE": ['COALESCE("a", "b")'],
    "ROUND": ["ROUND(2.5)"],
    "SUBSTRING": ['SUBSTRING("abc", 2)'],
    "TO_DECIMAL": ['TO_DECIMAL("1")', "TO_DECIMAL(1)"],
    "TO_DATE": ["TO_DATE(NOW())", 'TO_DATE("2026-01-31")'],
    "TRY_TO_INTEGER": ["TRY_TO_INTEGER(1.5)"],
    "TRY_TO_DECIMAL": ['TRY_TO_DECIMAL("1.005", 10, 2)'],
    "TRY_TO_DATE": ['TRY_TO_DATE("2026-01-31")'],
    "TEXT": ['TEXT(DATE("2026-01-31"), "dd.mm.yyyy")'],
    "REGEX_EXTRACT": ['REGEX_EXTRACT("a1b2", "[a-z]([0-9])", 0)'],
}
"""Calls beside the documented example, where that does not show every parameter."""


def _calls(function: Function) -> list[Call]:
    """Calls of the function that are right, the documented one first."""
    texts = [function.example[0], *MORE_CALLS.get(function.name, [])]
    names = {"COUNT": "COUNT_ALL"} if function.name == "COUNT_ALL" else {}
    found = (
        next(
            node
            for node in walk(parse(text))
            if isinstance(node, Call) and names.get(node.name, node.name) == function.name
        )
        for text in texts
    )
    return [replace(call, name=function.name, args=()) if function.name == "COUNT_ALL" else call for call in found]


def _problems(node: Node, function: Function) -> list[str]:
    scope = Scope((ScopeTable("t", {**KINDS, **ROW_OF_EXAMPLES}),))
    checker = Checker(scope, frozenset() if function.aggregate else None)
    checker.check(node)
    return [f"{problem.type}: {problem.message} | {problem.hint}" for problem in checker.problems]


def _with(call: Call, index: int, arg: Node) -> Call:
    return replace(call, args=(*call.args[:index], arg, *call.args[index + 1 :]))


def _ids(function: Function) -> str:
    return function.name


def test_the_registry_is_complete():
    wanted = (
        "IF AND OR NOT ISNULL IS_NULL COALESCE SWITCH ABS ROUND FLOOR CEIL MOD MIN MAX CONCAT UPPER LOWER TRIM LEFT "
        "RIGHT LEN CONTAINS STARTS_WITH ENDS_WITH SUBSTRING REPLACE DATE TIMESTAMP TODAY NOW YEAR MONTH DAY DATEDIFF "
        "DATEADD ADD_MONTHS MONTH_END TO_STRING TO_INTEGER TO_DECIMAL TO_DATE PERIOD PERIOD_START PERIOD_END SUM COUNT "
        "COUNT_ALL AVG MIN_AGG MAX_AGG COUNT_DISTINCT IFS ISBLANK TRY_TO_INTEGER TRY_TO_DECIMAL TRY_TO_DATE POWER SIGN "
        "TRUNC ROUNDUP ROUNDDOWN ROUND_HALF_EVEN PERCENT_OF PROPER LPAD RPAD FIND SPLIT_PART MATCHES REGEX_EXTRACT "
        "TEXT QUARTER WEEKDAY WEEK EOMONTH MONTHS_BETWEEN YEARFRAC SUM_IF COUNT_IF AVG_IF MEDIAN STDDEV STRING_AGG "
        "FIRST_BY LAST_BY"
    )
    operators = {"=", "<>", "<", "<=", ">", ">=", "IN", "BETWEEN", "LIKE", "IS NULL", "+", "-", "*", "/", "%", "NEGATE"}
    assert set(FUNCTIONS) == {*wanted.split(), *operators}
    assert {function.family for function in ALL} == set(FAMILIES)


def test_every_function_has_its_counterparts():
    assert {function.name for function in ALL} == set(EQUIVALENTS)


def test_documented_examples(evaluate: Evaluator):
    values = evaluate.all([function.example[0] for function in PLAIN])
    wrong = [
        f"{function.example[0]} is {text_of(value)}, not {function.example[1]}"
        for function, value in zip(PLAIN, values, strict=True)
        if not same(value.replace(tzinfo=None) if function.name == "TIMESTAMP" else value, function.example[1])
    ]
    assert not wrong, "\n".join(wrong)


def test_documented_examples_of_aggregates(evaluate: Evaluator):
    aggregates = [function for function in ALL if function.aggregate]
    rows = [
        (Decimal("10.00"), "EMEA", date(2026, 1, 31)),
        (Decimal("20.50"), "APAC", date(2026, 1, 1)),
        (None, "EMEA", date(2026, 1, 31)),
    ]
    columns = {name: (str(type), None) for name, type in ROW_OF_EXAMPLES.items()}
    typed = [check(function.example[0], columns, frozenset()) for function in aggregates]
    [values] = evaluate.collect(evaluate.frame({name: type for name, (type, _) in columns.items()}, rows), typed)
    for function, value in zip(aggregates, values, strict=True):
        assert same(value, function.example[1]), function.example


def test_null_in_every_argument(evaluate: Evaluator):
    """Both the bare NULL and a column that is NULL."""
    expressions, null_safe = [], []
    for function in PLAIN:
        for call in _calls(function):
            shape = function.shapes(len(call.args)) or ()
            for index, (param, arg) in enumerate(zip(shape, call.args, strict=True)):
                typed = check(show(arg))
                column = next((name for name, type in KINDS.items() if type.kind == typed.type.kind), None)
                nulls: list[Node] = [Literal(None)]
                nulls += [ColumnName((column,))] if column and not param.literal else []
                for null in nulls:
                    expressions.append(show(_with(call, index, null)))
                    null_safe.append(function.null_safe)
    assert len(expressions) > 150
    values = evaluate.all(expressions, NULLS)
    wrong = [
        f"{expression} is {text_of(value)}"
        for expression, value, safe in zip(expressions, values, null_safe, strict=True)
        if value is not None and not safe
    ]
    assert not wrong, "\n".join(wrong)


def test_the_exceptions_from_the_null_rule(evaluate: Evaluator):
    evaluate.table(
        """
        IF(a_boolean, 1, 2)                 => 2
        COALESCE(a_string, "x")             => x
        ISNULL(a_date)                      => true
        a_date IS NULL                      => true
        SWITCH(a_string, "a", 1, 2)         => 2
        IFS(a_boolean, 1, TRUE, 2)          => 2
        ISBLANK(a_string)                   => true
        a_boolean AND FALSE                 => false
        a_boolean OR TRUE                   => true
        1 IN (an_integer, 1)                => true
        5 BETWEEN an_integer AND 2          => false
        """,
        NULLS,
    )
    assert {function.name for function in PLAIN if function.null_safe} == {
        *("IF", "IFS", "COALESCE", "ISNULL", "IS NULL", "ISBLANK", "SWITCH", "AND", "OR", "IN", "BETWEEN")
    }


@pytest.mark.parametrize("function", ALL, ids=_ids)
def test_a_wrong_type_in_every_argument(function: Function):
    for call in _calls(function):
        assert not _problems(call, function)
        for index, arg in enumerate(call.args):
            refused = []
            for name in KINDS:
                found = _problems(_with(call, index, ColumnName((name,))), function)
                assert all(problem.startswith("TypeMismatch: ") for problem in found), found
                refused += [name] if found else []
            if function.name in TAKES_ANYTHING and index == 0:
                assert not refused
            elif not (isinstance(arg, Literal) and arg.value is None) and NULL not in (
                check(show(other)).type for other in call.args if not function.aggregate
            ):
                assert refused, f"{show(call)} takes anything as argument {index + 1}"


@pytest.mark.parametrize("function", [function for function in ALL if not function.operator], ids=_ids)
def test_a_wrong_number_of_arguments(function: Function):
    impossible = [count for count in range(8) if function.shapes(count) is None]
    assert impossible or function.name in TAKES_ANYTHING
    for count in impossible:
        [problem] = _problems(Call(function.name, (Literal(None),) * count), function)
        assert problem.startswith(f"TypeMismatch: {function.name} cannot take {count} argument")
        assert function.signature in problem


def test_names_and_aliases_in_any_case(evaluate: Evaluator):
    assert evaluate.all(["if(true, 1, 2)", "Is_Null(null)", "1 In (1) aNd not False"]) == [1, True, True]
    assert find_function("IS_NULL") is find_function("ISNULL")
