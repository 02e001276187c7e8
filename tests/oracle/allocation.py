"""allocate on a list of rows, with fractions: nothing is rounded before the last step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from tallybook.model.columns import RESERVED, VALIDITY_COLUMNS, ColumnType
from tallybook.operations.allocate import Allocate

from .expressions import Meaning, Row, condition, meaning_of, require
from .operations import column_name, completed, is_active, type_for
from .readings import attempt, needed
from .sources import joined_source, no_duplicates, value_of, with_lookups
from .tables import Rows, Run, Working
from .values import FailedError, RefusedError, put


def allocate(operation: Allocate, working: Working, run: Run) -> Working:
    given = operation.arguments
    context = run.context(working.views(run))
    select = condition(operation.selector, context)
    type = working.business.get(given.amount)
    if type is None:
        raise RefusedError("ColumnNotFound")
    if not type.is_number:
        raise RefusedError("TypeMismatch")
    targets = joined_source(given.to, "targets", run, working.columns)
    of_pairs = replace(run.context([*working.views(run), targets.view]), branch=True)
    match = condition(given.match, of_pairs)
    driver = require(meaning_of(given.driver, of_pairs), "integer", "decimal")
    columns = _set_columns(operation, working, of_pairs)
    targets = replace(targets, on=match)
    order = [f"targets.{name}" for name in targets.view.columns]
    look_up = with_lookups(working, run, {*context.reads, *of_pairs.reads} - {"targets"})
    pool = [row for row in working.rows if is_active(row) and select(look_up(row))]
    new: Rows = []
    for row in pool:
        wide = look_up(row)
        reached = [{**wide, **target} for target in targets.matches(wide)]
        base = {**row, **run.made(operation.seq, working.input, working.input.main_table, row["_period"])}
        base |= {name: row[name] for name in ("_source_dataset_id", "_source_table")}
        base |= {name: row[name] for name in VALIDITY_COLUMNS if name in row}
        for pair, share in _shares(needed(row[given.amount]), type, reached, driver, order):
            values = {name: attempt(value_of, meaning, pair, known) for name, (known, meaning) in columns.items()}
            new.append({**base, **values, given.amount: share})
        if given.pool == "reverse":
            amount = row[given.amount]
            reverse = None if amount is None else put(-amount, type)  # type: ignore[operator]  # a number
            new.append({**base, given.amount: reverse})
    marked = [id(row) for row in pool] if given.pool == "delete" else []
    deleted = {"_deleted": True, "_updated_at": run.timestamp}
    rows = [{**row, **deleted} if id(row) in marked else row for row in working.rows]
    added = {name: known for name, (known, _) in columns.items() if name not in working.columns}
    after = replace(working, business=working.business | added)
    return replace(after, rows=completed([*rows, *new], after.columns))


def _set_columns(operation: Allocate, working: Working, context: object) -> dict[str, tuple[ColumnType, Meaning]]:
    assignments = operation.arguments.set
    no_duplicates([each.column for each in assignments])
    columns = {}
    for each in assignments:
        if each.column in RESERVED - {"_labels"}:
            raise RefusedError("SystemColumn")
        if each.column == operation.arguments.amount:
            raise RefusedError("DuplicateColumn")
        column_name(each.column, working)
        meaning = meaning_of(each.expression, context)  # type: ignore[arg-type]  # a context
        columns[each.column] = (type_for(each.column, meaning, working.columns), meaning)
    return columns


def _shares(
    amount: object, type: ColumnType, reached: Sequence[Row], driver: Meaning, order: Sequence[str]
) -> list[tuple[Row, object]]:
    """Each pair with a driver above zero, and its share of the amount."""
    drivers = [driver.of(pair) for pair in reached]
    if not any(drivers) or any(each is None or each < 0 for each in drivers):  # type: ignore[operator]  # numbers
        raise FailedError("AllocationFailed")
    weighted = [(pair, Fraction(each)) for pair, each in zip(reached, drivers, strict=True) if each]  # type: ignore[arg-type]  # numbers
    if amount is None:
        return [(pair, None) for pair, _ in weighted]
    scale = type.scale if type.kind == "decimal" else 0
    units = abs(int(Fraction(amount) * 10**scale))  # type: ignore[arg-type]  # a number
    total = sum(weight for _, weight in weighted)
    exact = [(pair, units * weight / total) for pair, weight in weighted]
    whole = [int(share) for _, share in exact]
    left = units - sum(whole)

    def claim(index: int) -> tuple[object, ...]:
        pair, share = exact[index]
        return (whole[index] - share, *((pair[name] is not None, pair[name]) for name in order))

    for index in sorted(range(len(exact)), key=claim)[:left]:
        whole[index] += 1
    sign = -1 if amount < 0 else 1  # type: ignore[operator]  # a number
    return [
        (pair, Decimal(sign * count).scaleb(-scale) if type.kind == "decimal" else sign * count)
        for (pair, _), count in zip(exact, whole, strict=True)
    ]
