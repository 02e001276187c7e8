"""The readings leave open what the language does, and nothing else: a failure that anybody could see stays one."""

from __future__ import annotations

from typing import Any

import pytest

from .case import Case
from .readings import Reading
from .test_oracle import orders
from .values import FailedError

LARGE = "amount * 10000000"
"""Does not fit into the column `amount`."""


def _set(selector: str | None = None, **expressions: str) -> dict[str, Any]:
    assignments = [{"column": column, "expression": text} for column, text in expressions.items()]
    chosen = {} if selector is None else {"selector": selector}
    return {"type": "update", "arguments": {"assignments": assignments}, **chosen}


def _out(*columns: str, **more: str) -> dict[str, Any]:
    return {"type": "output", "arguments": {"destination": {"location": "x"}, "columns": list(columns)}, **more}


def _sum(key: str, **expressions: str) -> dict[str, Any]:
    aggregations = [{"column": column, "expression": text} for column, text in expressions.items()]
    return {"type": "aggregate", "arguments": {"group_by": [key], "aggregations": aggregations}}


def _fails(case: Case, reading: Reading) -> bool:
    try:
        case.interpreted(reading)
    except FailedError:
        return True
    return False


@pytest.mark.parametrize(
    "operations",
    [
        [_set(amount=LARGE), _set(amount="0")],
        [_set(amount=LARGE), _out("id"), _set(amount="0")],
        [_set(amount=LARGE), _set(copy="amount"), _set(amount="0", copy="0")],
        [_sum("id", amount=f"SUM({LARGE})"), _set(amount="0")],
        [_set(f"{LARGE} * {'9' * 30} > 0", amount="1"), _set(amount="0")],
        [_set(small="IF(TO_INTEGER(id) IN (NULL), 1, 2)")],
        [_set(amount=LARGE), _set(known="amount IN (NULL) OR TRUE"), _set(amount="0")],
    ],
)
def test_what_nobody_reads_may_stay_uncomputed(operations: list[dict[str, Any]]) -> None:
    case = orders(*operations)
    assert _fails(case, Reading.PLAIN) and not _fails(case, Reading.LAZY)


@pytest.mark.parametrize(
    "operations",
    [
        [_set(amount=LARGE)],
        [_set(amount=LARGE), _out("amount"), _set(amount="0")],
        [_set(amount=LARGE), _out("id", selector="amount > 0"), _set(amount="0")],
        [_set(amount=LARGE), _set(copy="amount"), _set(amount="0")],
        [_set(amount=LARGE), _set("amount > 0", other="1"), _set(amount="0")],
        [_set(amount=LARGE), _set('id = "A"', amount="0")],
        [_set(amount=LARGE), _sum("amount", n="COUNT(*)"), _set(amount="0")],
        [_set(amount=LARGE), _sum("id", total="SUM(amount)"), _set(amount="0")],
        [_set(amount=LARGE), {"type": "delete", "selector": "amount > 0"}, _set(amount="0")],
        [_set(amount=LARGE), {"type": "delete"}],
        [_set("TO_INTEGER(id) > 0", amount="1")],
        [_set(seen="TO_INTEGER(id) IN (1, NULL)")],
    ],
)
def test_what_anybody_reads_fails(operations: list[dict[str, Any]]) -> None:
    assert _fails(orders(*operations), Reading.LAZY)


@pytest.mark.parametrize(
    ("operation", "may_fail"),
    [
        (_set(amount="12345678901"), True),
        (_set(n='TO_INTEGER("x")'), True),
        (_set('TO_INTEGER("x") > 1', amount="0"), True),
        (_sum("id", n='SUM(TO_INTEGER("x"))'), True),
        (_set('id = "A"', amount="12345678901"), False),
        (_set(n='IF(id = "A", TO_INTEGER("x"), 0)'), False),
        (_set(n='COALESCE(LEN(id), TO_INTEGER("x"))'), False),
        (_set(n="TO_INTEGER(id)"), False),
    ],
)
def test_only_constants_may_fail_without_a_row(operation: dict[str, Any], may_fail: bool) -> None:
    case = orders(operation).without_rows()
    assert _fails(case, Reading.EAGER) is may_fail
    assert not _fails(case, Reading.PLAIN)
