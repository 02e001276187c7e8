"""Evaluates a typed tree to a plain Python value, the same that Spark computes, for expressions that read no rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import ClassVar

from tallybook.errors import fail
from tallybook.expressions.check import (
    Typed,
    TypedCall,
    TypedCast,
    TypedColumn,
    TypedLiteral,
    TypedOver,
    TypedParameter,
    argument,
)
from tallybook.expressions.registry import Computing
from tallybook.expressions.scope import Resolved
from tallybook.expressions.values import cast
from tallybook.model.relative_period import RunPeriod


class UnknownValueError(Exception):
    """Raised when the value of an expression is not known, because it reads a column of a row."""


def _read_nothing(_column: Resolved) -> object:
    raise UnknownValueError


@dataclass(frozen=True)
class Evaluator:
    """Evaluates expressions of one run: its time, period and parameters are constants in them."""

    knows_values: ClassVar[bool] = True
    """False if every value is left to Spark."""

    timestamp: datetime
    period: RunPeriod
    read: Callable[[Resolved], object] = _read_nothing
    parameters: Mapping[str, object] = field(default_factory=dict)

    def value(self, typed: Typed) -> object:
        """Returns the value of a checked expression, None for NULL. An overflow, for example, is an EvaluationError."""
        if isinstance(typed, TypedLiteral):
            return cast(typed.value, typed.type)
        if isinstance(typed, TypedColumn):
            return self.read(typed.column)
        if isinstance(typed, TypedOver):
            raise UnknownValueError
        if isinstance(typed, TypedParameter):
            return self.parameters[typed.name]
        try:
            if isinstance(typed, TypedCast):
                return cast(self.value(typed.arg), typed.type)
            assert isinstance(typed, TypedCall)
            return self._call(typed)
        except (ValueError, ArithmeticError) as error:
            span = typed.node.span
            raise fail("EvaluationError", f"{span.text} cannot be computed: {error}", place=span.place) from None

    def _call(self, typed: TypedCall) -> object:
        function = typed.function
        assert function.compute is not None, f"{function.name} summarises rows"
        computing = Computing([argument(arg) for arg in typed.args], typed.type, self.timestamp, self.period)
        if function.null_safe:
            return function.compute(computing, *(partial(self.value, arg) for arg in typed.args))
        values = []
        is_unknown = False
        for arg in typed.args:
            try:
                value = self.value(arg)
            except UnknownValueError:
                if not _is_plain(arg):
                    raise
                is_unknown = True
                continue
            if value is None:
                return None
            values.append(value)
        if is_unknown:
            raise UnknownValueError
        return function.compute(computing, *values)


def _is_plain(typed: Typed) -> bool:
    """True for the value of a column: it cannot fail, so another argument that is NULL decides the result."""
    return isinstance(typed.arg if isinstance(typed, TypedCast) else typed, TypedColumn)


class BlindEvaluator(Evaluator):
    """Knows no value, so that everything is left to Spark."""

    knows_values = False

    def value(self, _typed: Typed) -> object:
        raise UnknownValueError
