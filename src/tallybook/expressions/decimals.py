"""Result types of exact arithmetic: keep every fractional digit that 38 digits allow, and never fewer than six.

These are the rules Spark follows with `spark.sql.decimalOperations.allowPrecisionLoss`, given a divisor of 38 digits:
what is computed here before a run is the type the data gets.
"""

from __future__ import annotations

from tallybook.model.columns import MAX_PRECISION, ColumnType, decimal

KEPT_SCALE = 6
SUM_DIGITS = 10
SUM_KEPT_SCALE = 18


def fitted(integer_digits: int, scale: int) -> ColumnType:
    """The decimal with room for both, giving up fractional digits beyond the sixth where 38 do not suffice."""
    if integer_digits + scale <= MAX_PRECISION:
        return decimal(max(1, integer_digits + scale), scale)
    return decimal(MAX_PRECISION, max(MAX_PRECISION - integer_digits, min(scale, KEPT_SCALE)))


def added(a: ColumnType, b: ColumnType) -> ColumnType:
    return fitted(max(a.integer_digits, b.integer_digits) + 1, max(a.scale, b.scale))


def multiplied(a: ColumnType, b: ColumnType) -> ColumnType:
    return fitted(a.integer_digits + b.integer_digits + 1, a.scale + b.scale)


def divided(a: ColumnType, b: ColumnType) -> ColumnType:
    """A quotient may have any number of fractional digits, so it gets all that 38 digits leave."""
    return fitted(a.integer_digits + b.scale, MAX_PRECISION)


def remainder(a: ColumnType, b: ColumnType) -> ColumnType:
    return fitted(min(a.integer_digits, b.integer_digits), max(a.scale, b.scale))


def common(a: ColumnType, b: ColumnType) -> ColumnType:
    """The type that holds values of both."""
    return fitted(max(a.integer_digits, b.integer_digits), max(a.scale, b.scale))


def exact_common(a: ColumnType, b: ColumnType) -> ColumnType | None:
    """The decimal that holds every value of both; None when 38 digits are too few for that."""
    whole, scale = max(a.integer_digits, b.integer_digits), max(a.scale, b.scale)
    return decimal(max(1, whole + scale), scale) if whole + scale <= MAX_PRECISION else None


def summed(a: ColumnType) -> ColumnType:
    """Room for ten billion values, taken where need be from fractional digits beyond the eighteenth.

    A quotient such as `1 / 3` fills all 38 digits with its fraction: ten of those would already be too many to add.
    """
    whole = a.integer_digits + SUM_DIGITS
    scale = min(a.scale, max(MAX_PRECISION - whole, SUM_KEPT_SCALE))
    return decimal(min(MAX_PRECISION, whole + scale), scale)
