"""What is known of the rows of a segment without Spark: which selectors select them, and which columns are constant."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tallybook.expressions.check import Checker, Typed
from tallybook.expressions.evaluate import BlindEvaluator, Evaluator
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Scope, ScopeTable
from tallybook.model.columns import BOOLEAN, INTEGER, STRING, SYSTEM_COLUMNS, decimal
from tallybook.model.period import GREGORIAN
from tallybook.model.relative_period import RunPeriod
from tallybook.rows.segments import Constant, merged, new_segment
from tallybook.source import SourceText

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
JANUARY = RunPeriod(GREGORIAN.period("2026-01"), GREGORIAN)
EVALUATOR = Evaluator(NOW, JANUARY)
COLUMNS = {"region": STRING, "amount": decimal(10, 2), "total": decimal(18, 2), "n": INTEGER}
ROWS = ScopeTable("rows", {**COLUMNS, **SYSTEM_COLUMNS})
TOTALS = new_segment(20, "sales", "orders", NOW).with_varying({"region": STRING, "total": decimal(18, 2)})
TOTALS = TOTALS.with_nulls({**COLUMNS, **SYSTEM_COLUMNS})


def typed(text: str) -> Typed:
    checker = Checker(Scope((ROWS,)))
    result = checker.check(parse(SourceText(text, None)))
    assert result is not None and not checker.problems
    return result


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        ("_operation_seq = 20", True),
        ("_operation_seq = 10", False),
        ("_operation_seq IN (0, 10)", False),
        ("amount IS NULL", True),
        ("amount > 0", False),
        ("NOT (amount > 0)", False),
        ("total > 0", None),
        ("total > 0 AND amount > 0", False),
        ("amount > 0 AND total > 0", False),
        ("total > 0 OR amount IS NULL", True),
        ("total > 0 OR amount > 0", None),
        ("total > 0 AND _operation_seq = 20", None),
        ('_source_dataset_id = "sales" AND _labels = ""', True),
        ("_created_at = _updated_at", True),
        ("_period IS NULL", True),
        ('PERIOD() = "2026-01"', True),
        ("NULL", False),
        ("1 / 0 > 1", False),
        ('TO_INTEGER("x") > 1', None),
    ],
)
def test_a_selector_is_decided_where_the_columns_it_reads_are_constant(selector: str, selects: bool | None) -> None:
    assert TOTALS.selects(typed(selector), EVALUATOR) is selects


def test_nothing_is_decided_without_an_evaluator() -> None:
    assert TOTALS.selects(typed("_operation_seq = 10"), BlindEvaluator(NOW, JANUARY)) is None


def test_deleted_rows_are_selected_only_if_they_are_asked_for() -> None:
    deleted = TOTALS.with_constants({"_deleted": Constant(BOOLEAN, value=True)})
    unsure = TOTALS.with_varying({"_deleted": BOOLEAN})
    everything = (TOTALS, unsure, deleted)
    assert [segment.selects(None, EVALUATOR) for segment in everything] == [True, None, False]
    assert [segment.selects(None, EVALUATOR, include_deleted=True) for segment in everything] == [True] * 3
    assert [segment.all_active for segment in everything] == [True, False, False]
    assert unsure.selects(typed("amount > 0"), EVALUATOR) is False


def test_every_column_is_either_constant_or_varies() -> None:
    changed = TOTALS.with_varying({"amount": decimal(10, 2)}).with_constants({"region": Constant(STRING, "EMEA")})
    assert set(changed.varying) == {"_row_id", "total", "amount"}
    assert changed.constants["region"].value == "EMEA" and "amount" not in changed.constants
    assert changed.varying.keys() | changed.constants.keys() == {*COLUMNS, *SYSTEM_COLUMNS}


def test_a_union_keeps_what_is_the_same_everywhere() -> None:
    other = new_segment(30, "sales", "orders", NOW).with_nulls({**COLUMNS, **SYSTEM_COLUMNS})
    both = merged([TOTALS, other], {name: SYSTEM_COLUMNS.get(name, STRING) for name in ("_operation_seq", "_labels")})
    assert (set(both.varying), set(both.constants)) == ({"_operation_seq"}, {"_labels"})
