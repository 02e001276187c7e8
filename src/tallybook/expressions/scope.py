"""Which tables, columns and aliases an expression can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tallybook.errors import Problem, did_you_mean
from tallybook.expressions.registry import find_function
from tallybook.expressions.tree import ColumnName
from tallybook.model.columns import ALIASES, INTERNAL, UNKNOWN, ColumnType

ANY_TABLE = ""
"""The name of a placeholder table that stands for any table."""
PARAMETERS = "params"
"""The name that the parameters of a project are read by, as `params.threshold`."""


@dataclass(frozen=True)
class ScopeTable:
    """A table that expressions can read: the working dataset, a lookup, a join alias or an append source.

    `hidden` columns can be read as `table.column` only: system columns of joined tables, which would otherwise
    make every bare `_labels` ambiguous. `joined` tells them from columns of the working rows themselves.
    """

    name: str
    columns: Mapping[str, ColumnType]
    hidden: Mapping[str, ColumnType] = field(default_factory=dict)
    joined: bool = False
    open: bool = False
    """Columns may be missing because an earlier operation could not be read: unknown names are not reported."""
    constant: bool = False
    """True for the parameters of the project, which have one value for all rows."""
    missing: Problem | None = None
    """Why the table does not exist; reported where an expression reads it."""

    def type_of(self, column: str) -> ColumnType | None:
        name = ALIASES.get(column, column)
        type = self.columns.get(name) or self.hidden.get(name)
        return UNKNOWN if type is None and self.open else type


@dataclass(frozen=True)
class Resolved:
    """A column an expression reads: `table` is None for the working rows themselves."""

    table: str | None
    column: str
    type: ColumnType

    @property
    def physical(self) -> str:
        """The name of the column in the frame the expression is evaluated on."""
        return self.column if self.table is None else joined_name(self.table, self.column)


def joined_name(alias: str, column: str) -> str:
    """The name a column of a joined table has next to the working columns; no column of a user begins like it."""
    return f"{INTERNAL}{alias}.{column}"


@dataclass(frozen=True)
class Scope:
    """The tables that an expression can read, the working dataset first."""

    tables: tuple[ScopeTable, ...]
    unreadable: tuple[ScopeTable, ...] = ()
    """Tables that exist where the expression is written but cannot be read in it; their `missing` says why."""

    @classmethod
    def of_anything(cls) -> Scope:
        """Returns a scope in which every table and column exists, with unknown types."""
        return cls((ScopeTable(ANY_TABLE, {}, open=True),))

    def with_table(self, table: ScopeTable) -> Scope:
        return replace(self, tables=(*self.tables, table))

    @property
    def has_parameters(self) -> bool:
        """True if `params.x` is a parameter here, and not a column of a table that is called params."""
        return any(table.name == PARAMETERS and table.constant for table in self.tables)

    def with_parameters(self, types: Mapping[str, ColumnType]) -> Scope:
        """Adds the parameters of the project, if it has any. They are read with their full name."""
        if not types or any(table.name == PARAMETERS for table in self.tables):
            return self
        return self.with_table(ScopeTable(PARAMETERS, {}, types, joined=True, constant=True))

    def with_open_table(self, name: str) -> Scope:
        """Adds a table that could not be found, so that no problem is reported for its columns."""
        return self.with_table(ScopeTable(name, {}, joined=True, open=True))

    def resolve(self, name: ColumnName) -> Resolved | Problem:
        """Returns the column that a name refers to, or the problem if there is none: usually a ColumnNotFound."""
        if len(name.parts) == 1:
            return self._bare(name, name.parts[0])
        if len(name.parts) == 2:
            return self._qualified(name, *name.parts)
        return _not_found(name, f"'{'.'.join(name.parts)}' has too many parts", "write table.column")

    def _bare(self, name: ColumnName, column: str) -> Resolved | Problem:
        lookup = ALIASES.get(column, column)
        holders = [table for table in self.tables if lookup in table.columns]
        if len(holders) == 1:
            return _found(holders[0], lookup)
        if holders:
            choices = " or ".join(f"{table.name}.{column}" for table in holders)
            return _not_found(name, f"column '{column}' exists in several tables", f"write {choices}")
        if any(table.open for table in self.tables):
            return Resolved(None, lookup, UNKNOWN)
        outside = next((table.missing for table in self.unreadable if lookup in table.columns), None)
        if outside is not None:
            return _not_found(name, f"column '{column}' cannot be read here: {outside.message}", outside.hint)
        missing = next((table.missing for table in self.tables if table.missing), None)
        if missing is not None:
            return replace(missing, place=name.span.place)
        if any(table.constant and column in table.hidden for table in self.tables):
            hint = f"write {PARAMETERS}.{column} to read the parameter"
            return _not_found(name, f"there is no column '{column}'", hint)
        function = find_function(column.upper())
        if function is not None and function.shapes(0) is not None and not function.operator:
            return _not_found(name, f"there is no column '{column}'", f"for the function, write {function.name}()")
        hint = did_you_mean(column, (other for table in self.tables for other in table.columns)) or ""
        if not hint.startswith("did you mean"):
            hint = "; ".join(filter(None, [hint, f'for text, use quotes: "{column}"']))
        return _not_found(name, f"there is no column '{column}'", hint)

    def _qualified(self, name: ColumnName, table_name: str, column: str) -> Resolved | Problem:
        table = next((table for table in self.tables if table.name == table_name), None)
        if table is None and any(other.name == ANY_TABLE for other in self.tables):
            return Resolved(None, ALIASES.get(column, column), UNKNOWN)
        outside = next((other.missing for other in self.unreadable if other.name == table_name), None)
        if table is None and outside is not None:
            return _not_found(name, f"'{table_name}.{column}' cannot be read here: {outside.message}", outside.hint)
        if table is None:
            hint = did_you_mean(table_name, (table.name for table in self.tables))
            if table_name == PARAMETERS:
                hint = "parameters can be read only in a project that declares them under `parameters`"
            return _not_found(name, f"there is no table or alias '{table_name}' here", hint)
        if table.missing is not None:
            return replace(table.missing, place=name.span.place)
        if table.type_of(column) is None:
            if table.constant:
                hint = did_you_mean(column, table.hidden)
                return _not_found(name, f"the project has no parameter '{column}'", hint)
            hint = did_you_mean(column, table.columns)
            return _not_found(name, f"'{table_name}' has no column '{column}'", hint)
        return _found(table, ALIASES.get(column, column))


def _found(table: ScopeTable, column: str) -> Resolved:
    type = table.type_of(column)
    assert type is not None
    return Resolved(table.name if table.joined else None, column, type)


def _not_found(name: ColumnName, message: str, hint: str | None) -> Problem:
    return Problem("ColumnNotFound", message, hint, name.span.place)
