"""The contract of operations and of the steps they become.

An operation is a frozen entity read from YAML. `bind` checks it against the working schema and returns a step: plain
data with typed expressions, which a plan lists, an explainer prints, and `change`, `add`, `rows_to_publish` and
`rows_to_test` turn into Spark columns. A step says what flows through it, so nobody asks for its class; `flow` answers
questions about several of them.
Nothing here runs a Spark action.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from pydantic import AliasChoices, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from tallybook.errors import PROBLEM_TYPES, Problem
from tallybook.expressions.check import Typed, TypedOver, columns_read, overs_of, tables_read
from tallybook.expressions.evaluate import Evaluator
from tallybook.model.base import Entity, Expression, Id, NonEmpty, Text
from tallybook.model.columns import DELETED, UPDATED_AT
from tallybook.model.dataset import DatasetRef
from tallybook.operations.assertion import Assertion
from tallybook.operations.binding import Binding
from tallybook.operations.publication import Publication
from tallybook.operations.registry import register
from tallybook.operations.schema import LookupTable, SourceTable, WorkingSchema
from tallybook.operations.sources import JoinedTable, SourceRows
from tallybook.rows.segments import Constant, Segment

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from tallybook.expressions.compile import Compiler
    from tallybook.operations.grouping import BoundGrouping
    from tallybook.operations.totals import Totals
    from tallybook.rows.ids import RowIds
    from tallybook.rows.join_condition import Join
    from tallybook.rows.joins import Fetch, KeyedTables
    from tallybook.rows.working import Rows

MAX_SEQ = 2**31 - 1


def _seq(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SEQ:
        raise PydanticCustomError("InvalidSeq", f"seq must be a whole number from 1 to {MAX_SEQ}")
    return int(value)


class Operation(Entity):
    """What all operations share. Subclasses fix `type` and `arguments`."""

    reference: ClassVar[str] = ""
    """The operation's section of the reference page, in Markdown: what it does, an example, `{arguments}` where the
    table of its arguments goes, and its rules. Without it the section is the class docstring and the table."""

    id: Id | None = None
    seq: Annotated[int, BeforeValidator(_seq, json_schema_input_type=int)] = Field(
        validation_alias=AliasChoices("seq", "order"), description="Execution order; positive, unique, gaps allowed."
    )
    name: NonEmpty
    description: Text | None = None
    type: str
    selector: Expression | None = Field(None, description="Which rows; without it all that are not deleted.")

    def __init_subclass__(cls, *, type: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)

    @classmethod
    def __pydantic_init_subclass__(cls, *, type: str | None = None, **kwargs: Any) -> None:
        """Registers an operation once its fields are known."""
        super().__pydantic_init_subclass__(**kwargs)
        if type is not None:
            register(type, cls)

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets it names."""
        return ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """The texts in which named selectors may be used."""
        return () if self.selector is None else (self.selector,)

    @property
    def registers(self) -> str | None:
        """The id of the dataset it registers."""
        return None

    @abstractmethod
    def bind(self, binding: Binding) -> Step | None:
        """The checked step, or None when problems were reported."""


class KnownTables(Protocol):
    """What is known of tables before Spark reads them."""

    def is_small(self, source: SourceTable) -> bool:
        """True if one task can process all its rows, so that grouping them needs no shuffle."""
        ...

    def has_unique_keys(self, source: SourceTable, columns: Sequence[str]) -> bool:
        """True if it is known that no two of its rows in a run have the same values in these columns. Rows with a NULL
        among them may repeat."""
        ...


IsUnique = Callable[[SourceRows, "Join"], bool]
"""True if it is known that no two rows of a source have the same keys of a join."""


@dataclass(frozen=True)
class SharedTable:
    """A table that several steps join in the same way: a lookup, or a dataset that several updates join. It is joined
    once, and again only after a change of its keys."""

    keys: frozenset[str]
    """The working columns that decide which row matches."""
    columns: tuple[str, ...]
    """The columns that any of the steps reads."""


@dataclass(frozen=True)
class BuildContext:
    """What a step may use to build its part of the Spark plan."""

    compiler: Compiler
    evaluator: Evaluator
    """Computes what is the same for every row of a segment."""
    ids: RowIds
    load: Callable[[SourceTable], DataFrame]
    is_small: Callable[[SourceTable], bool]
    """True if one task can process all rows of a table, so that grouping them needs no shuffle."""
    input: SourceTable
    keyed: KeyedTables
    """The joined tables by key."""
    kept_tables: Collection[tuple[int, str]] = ()
    """The joined tables whose rows by key are computed once, each by the seq of an operation and an alias."""
    shared: Mapping[str, SharedTable] = field(default_factory=dict)
    """The tables that are joined once for several steps, by alias."""
    names_keys: bool = False
    """True if a join that is not unique shall fail with the key."""
    totals: tuple[Totals, ...] = ()
    """The aggregates over groups that a step has."""
    live: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """The columns that are needed after each operation, by its seq."""
    summaries: dict[int, DataFrame] = field(default_factory=dict)
    """The groups of operations that are computed in one pass, by seq."""


@dataclass(frozen=True)
class Step:
    """A checked operation: data for the plan, and what flows through it.

    An operation declares `expressions`, `writes`, `adds` and `keys` beside its code, and gives `joins`,
    `appends`, `publishes` and `tests` when it makes the step; the defaults say "nothing". The other questions are
    answered here, from these declarations alone.
    """

    type: ClassVar[str]

    seq: int
    name: str
    selector: Typed | None
    before: WorkingSchema
    after: WorkingSchema
    joins: tuple[JoinedTable, ...] = field(default=(), kw_only=True)
    """The tables that it joins itself, beside the lookups of the input dataset."""
    appends: SourceRows | None = field(default=None, kw_only=True)
    """The rows of a source that become working rows. All expressions of the step then read that source."""
    publishes: Publication | None = field(default=None, kw_only=True)
    """What it writes outside the working dataset. `rows_to_publish` builds the rows."""
    tests: Assertion | None = field(default=None, kw_only=True)
    """The condition that it tests. `rows_to_test` builds the rows or groups."""

    @property
    def expressions(self) -> Mapping[str, Typed]:
        """Everything it evaluates, by the path of its text inside the operation."""
        return {**self.source_expressions, **({} if self.selector is None else {"selector": self.selector})}

    @property
    def settings(self) -> Mapping[str, str]:
        """What it is told beside expressions, by path, as people read it."""
        return {
            f"{rows.grouping_path}.group_by": ", ".join(key.column for key in rows.grouping.keys)
            for rows in self.source_rows
            if rows.grouping is not None
        }

    @property
    def writes(self) -> Mapping[str, str | None]:
        """The columns that it sets on rows that exist, each with the path of the expression that gives the value.

        None means that the value is a constant and the selector alone decides which rows get it.
        """
        return {}

    @property
    def adds(self) -> Mapping[str, str | None] | None:
        """The columns it fills on the rows that it adds, like `writes`; None if it adds no rows.

        A column without an expression is taken over from the rows it reads. The other business columns are NULL.
        """
        return None

    @property
    def keys(self) -> frozenset[str]:
        """The columns that it reads outside expressions: the keys of lookups and of groups."""
        return frozenset(own for lookup in self.lookups for own, _theirs in lookup.pairs)

    @property
    def per_expression(self) -> dict[str, Step]:
        """The step reduced to one of its expressions each, by path. The one that fails has the failing expression."""
        return dict.fromkeys(self.expressions, self) | self.source_checks

    @property
    def source_checks(self) -> dict[str, Step]:
        """Steps that evaluate one expression of a source each, by path."""
        from tallybook.operations.source_check import SourceCheck

        return {
            path: SourceCheck(self.seq, self.name, None, self.before, self.before, appends=reduced)
            for rows in self.source_rows
            for path, reduced in rows.per_expression.items()
        }

    def preparations(self, build: BuildContext, known: KnownTables, fetch: Fetch) -> Sequence[Callable[[], None]]:
        """What prepares the joins to its unique tables, one function for each; see `lookups.preparations`."""
        from tallybook.operations.lookups import preparations

        return preparations(self, build, known, fetch)

    def droppable(self, is_unique: IsUnique) -> frozenset[str]:
        """The aliases of its tables that need not be joined if nothing reads them; see `lookups.droppable_aliases`."""
        from tallybook.operations.lookups import droppable_aliases

        return droppable_aliases(self, is_unique)

    def totals(self, rows: Rows, build: BuildContext) -> tuple[Totals, ...]:
        """The aggregates over groups that it has. `rows` are those that it may select, of all segments."""
        raise NotImplementedError(f"{self.type} has no totals")

    def change(self, rows: Rows, build: BuildContext) -> Rows:
        """The rows of a segment after it. It is called only for segments with rows that it may select."""
        raise NotImplementedError(f"{self.type} changes no rows")

    def added_segment(self, input: SourceTable, evaluator: Evaluator) -> Segment:
        """What is known of the rows that it adds."""
        raise NotImplementedError(f"{self.type} adds no rows")

    def add(self, rows: Rows | None, build: BuildContext) -> Rows:
        """The rows that it adds. `rows` are those that it reads; None if it appends rows of a table."""
        raise NotImplementedError(f"{self.type} adds no rows")

    def rows_to_publish(self, rows: Rows, build: BuildContext) -> DataFrame:
        """The rows and columns of `publishes`."""
        raise NotImplementedError(f"{self.type} publishes nothing")

    def rows_to_test(self, rows: Rows, build: BuildContext) -> DataFrame:
        """One row for each row or group of `tests`, with `PASSED` and the columns of what is shown."""
        raise NotImplementedError(f"{self.type} tests nothing")

    def verdict(self, rows: Rows, build: BuildContext) -> Column:
        """Of a test of rows that joins nothing: whether a row passes, NULL for a row that it does not select."""
        raise NotImplementedError(f"{self.type} tests no rows")

    @property
    def include_deleted(self) -> bool:
        """True if it reads deleted rows, too."""
        return self.publishes is not None and self.publishes.include_deleted

    def selects(self, segment: Segment, evaluator: Evaluator) -> bool | None:
        """True if it selects every row of a segment, False if none, None if that depends on the row."""
        unmatched = () if self.selector is None else self.unmatched(segment, evaluator)
        return segment.selects(self.selector, evaluator, include_deleted=self.include_deleted, unmatched=unmatched)

    def unmatched(self, segment: Segment, evaluator: Evaluator) -> frozenset[str]:
        """The aliases of tables that match no row of a segment: a key is NULL in all its rows, or the condition of the
        join is never true."""
        if not evaluator.knows_values:
            return frozenset()
        found = {lookup.alias for lookup in self.lookups if any(segment.is_null(own) for own, _theirs in lookup.pairs)}
        for table in self.unique_joins:
            if segment.meets(table.on, evaluator, found) is False:
                found.add(table.alias)
        return frozenset(found)

    def segment_after(self, segment: Segment, evaluator: Evaluator) -> Segment:
        """What is known of the rows of a segment after it."""
        selects = self.selects(segment, evaluator) if self.writes else False
        after = segment.with_nulls(self.after.columns)
        if selects is False:
            return after
        new = {column: self._written(column, segment, evaluator) for column in self.writes}
        constant = {
            column: value
            for column, value in new.items()
            if value is not None and (selects or value == after.constants.get(column))
        }
        varying = {column: self.after.columns[column] for column in new if column not in constant}
        return after.with_constants(constant).with_varying(varying)

    def _written(self, column: str, segment: Segment, evaluator: Evaluator) -> Constant | None:
        """The value that it writes, if that is the same for every row of the segment."""
        path, type = self.writes[column], self.after.columns[column]
        if path is None:
            return {
                DELETED: Constant(type, value=True),
                UPDATED_AT: Constant(type, evaluator.timestamp),
            }.get(column)
        known = segment.known(self.expressions[path], evaluator, self.unmatched(segment, evaluator))
        if known is None or (known.value is not None and known.type != type):
            return None
        return Constant(type, known.value)

    @property
    def takes_rows(self) -> bool:
        """True if it uses the rows and leaves them as they are: it publishes or tests them."""
        return self.publishes is not None or self.tests is not None

    @cached_property
    def overs(self) -> tuple[TypedOver, ...]:
        """The aggregates over groups of the rows that it selects. They see the rows before it changes any of them."""
        return tuple(over for typed in self.expressions.values() for over in overs_of(typed))

    @property
    def deletes_rows(self) -> bool:
        """True if it may mark rows as deleted."""
        return DELETED in self.writes

    @property
    def adds_rows(self) -> bool:
        return self.adds is not None

    @property
    def forks(self) -> bool:
        """True if it reads the working rows twice: as they are, and to make other rows of them."""
        return self.adds_rows and self.appends is None

    @property
    def shuffles(self) -> bool:
        """True if Spark has to move rows between tasks to make the rows that it adds."""
        return self.forks

    @property
    def summarises(self) -> BoundGrouping | None:
        """The groups of the rows that it selects, if their summaries are the rows that it adds."""
        return None

    @cached_property
    def reads(self) -> frozenset[str]:
        """The working columns that its expressions read, and its keys."""
        return self._bare_columns(self.row_expressions.values())

    @property
    def columns_read(self) -> frozenset[str]:
        """The working columns of the rows that it selects which it reads or publishes."""
        published = frozenset[str]() if self.publishes is None else self.publishes.needed_columns
        return self.reads | published | (set() if self.include_deleted else {DELETED})

    def needs(self, wanted: Collection[str], *, all_active: bool = False) -> frozenset[str]:
        """The working columns needed before it to have the `wanted` ones after it, and what it publishes.

        `all_active` says that no row is deleted before it. Only then does an operation without a selector set its
        columns on every row, so that their earlier values are not needed; and only then can it do without `_deleted`.
        """
        needed = set(wanted)
        if self.appends is None:
            unwanted = {path for path, column in self.column_by_path.items() if column not in needed}
            used = [typed for path, typed in self.row_expressions.items() if path not in unwanted]
            needed -= self.overwrites if all_active else frozenset()
            needed |= self._bare_columns(used)
            needed |= set() if all_active or self.include_deleted else {DELETED}
        if self.publishes is not None:
            needed |= self.publishes.needed_columns
        return frozenset(needed & self.before.columns.keys())

    def narrowed(self, wanted: Collection[str], droppable: Collection[str]) -> Step | None:
        """The step reduced to what gives the `wanted` columns their values; None if it sets none of them.

        It is asked of steps that change rows and have no aggregates over groups. `droppable` are the aliases of tables
        that need not be joined if nothing reads them. A step that joins any other table stays whole, because a second
        match must fail the run.
        """
        is_needed = not self.joined_aliases <= set(droppable) or not self.writes.keys().isdisjoint(wanted)
        return self if is_needed else None

    @property
    def overwrites(self) -> frozenset[str]:
        """The columns it sets on every active row."""
        return frozenset(column for column, path in self.writes.items() if path is not None and self.selector is None)

    def _bare_columns(self, expressions: Iterable[Typed]) -> frozenset[str]:
        """The keys, and what expressions read without a table: columns of the working rows."""
        read = (column for typed in expressions for column in columns_read(typed))
        return self.keys | {column.column for column in read if column.table is None}

    @cached_property
    def column_by_path(self) -> dict[str, str]:
        """The column that each expression gives the value of."""
        return {path: column for column, path in {**self.writes, **(self.adds or {})}.items() if path is not None}

    @cached_property
    def lookups(self) -> tuple[LookupTable, ...]:
        """The lookups of the input dataset that its expressions read."""
        read = {table for typed in self.row_expressions.values() for table in tables_read(typed)}
        return tuple(lookup for alias, lookup in self.before.lookups.items() if alias in read)

    @property
    def joined(self) -> tuple[LookupTable | JoinedTable, ...]:
        """The tables whose columns its expressions can read by an alias."""
        return (*self.lookups, *self.joins)

    @cached_property
    def joined_aliases(self) -> frozenset[str]:
        """The aliases of `joined`."""
        return frozenset(table.alias for table in self.joined)

    @property
    def unique_joins(self) -> tuple[JoinedTable, ...]:
        """Those of its own joins that give each working row one row at most."""
        return self.joins

    @property
    def unique_tables(self) -> tuple[LookupTable | JoinedTable, ...]:
        """The tables that give each working row one row at most."""
        return (*self.lookups, *self.unique_joins)

    @property
    def sources(self) -> tuple[SourceTable, ...]:
        """The tables it reads beside the working rows."""
        return (*(table.source for table in self.joined), *(() if self.appends is None else (self.appends.table,)))

    @property
    def source_rows(self) -> tuple[SourceRows, ...]:
        """The rows of sources that it joins or appends."""
        return (*(join.rows for join in self.joins), *(() if self.appends is None else (self.appends,)))

    @property
    def source_expressions(self) -> Mapping[str, Typed]:
        """Those of its expressions that read the rows of a source only, before the source meets the working rows."""
        return {path: typed for rows in self.source_rows for path, typed in rows.expressions.items()}

    @cached_property
    def row_expressions(self) -> Mapping[str, Typed]:
        """Those of its expressions that read the working rows and what is joined to them."""
        of_sources = self.source_expressions
        return {path: typed for path, typed in self.expressions.items() if path not in of_sources}

    @property
    def source_columns(self) -> tuple[tuple[SourceTable, frozenset[str]], ...]:
        """The tables it reads, as in `sources`, each with the columns it reads."""
        read = [
            (lookup.source, frozenset([*self.columns_of(lookup.alias), *(theirs for _own, theirs in lookup.pairs)]))
            for lookup in self.lookups
        ]
        read += [(join.source, join.rows.table_columns(self.columns_of(join.alias))) for join in self.joins]
        if self.appends is not None:
            read.append((self.appends.table, self.appends.table_columns(self.adds or ())))
        return tuple(read)

    def columns_of(self, alias: str, *, but_in: Collection[Typed] = ()) -> tuple[str, ...]:
        """The columns of a joined table that its expressions read, in order, leaving out some of the expressions."""
        expressions = (typed for typed in self.row_expressions.values() if not any(typed is one for one in but_in))
        read = (column for typed in expressions for column in columns_read(typed))
        return tuple(dict.fromkeys(column.column for column in read if column.table == alias))

    def join_condition(self, alias: str) -> Typed | None:
        """The condition of one of its own joins."""
        return next((join.on for join in self.joins if join.alias == alias), None)

    def attribute(self, problem: Problem) -> Problem:
        """The problem as one of this operation. Problems of rows that are appended have a code."""
        code = PROBLEM_TYPES[problem.type].append_code if self.appends is not None else None
        return problem.within(seq=self.seq, operation=self.name, code=code)
