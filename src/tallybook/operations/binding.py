"""Helps an operation to check itself: its scope, its problems, and the rules for target columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from tallybook.errors import Problem, ProblemError
from tallybook.expressions.check import Checker, Typed, cast_to, condition_hint
from tallybook.expressions.parse import parse
from tallybook.expressions.scope import Scope
from tallybook.expressions.selectors import parse_selector
from tallybook.model.base import IDENTIFIER_PATTERN
from tallybook.model.columns import BOOLEAN, NULL, UNKNOWN, ColumnType, folded, why_reserved
from tallybook.model.dataset import Dataset, DatasetRef
from tallybook.operations.schema import SourceTable, WorkingSchema
from tallybook.source import Place, SourceText, path_text

if TYPE_CHECKING:
    from tallybook.operations.base import Operation


class DatasetFinder(Protocol):
    """The datasets an operation may name."""

    def find(self, ref: DatasetRef) -> Dataset | Problem | None:
        """Returns a dataset version, or the problem if there is none; None if that is already reported."""
        ...

    def is_open(self, dataset_id: str) -> bool:
        """True if the dataset can have unknown columns."""
        ...


@dataclass
class Binding:
    """What an operation is checked against, and where its problems go."""

    operation: Operation
    before: WorkingSchema
    catalog: DatasetFinder
    selectors: Mapping[str, SourceText]
    locate: Callable[[tuple[str | int, ...]], Place | None] = lambda _path: None
    text_at: Callable[[tuple[str | int, ...]], SourceText | None] = lambda _path: None
    path_of: Callable[[tuple[str | int, ...]], tuple[str | int, ...]] = lambda path: path
    """The path inside the document for one inside the operation."""
    parameters: Mapping[str, ColumnType] = field(default_factory=dict)
    """The types of the project's parameters."""
    problems: list[Problem] = field(default_factory=list)
    after: WorkingSchema | None = None
    """The schema for the next operation if no step could be made; by default the one before."""

    def report(self, type: str, message: str, *path: str | int, hint: str | None = None) -> None:
        """Reports a problem at a path inside the operation."""
        self.note(Problem(type, message, hint, self.locate(path)), *path)

    def note(self, problem: Problem, *path: str | int) -> None:
        """Adds the operation and path to a problem and reports it; a problem in a named selector keeps its own path."""
        place, inside = self.locate(path), path_text(self.path_of(path))
        if problem.path is not None:
            inside = path_text((*self.path_of(())[:-2], problem.path))
        placed = problem.within(place=place, seq=self.operation.seq, operation=self.operation.name)
        self.problems.append(replace(placed, path=inside))

    def source_text(self, text: str, path: tuple[str | int, ...]) -> SourceText:
        """Returns the text of an expression with the positions of its characters."""
        written = self.text_at(path)
        return written if written is not None and written.text == text else SourceText(text, self.locate(path))

    def scope(self) -> Scope:
        """The working rows, the lookups and the parameters."""
        return self.before.scope().with_parameters(self.parameters)

    def selector(self) -> Typed | None:
        """The operation's own selector; None without one, or when it is wrong."""
        return self.condition(self.operation.selector, self.scope(), "selector")

    def condition(
        self,
        text: str | None,
        scope: Scope,
        *path: str | int,
        named: bool = True,
        grouped: frozenset[str] | None = None,
    ) -> Typed | None:
        """A checked condition, boolean even if it is a bare NULL; `named` says whether `{{NAME}}` may be used in it,
        and `grouped` names the grouped columns if it is one on groups."""
        if text is None and self.text_at(path) is None:
            return None
        if text is None or not text.strip():
            self.report("InvalidSelector", "the selector is blank", *path, hint="leave it out to take all rows")
            return None
        source = self.source_text(text, path)
        read = (lambda: parse_selector(source, self.selectors)) if named else (lambda: parse(source))
        typed = self._typed(read, Checker(scope.with_parameters(self.parameters), grouped), path)
        if typed is None:
            return None
        if typed.type not in (BOOLEAN, NULL):
            message = f"the condition has type {typed.type}, but must be true or false"
            place = source.at(0, len(source.text))
            self.note(Problem("InvalidSelector", message, condition_hint(typed), place), *path)
            return None
        return cast_to(typed, BOOLEAN)

    def expression(
        self,
        text: str,
        scope: Scope,
        *path: str | int,
        grouped: frozenset[str] | None = None,
        over: bool = False,
    ) -> Typed | None:
        """A checked value. Inside an aggregation `grouped` names the grouped columns; `over` allows OVER."""
        source = self.source_text(text, path)
        checker = Checker(scope.with_parameters(self.parameters), grouped, over)
        return self._typed(lambda: parse(source), checker, path)

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
        dataset = self.catalog.find(ref)
        if isinstance(dataset, Problem):
            key = "dataset_version" if dataset.type == "DatasetVersionNotFound" else "dataset_id"
            self.note(dataset, *path, key)
        if not isinstance(dataset, Dataset):
            return None
        is_open = self.catalog.is_open(dataset.id)
        return SourceTable(dataset, dataset.main_table, is_open, pinned=ref.dataset_version is not None)


def type_of_new_column(binding: Binding, column: str, value: Typed | None, *path: str | int) -> ColumnType:
    """Returns the type of a new column; reports a value that is only NULL."""
    if value is None:
        return UNKNOWN
    if value.type != NULL:
        return value.type
    binding.report(
        "TypeMismatch",
        f"the new column '{column}' needs a type, and NULL alone has none",
        *path,
        "expression",
        hint="write the type: TO_STRING(NULL), TO_DECIMAL(NULL), …",
    )
    return UNKNOWN


def check_identifier(binding: Binding, name: str, *path: str | int) -> bool:
    """Reports a name that no column can have."""
    if re.fullmatch(IDENTIFIER_PATTERN, name):
        return True
    binding.report(
        "InvalidColumnName",
        f"'{name}' is not a column name",
        *path,
        hint="use letters, digits and _, and do not begin with a digit",
    )
    return False


def check_column_name(binding: Binding, name: str, *path: str | int, settable: Collection[str] = ()) -> bool:
    """Reports a target column that is not an identifier, is a system column other than the `settable` ones, or differs
    from another column by case only."""
    if not check_identifier(binding, name, *path):
        return False
    if name not in settable and (reason := why_reserved(name)):
        hint = f"only {', '.join(settable)} can be set; choose another name" if settable else "choose another name"
        binding.report("SystemColumn", f"{reason} and cannot be set", *path, hint=hint)
        return False
    known = binding.before.columns
    twin = None if name in known else next((other for other in known if folded(other) == folded(name)), None)
    if twin is not None:
        binding.report(
            "DuplicateColumn", f"'{name}' differs from column '{twin}' only by case", *path, hint=f"write '{twin}'"
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
        ("decimal", "integer"): "round it to an integer with ROUND(…)",
        ("string", "integer"): "convert it with TO_INTEGER(…)",
        ("string", "decimal"): "convert it with TO_DECIMAL(…)",
        ("string", "date"): "convert it with TO_DATE(…)",
        ("timestamp", "date"): "take the day with TO_DATE(…)",
    }.get((value.kind, target.kind), "convert it with TO_STRING(…)" if target.kind == "string" else None)
    return f"is {target}, but the expression is {value}", hint
