"""Reads the values of a project's parameters: from the command line, a file, Python or a snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal

from tallybook.errors import Problem, ValidationError, did_you_mean
from tallybook.expressions.check import literal_type
from tallybook.expressions.functions.dates import read_date, read_timestamp
from tallybook.expressions.values import cast, decimal_from_text, integer_from_text
from tallybook.model.base import IDENTIFIER_PATTERN, as_text
from tallybook.model.columns import DATE, TIMESTAMP, ColumnType, why_reserved
from tallybook.model.parameter import Parameter
from tallybook.model.written import written

ParameterValue = str | int | bool | Decimal | date | datetime
Parameters = Mapping[str, ParameterValue]
"""The values of one run, by name."""

_BOOLEANS = {"true": True, "false": False}


def check_parameters(declared: Mapping[str, Parameter]) -> Iterator[tuple[tuple[str, ...], Problem]]:
    """Yields the problems of declared parameters, each with its path below `parameters`."""
    for name, parameter in declared.items():
        if not re.fullmatch(IDENTIFIER_PATTERN, name):
            hint = "use letters, digits and _, and do not begin with a digit"
            yield (name,), Problem("InvalidArguments", f"'{name}' is not a name of a parameter", hint)
        elif reason := why_reserved(name):
            yield (name,), Problem("SystemColumn", f"{reason} and cannot be a parameter", "choose another name")
        if parameter.default is not None:
            try:
                read_value(parameter.default, parameter.type)
            except ValueError as error:
                message = f"the default of parameter '{name}' is not {parameter.type}: {error}"
                yield (name, "default"), Problem("TypeMismatch", message)


def read_parameters(
    declared: Mapping[str, Parameter], given: Mapping[str, object]
) -> tuple[dict[str, ParameterValue], list[Problem]]:
    """Returns the value of every parameter, and the problems of those that are unknown, wrong or missing. The path of a
    problem is the name of the parameter."""
    problems = [
        Problem(
            "ColumnNotFound",
            f"the project has no parameter '{name}'",
            did_you_mean(name, declared) or "declare it under the project's `parameters`",
            path=name,
        )
        for name in given
        if name not in declared
    ]
    values: dict[str, ParameterValue] = {}
    for name, parameter in declared.items():
        value = given.get(name, parameter.default)
        if value is None:
            message = f"parameter '{name}' has no value"
            hint = f"set it with `--set {name}=…`, or give it a `default`"
            problems.append(Problem("InvalidArguments", message, hint, path=name))
            continue
        try:
            values[name] = read_value(value, parameter.type)
        except ValueError as error:
            message = f"parameter '{name}' is {parameter.type}: {error}"
            problems.append(Problem("TypeMismatch", message, parameter.description, path=name))
    return values, problems


def parameter_values(
    declared: Mapping[str, Parameter], given: Mapping[str, object], project: str | None = None
) -> dict[str, ParameterValue]:
    """Returns the value of every parameter. Raises ValidationError if one is unknown, wrong or missing."""
    values, problems = read_parameters(declared, given)
    if problems:
        raise ValidationError(problem.within(project=project) for problem in problems)
    return values


def read_value(value: object, type: ColumnType) -> ParameterValue:
    """Returns the value of a parameter; ValueError with the reason if it is not one of the type.

    All values are read from text, so that 500 means the same on the command line, in a file and in Python.
    """
    if isinstance(value, float):
        raise ValueError(f"{value} is a float, which is not exact; give a Decimal, or text")
    if not isinstance(value, str | int | Decimal | date):
        raise ValueError("a value is text, a number, true, false, a date or a timestamp")
    text = as_text(value) if isinstance(value, str | int) or hasattr(value, "text") else written(value)
    match type.kind:
        case "string":
            return str(text)
        case "boolean":
            return _read(_BOOLEANS.get(text.lower()), text, "true or false")
        case "integer":
            return _integer(text)
        case "decimal":
            return _decimal(text, type)
        case "date":
            return _read(read_date(text), text, "a date such as 2026-01-31")
    return _read(read_timestamp(text), text, "a timestamp such as 2026-01-31T12:00:00Z")


def type_of_value(value: object) -> ColumnType:
    """Returns the type of a parameter that has a Python value and no declaration; ValueError if it has none."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a timestamp needs a time zone")
        return TIMESTAMP
    if isinstance(value, date):
        return DATE
    if not isinstance(value, str | int | Decimal) or (isinstance(value, Decimal) and not value.is_finite()):
        raise ValueError(f"{value!r} is not text, a whole number, a Decimal, true, false, a date or a timestamp")
    return literal_type(Decimal(format(value, "f")) if isinstance(value, Decimal) else value)


def _read(value: ParameterValue | None, text: str, wanted: str) -> ParameterValue:
    if value is None:
        raise ValueError(f"'{text}' is not {wanted}")
    return value


def _integer(text: str) -> int:
    try:
        return integer_from_text(text)
    except (ValueError, ArithmeticError):
        raise ValueError(f"'{text}' is not a whole number of 64 bits") from None


def _decimal(text: str, type: ColumnType) -> Decimal:
    try:
        number = decimal_from_text(text)
        fitting: Decimal = cast(number, type)
    except (ValueError, ArithmeticError):
        raise ValueError(f"'{text}' is not a number that fits {type}") from None
    if fitting != number:
        raise ValueError(f"'{text}' has more than {type.scale} digits after the point")
    return fitting
