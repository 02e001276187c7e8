"""The contract of an operation, and the registry of all of them.

An operation is a frozen entity read from YAML. `bind` checks it against the working schema and returns a step: plain
data with typed expressions, which a plan lists, an explainer prints and `Step.apply` turns into Spark columns.
Nothing here runs a Spark action.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from pydantic import AliasChoices, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from tallybook.errors import PROBLEM_TYPES, Problem, ProblemError
from tallybook.expressions.check import Checker, Typed, cast_to, condition_hint
from tallybook.expressions.parse import parse
from tallybook.expressions.reads import tables_read
from tallybook.expressions.scope import Scope
from tallybook.expressions.selectors import parse_selector
from tallybook.model.base import IDENTIFIER_PATTERN, Entity, Expression, Id, NonEmpty, Text
from tallybook.model.columns import BOOLEAN, NULL, UNKNOWN, UPDATED_AT, ColumnType, folded, why_reserved
from tallybook.model.dataset import Dataset, DatasetRef
from tallybook.operations.schema import LookupTable, SourceTable, WorkingSchema
from tallybook.source import Place, SourceText, path_text

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

    from tallybook.expressions.compile import Compiler
    from tallybook.rows.ids import RowIds

OPERATIONS: dict[str, type[Operation]] = {}
"""Every operation under its type name."""


MAX_SEQ = 2**31 - 1


def _seq(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_SEQ:
        raise PydanticCustomError("InvalidSeq", f"seq must be a whole number from 1 to {MAX_SEQ}")
    return int(value)


class Operation(Entity):
    """What all operations share. Subclasses fix `type` and `arguments`."""

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
        if type is not None:
            if type in OPERATIONS:
                raise ValueError(f"operation {type} is declared twice")
            OPERATIONS[type] = cls

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The datasets it names."""
        return ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """The texts in which named selectors may stand."""
        return () if self.selector is None else (self.selector,)

    @abstractmethod
    def bind(self, binding: Binding) -> Step | None:
        """The checked step, or None when problems were reported."""


class Catalog(Protocol):
    """The datasets an operation may name."""

    def find(self, ref: DatasetRef) -> Dataset | Problem | None:
        """The dataset version meant, or the problem that says why there is none; None when that was said elsewhere."""
        ...

    def is_open(self, dataset_id: str) -> bool:
        """Whether the dataset may have columns nobody knows yet."""
        ...


@dataclass
class Binding:
    """What an operation is checked against, and where its problems go."""

    operation: Operation
    before: WorkingSchema
    catalog: Catalog
    selectors: Mapping[str, SourceText]
    locate: Callable[[tuple[str | int, ...]], Place | None] = lambda _path: None
    text_at: Callable[[tuple[str | int, ...]], SourceText | None] = lambda _path: None
    path_of: Callable[[tuple[str | int, ...]], tuple[str | int, ...]] = lambda path: path
    """The path inside the document for one inside the operation."""
    problems: list[Problem] = field(default_factory=list)
    after: WorkingSchema | None = None
    """The schema to go on with where no step could be made; by default the one before."""

    def report(self, type: str, message: str, *path: str | int, hint: str | None = None) -> None:
        """Notes a problem at a path inside the operation."""
        self.note(Problem(type, message, hint, self.locate(path)), *path)

    def note(self, problem: Problem, *path: str | int) -> None:
        """Notes a problem found elsewhere, giving it the operation and path; one in a named selector has its own."""
        place, inside = self.locate(path), path_text(self.path_of(path))
        if problem.path is not None:
            inside = path_text((*self.path_of(())[:-2], problem.path))
        facts = problem.within(place=place, seq=self.operation.seq, operation=self.operation.name)
        self.problems.append(replace(facts, path=inside))

    def source_text(self, text: str, path: tuple[str | int, ...]) -> SourceText:
        """The text of an expression with its places."""
        written = self.text_at(path)
        return written if written is not None and written.text == text else SourceText(text, self.locate(path))

    def selector(self) -> Typed | None:
        """The operation's own selector; None without one, or when it is wrong."""
        return self.condition(self.operation.selector, self.before.scope(), "selector")

    def condition(self, text: str | None, scope: Scope, *path: str | int, named: bool = True) -> Typed | None:
        """A checked condition, boolean even if it is a bare NULL; `named` says whether `{{NAME}}` may be used in it."""
        if text is None and self.text_at(path) is None:
            return None
        if text is None or not text.strip():
            self.report("InvalidSelector", "the selector is blank", *path, hint="leave it out to take all rows")
            return None
        source = self.source_text(text, path)
        read = (lambda: parse_selector(source, self.selectors)) if named else (lambda: parse(source))
        typed = self._typed(read, Checker(scope), path)
        if typed is None:
            return None
        if typed.type not in (BOOLEAN, NULL):
            message = f"the condition is {typed.type}, not true or false"
            place = source.at(0, len(source.text))
            self.note(Problem("InvalidSelector", message, condition_hint(typed), place), *path)
            return None
        return cast_to(typed, BOOLEAN)

    def expression(
        self, text: str, scope: Scope, *path: str | int, grouped: frozenset[str] | None = None
    ) -> Typed | None:
        """A checked value; inside an aggregation `grouped` names the grouped columns."""
        source = self.source_text(text, path)
        return self._typed(lambda: parse(source), Checker(scope, grouped), path)

    def _typed(self, read: Callable[[], Any], checker: Checker, path: tuple[str | int, ...]) -> Typed | None:
        try:
            typed = checker.check(read())
        except ProblemError as error:
            for problem in error.problems:
                self.note(problem, *path)
            return None
        for problem in checker.problems:
            self.note(problem, *path)
        return typed

    def dataset(self, ref: DatasetRef, *path: str | int) -> SourceTable | None:
        """The main table of a dataset the operation names."""
        found = self.catalog.find(ref)
        if isinstance(found, Problem):
            key = "dataset_version" if found.type == "DatasetVersionNotFound" else "dataset_id"
            self.note(found, *path, key)
        if not isinstance(found, Dataset):
            return None
        return SourceTable(found, found.main_table, self.catalog.is_open(found.id))


@dataclass(frozen=True)
class Applying:
    """What a step may use to build its part of the plan."""

    compiler: Compiler
    timestamp: datetime
    ids: RowIds
    load: Callable[[SourceTable], DataFrame]
    input: SourceTable
    all_active: bool = False
    """No row can be deleted yet, so nobody needs to look."""
    all_stamped: bool = False
    """Every row has the run's timestamp in `_updated_at` already, so setting it again changes nothing."""

    def chosen(self, selector: Typed | None) -> Column | None:
        """Which rows a selector chooses, for filters and WHEN; None when it is all of them."""
        from tallybook.rows.system import selected

        condition = None if selector is None else self.compiler.column(selector)
        return condition if self.all_active else selected(condition)

    def where(self, chosen: Column | None, new: Column, old: Column) -> Column:
        """The new value on chosen rows."""
        from pyspark.sql import functions as F

        return new if chosen is None else F.when(chosen, new).otherwise(old)

    def stamp(self, chosen: Column | None) -> dict[str, Column]:
        """The change of `_updated_at` that goes with a change of chosen rows."""
        from pyspark.sql import functions as F

        from tallybook.expressions.functions.dates import moment

        if self.all_stamped:
            return {}
        return {UPDATED_AT: self.where(chosen, moment(self.timestamp), F.col(UPDATED_AT))}


@dataclass(frozen=True)
class Step:
    """A checked operation: data for the plan."""

    type: ClassVar[str]

    seq: int
    name: str
    selector: Typed | None
    before: WorkingSchema
    after: WorkingSchema

    @property
    def expressions(self) -> dict[str, Typed]:
        """Everything it evaluates, by the path of its text inside the operation."""
        return {} if self.selector is None else {"selector": self.selector}

    @property
    def lookups(self) -> tuple[LookupTable, ...]:
        """The lookups its expressions read."""
        read = {column for typed in self.expressions.values() for column in tables_read(typed)}
        return tuple(lookup for alias, lookup in self.before.lookups.items() if alias in read)

    @property
    def sources(self) -> tuple[SourceTable, ...]:
        """The tables it loads."""
        return tuple(lookup.source for lookup in self.lookups)

    @property
    def alone(self) -> dict[str, Step]:
        """The step reduced to one of its expressions each, by path: whichever fails is the one to blame."""
        return dict.fromkeys(self.expressions, self)

    def column_at(self, path: str) -> str | None:
        """The column an expression fills."""
        return None

    def own(self, problem: Problem) -> Problem:
        """A problem told as this operation's; those of an append have a code."""
        code = PROBLEM_TYPES[problem.type].append_code if self.type == "append" else None
        return problem.within(seq=self.seq, operation=self.name, code=code)

    def join_condition(self, alias: str) -> Typed | None:
        """The condition of one of its joins, if it has that alias."""
        return None

    @abstractmethod
    def apply(self, frame: DataFrame, applying: Applying) -> DataFrame:
        """The working dataset after it."""


def type_of_new_column(binding: Binding, column: str, value: Typed | None, *path: str | int) -> ColumnType:
    """The type of a column that a value makes; NULL alone has none to give."""
    if value is None:
        return UNKNOWN
    if value.type != NULL:
        return value.type
    binding.report(
        "TypeMismatch",
        f"NULL alone does not say what type the new column '{column}' has",
        *path,
        "expression",
        hint="say the type: TO_STRING(NULL), TO_DECIMAL(NULL), …",
    )
    return UNKNOWN


def check_column_name(binding: Binding, name: str, *path: str | int, settable: Collection[str] = ()) -> bool:
    """Reports a target column that is not an identifier, is a system column other than the `settable` ones, or differs
    from another column by case only."""
    if not re.fullmatch(IDENTIFIER_PATTERN, name):
        binding.report(
            "InvalidColumnName",
            f"'{name}' is not a column name",
            *path,
            hint="letters, digits and _, not beginning with a digit",
        )
        return False
    if name not in settable and (reason := why_reserved(name)):
        hint = f"only {', '.join(settable)} can; choose another name" if settable else "choose another name"
        binding.report("SystemColumn", f"{reason} and cannot be set", *path, hint=hint)
        return False
    known = binding.before.columns
    twin = None if name in known else next((other for other in known if folded(other) == folded(name)), None)
    if twin is not None:
        binding.report(
            "DuplicateColumn", f"'{name}' differs from column '{twin}' by case only", *path, hint=f"write '{twin}'"
        )
        return False
    return True


def why_not_assignable(value: ColumnType, target: ColumnType) -> tuple[str, str | None] | None:
    """The reason (and hint) a value cannot go into an existing column; None when it can."""
    if value in (NULL, target) or (target.kind == "decimal" and value.is_number):
        return None
    if (value.kind, target.kind) == ("date", "timestamp"):
        return None
    hint = {
        ("decimal", "integer"): "make it whole with ROUND(…)",
        ("string", "integer"): "convert it with TO_INTEGER(…)",
        ("string", "decimal"): "convert it with TO_DECIMAL(…)",
        ("string", "date"): "convert it with TO_DATE(…)",
        ("timestamp", "date"): "take the day with TO_DATE(…)",
    }.get((value.kind, target.kind), "convert it with TO_STRING(…)" if target.kind == "string" else None)
    return f"is {target}, but the expression is {value}", hint
