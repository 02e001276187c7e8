"""Choices and truth: three-valued logic as SQL has it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import and_, or_
from typing import TYPE_CHECKING

from tallybook.expressions.functions.comparisons import compare, compare_values, why_not_comparable
from tallybook.expressions.functions.spark import F, balanced
from tallybook.expressions.registry import (
    ANYTHING,
    TRUTH,
    Argument,
    Building,
    Computing,
    Function,
    Param,
    Refusal,
    Shape,
    always,
    params,
    register,
    same_as,
)
from tallybook.expressions.values import Value, all_of, any_of
from tallybook.model.columns import BOOLEAN

if TYPE_CHECKING:
    from pyspark.sql import Column


def _if(c: Building, condition: Column, then: Column, otherwise: Column | None = None) -> Column:
    return F.when(condition, then).otherwise(F.lit(None) if otherwise is None else otherwise)


def _compute_if(_c: Computing, condition: Value, then: Value, otherwise: Value = lambda: None) -> object:
    return then() if condition() else otherwise()


def _switch_shape(count: int) -> Shape | None:
    """A subject, pairs of value and result, and perhaps a default."""
    if count < 3:
        return None
    pair = (Param("a value", ANYTHING), Param("a result", ANYTHING, group="result"))
    pairs, default = divmod(count - 1, 2)
    last = (Param("the default", ANYTHING, group="result"),) * default
    return (Param("the subject", ANYTHING), *chain.from_iterable([pair] * pairs), *last)


def _switch_refusal(args: Sequence[Argument]) -> Refusal | None:
    last = len(args) - (1 - len(args) % 2)
    return next((reason for i in range(1, last, 2) if (reason := why_not_comparable("=", args[0], args[i]))), None)


def _switch(c: Building, subject: Column, *rest: Column) -> Column:
    paired = len(rest) - len(rest) % 2
    default = rest[-1] if len(rest) % 2 else F.lit(None)
    x = (subject, c.args[0])
    cases = [(compare(c, "=", x, (rest[i], c.args[i + 1])), rest[i + 1]) for i in range(0, paired, 2)]
    choice = F.when(*cases[0])
    for case in cases[1:]:
        choice = choice.when(*case)
    return choice.otherwise(default)


def _compute_switch(_c: Computing, subject: Value, *rest: Value) -> object:
    value = subject()
    for choice, result in zip(rest[::2], rest[1::2], strict=False):
        if compare_values("=", value, choice()):
            return result()
    return rest[-1]() if len(rest) % 2 else None


def _ifs_shape(count: int) -> Shape | None:
    """Pairs of condition and value, and perhaps a default."""
    if count < 2:
        return None
    pair = (Param("a condition", TRUTH), Param("a value", ANYTHING, group="result"))
    last = (Param("the default", ANYTHING, group="result"),) * (count % 2)
    return (*chain.from_iterable([pair] * (count // 2)), *last)


def _ifs(_c: Building, *args: Column) -> Column:
    choice = F.when(args[0], args[1])
    for condition, value in zip(args[2::2], args[3::2], strict=False):
        choice = choice.when(condition, value)
    return choice.otherwise(args[-1] if len(args) % 2 else F.lit(None))


def _compute_ifs(_c: Computing, *args: Value) -> object:
    for condition, value in zip(args[::2], args[1::2], strict=False):
        if condition():
            return value()
    return args[-1]() if len(args) % 2 else None


def _compute_coalesce(_c: Computing, *values: Value) -> object:
    return next((value for value in (compute() for compute in values) if value is not None), None)


register(
    Function(
        "AND",
        "logic",
        params(Param("a condition", TRUTH), repeat=Param("a condition", TRUTH)),
        "AND(condition, …), or condition AND condition",
        always(BOOLEAN),
        "True when all conditions are true; NULL when one is NULL and none is false.",
        ("AND(TRUE, 2 > 1)", "true"),
        lambda _c, *conditions: balanced(and_, conditions),
        compute=lambda _c, *conditions: all_of(conditions),
        null_safe=True,
    )
)
register(
    Function(
        "OR",
        "logic",
        params(Param("a condition", TRUTH), repeat=Param("a condition", TRUTH)),
        "OR(condition, …), or condition OR condition",
        always(BOOLEAN),
        "True when one condition is true; NULL when one is NULL and none is true.",
        ("OR(FALSE, 2 > 1)", "true"),
        lambda _c, *conditions: balanced(or_, conditions),
        compute=lambda _c, *conditions: any_of(conditions),
        null_safe=True,
    )
)
register(
    Function(
        "NOT",
        "logic",
        params(Param("the condition", TRUTH)),
        "NOT condition",
        always(BOOLEAN),
        "True when the condition is false.",
        ("NOT 1 > 2", "true"),
        lambda _c, x: ~x,
        compute=lambda _c, x: not x,
    )
)
register(
    Function(
        "IF",
        "logic",
        params(
            Param("the condition", TRUTH),
            Param("the value if true", ANYTHING, group="result"),
            optional=[Param("the value if not", ANYTHING, group="result")],
        ),
        "IF(condition, value if true, value if not)",
        same_as(1, "the common type of both values"),
        "The second argument if the condition is true, else the third, or NULL without one. NULL counts as false.",
        ('IF(3 > 2, "more", "less")', "more"),
        _if,
        compute=_compute_if,
        null_safe=True,
    )
)
register(
    Function(
        "IFS",
        "logic",
        _ifs_shape,
        "IFS(condition, value, …, default)",
        same_as(1, "the common type of the values"),
        "The value after the first condition that is true, else the default, else NULL. NULL counts as false.",
        ('IFS(5 > 10, "large", 5 > 3, "medium", "small")', "medium"),
        _ifs,
        compute=_compute_ifs,
        null_safe=True,
    )
)
register(
    Function(
        "SWITCH",
        "logic",
        _switch_shape,
        "SWITCH(subject, value, result, …, default)",
        same_as(2, "the common type of the results"),
        "The result after the first value that equals the subject, else the default, else NULL.",
        ('SWITCH("b", "a", 1, "b", 2, 0)', "2"),
        _switch,
        compute=_compute_switch,
        repeats=(0,),
        refuse=_switch_refusal,
        null_safe=True,
    )
)
register(
    Function(
        "COALESCE",
        "logic",
        params(
            Param("a value", ANYTHING, group="result"),
            repeat=Param("a value", ANYTHING, group="result"),
        ),
        "COALESCE(value, …)",
        same_as(0, "the common type of the values"),
        "The first value that is not NULL.",
        ('COALESCE(NULL, "none")', "none"),
        lambda c, *values: F.coalesce(*values),
        compute=_compute_coalesce,
        null_safe=True,
    )
)
register(
    Function(
        "ISNULL",
        "logic",
        params(Param("the value", ANYTHING)),
        "ISNULL(value)",
        always(BOOLEAN),
        "True when the value is NULL.",
        ("ISNULL(NULL)", "true"),
        lambda _c, x: x.isNull(),
        compute=lambda _c, x: x() is None,
        aliases=("IS_NULL",),
        null_safe=True,
    )
)
register(
    Function(
        "IS NULL",
        "logic",
        params(Param("the value", ANYTHING)),
        "value IS NULL, value IS NOT NULL",
        always(BOOLEAN),
        "True when the value is NULL.",
        ("NULL IS NULL", "true"),
        lambda _c, x: x.isNull(),
        compute=lambda _c, x: x() is None,
        operator=True,
        null_safe=True,
    )
)
