"""The comparison notices every kind of disagreement: it is shown one of each."""

from __future__ import annotations

import pytest

from tallybook.errors import Problem
from tallybook.rows.ids import POSITION

from .case import Case, Column
from .product import ProductReading, differences
from .verdict import MalformedError, StrictReading

CASE = Case("csv", (), (Column("c0", "integer", "id"),))
TYPES = (("c0", "bigint"), (POSITION, "bigint"))
C0 = frozenset({"c0"})
SOUND = StrictReading([{"c0": 1}, {"c0": None}], C0, ordered=True)
MALFORMED = MalformedError("DataLoadError", "a quote that is not closed")
NOTHING = MalformedError("DataNotFound", "no files")


def rows(*values: object, types: tuple[tuple[str, str], ...] = TYPES) -> ProductReading:
    return ProductReading([{"c0": value, POSITION: number} for number, value in enumerate(values)], types)


def refusal(type: str) -> ProductReading:
    return ProductReading(problem=Problem(type, "it is bad"))


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (SOUND, rows(1, None)),
        (MALFORMED, refusal("DataLoadError")),
        (MALFORMED, refusal("SchemaMismatch")),
        (NOTHING, refusal("DataNotFound")),
        (StrictReading([{"c0": None}, {"c0": 1}], C0), rows(1, None)),
    ],
)
def test_agreement(expected, got):
    assert differences(CASE, expected, got) == []


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        (SOUND, rows(2, None), "rows are"),
        (SOUND, rows(1), "rows are"),
        (SOUND, rows(None, 1), "rows are"),
        (SOUND, rows(1, None, None), "rows are"),
        (SOUND, rows(1, None, types=(("c0", "int"), (POSITION, "bigint"))), "c0 is int"),
        (SOUND, ProductReading([{"c0": 1, POSITION: 0}, {"c0": None, POSITION: 0}], TYPES), "positions"),
        (SOUND, refusal("DataLoadError"), "refuses 2 good rows"),
        (SOUND, refusal("InternalError"), "fails with InternalError"),
        (MALFORMED, rows(1), "the product has rows"),
        (MALFORMED, refusal("DataNotFound"), "refuses with DataNotFound"),
        (MALFORMED, refusal("InternalError"), "fails with InternalError"),
        (NOTHING, rows(), "the product has rows"),
        (SOUND, rows(True, None), "rows are"),
        (SOUND, ProductReading([{POSITION: 0}, {POSITION: 1}], TYPES[1:]), "c0 is missing"),
        (StrictReading([{"c0": 1}, {"c0": 2}], C0), rows(1), "only the strict reader has"),
        (StrictReading([{"c0": 1}], C0), rows(1, 1), "only the product has"),
    ],
)
def test_disagreement(expected, got, said):
    assert said in "\n".join(differences(CASE, expected, got))
