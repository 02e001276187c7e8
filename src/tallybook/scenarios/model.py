"""The model of a scenario: given rows, a project, a period and the expected results."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from tallybook.errors import PROBLEM_TYPES, did_you_mean
from tallybook.model.base import Entity, Id, NonEmpty, as_text
from tallybook.model.dataset import Dataset
from tallybook.model.period import Calendar, Day, Period, check_order
from tallybook.model.resolver import Resolver
from tallybook.operations.registry import follow
from tallybook.project.model import Project

DEFAULT_TIMESTAMP = datetime(2026, 1, 1, tzinfo=UTC)
"""The value of NOW() in a scenario without `run_timestamp`."""


def parse_timestamp(text: str) -> datetime:
    """Parses an ISO timestamp, in UTC if it has no zone; raises ValueError for anything else."""
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a timestamp; write it as 2026-01-31T12:00:00Z") from None
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"'{text}' is outside the years 1 to 9999 of UTC") from None


def _as_timestamp(value: object) -> object:
    text = as_text(value)
    return parse_timestamp(text) if isinstance(text, str) else text


def _scalar(value: object) -> object:
    if isinstance(value, dict | list | tuple):
        raise ValueError("a value is text, a number, true, false or null")
    return value


_SCALARS = {"type": ["string", "number", "boolean", "null"]}
Cell = Annotated[Any, AfterValidator(_scalar), Field(json_schema_extra=_SCALARS)]
Row = dict[str, Cell]
Match = Literal["exact", "subset"]


class GivenPeriod(Entity):
    """A period of the workspace's calendar by its identifier, or one with dates of its own."""

    identifier: NonEmpty
    level: NonEmpty | None = None
    start_date: Day | None = None
    end_date: Day | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> GivenPeriod:
        own = (self.level, self.start_date, self.end_date)
        if any(own) and not all(own):
            raise ValueError("a period needs either an identifier only, or also level, start_date and end_date")
        if self.start_date is not None and self.end_date is not None:
            check_order(self.identifier, self.start_date, self.end_date)
        return self

    def within(self, calendar: Calendar) -> Period:
        """Returns the period; raises `PeriodNotFound` if the calendar has no such period."""
        if self.level is None or self.start_date is None or self.end_date is None:
            return calendar.period(self.identifier)
        return Period(identifier=self.identifier, level=self.level, start_date=self.start_date, end_date=self.end_date)


def _by_identifier(value: Any) -> Any:
    return value if isinstance(value, dict | tuple) else {"identifier": value}


class FileRows(Entity):
    """Rows in a data file of the workspace."""

    file: NonEmpty = Field(description="A csv, json, orc, parquet, delta or xlsx path, relative to the workspace.")


Rows = tuple[Row, ...] | FileRows
"""The rows of one table: written out, or in a file."""


class ExpectedRows(Entity):
    """The expected rows of an output or of the working dataset."""

    rows: tuple[Row, ...] | None = Field(None, description="Only the columns named in a row are compared.")
    match: Match = Field("exact", description="`exact`: these rows and no others. `subset`: at least these.")
    row_count: int | None = Field(None, ge=0)

    @property
    def said(self) -> set[str]:
        """The keys that have an expectation. A key without a value has none, but `rows: []` is one."""
        return {name for name in self._possible() if getattr(self, name) not in (None, {})}

    @classmethod
    def _possible(cls) -> list[str]:
        return [name for name in cls.model_fields if name != "match"]

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.said:
            *others, last = self._possible()
            raise ValueError(f"write what is expected: {', '.join(others)} or {last}")
        if self.match == "subset" and self.rows == ():
            raise ValueError("`match: subset` needs at least one row; add rows, or remove `match`")
        return self


def _known_type(value: str) -> str:
    if value not in PROBLEM_TYPES:
        hint = did_you_mean(value, PROBLEM_TYPES) or "see docs/reference/problems.md"
        raise ValueError(f"'{value}' is not a type of problem; {hint}")
    return value


class ExpectedError(Entity):
    """The problem that must stop the project, when it is checked or when it runs."""

    type: Annotated[NonEmpty, AfterValidator(_known_type)]
    seq: int | None = Field(None, ge=1, description="The operation in which it must occur.")


class ExpectedCheck(Entity):
    """What a check must find."""

    tested: int | None = Field(None, ge=0, description="The number of rows or groups that are tested.")
    failed: int | None = Field(None, ge=0, description="The number of them that fail.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.tested is None and self.failed is None:
            raise ValueError("write what is expected: tested or failed")
        return self


class Expect(ExpectedRows):
    """Expected results of the last output; without an output, of the working rows that are not deleted."""

    outputs: dict[str, ExpectedRows] = Field(default_factory=dict, description="By the seq of the output.")
    working: ExpectedRows | None = Field(None, description="The final working dataset, deleted rows included.")
    columns: tuple[NonEmpty, ...] | None = Field(None, description="Exactly these columns, in this order.")
    checks: dict[str, ExpectedCheck] = Field(default_factory=dict, description="By the seq of the check.")
    error: ExpectedError | None = None

    @model_validator(mode="after")
    def _is_an_error_or_rows(self) -> Self:
        if self.error is not None and self.said != {"error"}:
            raise ValueError("expect either an error or rows, not both")
        return self


def _not_left_open(expect: Expect | None) -> Expect:
    if expect is None:
        raise ValueError("write what is expected, or remove the key: `tallybook test --record` fills it in")
    return expect


class Scenario(Entity):
    """A test of a project: given rows and expected results."""

    name: NonEmpty
    project: Id | Project = Field(description="The id of a project of the workspace, or a whole project.")
    period: Annotated[GivenPeriod, BeforeValidator(_by_identifier, json_schema_input_type=str | GivenPeriod)]
    as_of: Day | None = Field(None, description="By default the first day of the period.")
    run_timestamp: Annotated[datetime, BeforeValidator(_as_timestamp, json_schema_input_type=str)] = DEFAULT_TIMESTAMP
    parameters: Row = Field(default_factory=dict, description="Values of the project's parameters, by name.")
    datasets: tuple[Dataset, ...] = Field((), description="Datasets in addition to those of the workspace.")
    resolvers: tuple[Resolver, ...] = Field(
        (),
        description="Resolvers that must find a location for each table. Without them the rows are used directly.",
    )
    data: dict[str, dict[str, Rows]] = Field(description="Dataset id, then table name, then its rows.")
    expect: Annotated[Expect | None, AfterValidator(_not_left_open)] = Field(
        None, description="If it is left out, `tallybook test --record` fills it in."
    )


follow(lambda: Scenario.model_rebuild(force=True))
