"""Left joins that never change the number of rows. A second match for a row that needs one fails with JoinNotUnique.

The joined table is first reduced to one row for each key, with the number of rows that had the key. So uniqueness needs
no job of its own. Conditions that are not equalities are tested among the rows of the key.

`KeyedTables` makes these rows once for all joins that need the same, and `check_unique` tests a join that an earlier
step has made. If it is known beforehand that keys are unique, there is nothing to check: the join is a plain left join,
which Spark can turn into whatever is fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from threading import Lock

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tallybook.expressions.check import Typed, TypedColumn, columns_read
from tallybook.expressions.compile import Compiler, column_named
from tallybook.expressions.scope import Resolved, joined_name
from tallybook.rows import sql
from tallybook.rows.join_condition import Join
from tallybook.rows.raising import raising

_ROWS, _COUNT, _NUMBER, _THERE = map(sql.internal, ("rows", "count", "number", "there"))


@dataclass(frozen=True)
class KeyedRows:
    """The rows of a joined table by the keys of a join."""

    frame: DataFrame
    is_unique: bool = False
    """True if it is known that no key has two rows. Then the frame is the table itself, without counts."""


Fetch = Callable[[DataFrame, Sequence[str]], DataFrame | None]
"""Fetches rows whose columns of these names are unique, NULL aside; returns None if they are not, or too many."""


@dataclass
class KeyedTables:
    """Joined tables with one row for each key. Joins that need the same rows share them."""

    keep: Callable[[DataFrame], DataFrame] | None = None
    """Lets Spark compute rows once; None if they are computed again for each use."""
    _known: list[tuple[object, frozenset[str], KeyedRows]] = field(default_factory=list)
    """The table and the join, the columns, and the rows."""
    _claimed: list[object] = field(default_factory=list)
    _claiming: Lock = field(default_factory=Lock, repr=False)

    def claim(self, table: object, join: Join) -> bool:
        """Returns True to the first of several threads that want to prepare the same rows."""
        wanted = (table, join.of_table, join.columns)
        with self._claiming:
            is_first = wanted not in self._claimed
            self._claimed += [wanted] if is_first else []
            return is_first

    def by_key(
        self, table: object, join: Join, load: Callable[[], DataFrame], compiler: Compiler, *, is_kept: bool
    ) -> KeyedRows:
        """Returns the rows of a table by the keys of a join. `load` loads the table."""
        found = self._find(table, join)
        if found is not None:
            return found
        frame = _by_key(load(), join, compiler)
        if is_kept and self.keep is not None:
            frame = self.keep(frame)
        return self._add(table, join, KeyedRows(frame))

    def trust(self, table: object, join: Join, load: Callable[[], DataFrame], compiler: Compiler) -> None:
        """Joins a table without a check from now on: no two of its rows have the same keys."""
        if self._find(table, join) is None:
            self._add(table, join, KeyedRows(_keys_and_columns(load(), join, compiler), is_unique=True))

    def fetch(self, table: object, join: Join, load: Callable[[], DataFrame], compiler: Compiler, fetch: Fetch) -> bool:
        """Fetches the rows of a table, unless the condition of the join is more than equalities. Returns True if they
        are fetched."""
        if join.rest or not join.equalities:
            return False
        if self._find(table, join) is None:
            rows = fetch(_keys_and_columns(load(), join, compiler), _their_keys(join))
            if rows is None:
                return False
            self._add(table, join, KeyedRows(rows, is_unique=True))
        return True

    def is_unique(self, table: object, join: Join) -> bool:
        """True if it is known that no two rows of a table have the same keys."""
        found = self._find(table, join)
        return found is not None and found.is_unique

    def _find(self, table: object, join: Join) -> KeyedRows | None:
        wanted = (table, join.of_table)
        return next(
            (rows for known, columns, rows in self._known if known == wanted and columns.issuperset(join.columns)), None
        )

    def _add(self, table: object, join: Join, rows: KeyedRows) -> KeyedRows:
        self._known.append(((table, join.of_table), frozenset(join.columns), rows))
        return rows


def left_join_unique(
    frame: DataFrame,
    by_key: KeyedRows,
    join: Join,
    counts: Column | None,
    compiler: Compiler,
    seq: int,
    *,
    names_key: bool = False,
) -> DataFrame:
    """Adds the columns of the one matching row to each row, as `alias.column`; NULL without a match. Helper columns
    with names of that form stay in the frame. `by_key` are the rows of the joined table by key.

    `counts` is true for rows that need a match, None for all rows: no key is computed for the others, and a second
    match is not an error there. The check is a filter, which Spark never prunes. Every value repeats it, because
    otherwise a later filter could remove a row by the value of one of its matches. The row's key is part of the check,
    so that the check is not evaluated for rows of the joined table that match nothing.

    The failure has the key only with `names_key`: with it Spark generates so much code for a few joins that the JVM
    does not compile it any more, and the joins take twice as long.
    """
    matched = _join(frame, by_key.frame, _own_keys(join, counts, compiler), _their_keys(join))
    if by_key.is_unique:
        return matched
    if join.rest:
        matched = _test_rest(matched, join, counts, compiler)
    return check_unique(matched, join, counts, compiler, seq, names_key=names_key)


def check_unique(
    matched: DataFrame, join: Join, counts: Column | None, compiler: Compiler, seq: int, *, names_key: bool = False
) -> DataFrame:
    """Fails if a row that needs a match has two; see `left_join_unique`. The frame has what the join added."""
    own_keys = _own_keys(join, counts, compiler)
    key = {"key": _key_text(own_keys)} if names_key else {}
    failure = raising("JoinNotUnique", seq=str(seq), alias=join.alias, **key)
    twice = reduce(lambda a, b: a & b, [_helper(join, _COUNT) > 1, *(key.isNotNull() for key in own_keys)])
    wrong = twice if counts is None else counts & twice
    checked = {
        name: F.when(wrong, failure).otherwise(column_named(name))
        for name in (joined_name(join.alias, column) for column in join.columns)
    }
    unique = matched.filter(F.when(wrong, failure.cast("boolean")).otherwise(F.lit(True)))
    return unique.withColumns(checked) if checked else unique


def added_columns(join: Join, *, is_unique: bool) -> tuple[str, ...]:
    """The columns in the frame that a later step needs to use the same match."""
    helpers = () if is_unique else (_COUNT,)
    return tuple(joined_name(join.alias, name) for name in (*join.columns, *helpers))


def _own_keys(join: Join, counts: Column | None, compiler: Compiler) -> list[Column]:
    return [_where_needed(compiler.value(eq.own, eq.type), eq.own, counts) for eq in join.equalities]


def _where_needed(value: Column, typed: Typed, counts: Column | None) -> Column:
    """Computes a value only on rows that need a match, because it could fail. A plain column is read on every row."""
    return value if counts is None or isinstance(typed, TypedColumn) else F.when(counts, value)


def _helper(join: Join, name: str) -> Column:
    return column_named(joined_name(join.alias, name))


def _their_keys(join: Join) -> list[str]:
    return [joined_name(join.alias, sql.internal(f"key{i}")) for i in range(len(join.equalities))]


def _key_text(own_keys: Sequence[Column]) -> Column | str:
    return F.concat_ws(", ", *(key.cast("string") for key in own_keys)) if own_keys else ""


def _by_key(other: DataFrame, join: Join, compiler: Compiler) -> DataFrame:
    """Returns one row for each key, with the number of its rows and the columns of one of them, or with all its rows if
    the rest of the condition has to be tested.

    Rows of a key are numbered, not aggregated: an aggregate with text columns would make Spark sort twice.
    """
    if join.rest:
        wanted = dict.fromkeys([*join.columns, *(c.column for c in _rest_columns(join))])
        row = F.struct(*map(column_named, wanted), F.lit(True).alias(_THERE))
        keys = _their_key_columns(join, compiler)
        return other.groupBy(*keys).agg(F.collect_list(row).alias(joined_name(join.alias, _ROWS)))
    key = ", ".join(map(sql.name, _their_keys(join)))
    within = f"OVER (PARTITION BY {key} ORDER BY {key} ROWS BETWEEN UNBOUNDED PRECEDING AND "
    counts = {_COUNT: f"count(1) {within} UNBOUNDED FOLLOWING)", _NUMBER: f"row_number() {within} CURRENT ROW)"}
    named = {joined_name(join.alias, name): F.expr(value) for name, value in counts.items()}
    return _keys_and_columns(other, join, compiler).withColumns(named).filter(_helper(join, _NUMBER) == 1)


def _keys_and_columns(other: DataFrame, join: Join, compiler: Compiler) -> DataFrame:
    columns = [column_named(name).alias(joined_name(join.alias, name)) for name in join.columns]
    return other.select(*_their_key_columns(join, compiler), *columns)


def _their_key_columns(join: Join, compiler: Compiler) -> list[Column]:
    theirs = replace(compiler, read=_column_of_other)
    named = zip(_their_keys(join), join.equalities, strict=True)
    return [theirs.value(eq.theirs, eq.type).alias(name) for name, eq in named]


def _column_of_other(column: Resolved) -> Column:
    return column_named(column.column)


def _rest_columns(join: Join) -> list[Resolved]:
    return [column for part in join.rest for column in columns_read(part) if column.table == join.alias]


def _join(frame: DataFrame, other: DataFrame, own_keys: Sequence[Column], their_keys: Sequence[str]) -> DataFrame:
    if not own_keys:
        return frame.crossJoin(F.broadcast(other))
    pairs = [own == column_named(theirs) for own, theirs in zip(own_keys, their_keys, strict=True)]
    return frame.join(other, reduce(lambda a, b: a & b, pairs), "left")


def _test_rest(joined: DataFrame, join: Join, counts: Column | None, compiler: Compiler) -> DataFrame:
    """Keeps the rows of each group that meet the rest of the condition."""

    def passes(row: Column) -> Column:
        def read(column: Resolved) -> Column:
            return row.getField(column.column) if column.table == join.alias else compiler.read(column)

        tested = replace(compiler, read=read)
        return reduce(lambda a, b: a & b, (F.coalesce(tested.column(part), F.lit(False)) for part in join.rest))

    rows = _helper(join, _ROWS)
    passing = F.filter(rows, passes)
    matches = joined.withColumn(joined_name(join.alias, _ROWS), passing if counts is None else F.when(counts, passing))
    one = {joined_name(join.alias, name): F.get(rows, F.lit(0)).getField(name) for name in join.columns}
    return matches.withColumns({joined_name(join.alias, _COUNT): F.size(rows), **one})
