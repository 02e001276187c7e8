"""Resolvers: rules that find the location of a table's rows for a period."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tallybook.model.base import Entity, Expression, Id, NonEmpty, NotBlank, Text
from tallybook.model.dataset import Status

ANY_LEVEL = "any"


class PathStrategy(Entity):
    """Files at a path below the datasource's prefix."""

    type: Literal["path"]
    datasource_id: Id
    path: NotBlank


class TableStrategy(Entity):
    """A table of the datasource."""

    type: Literal["table"]
    datasource_id: Id
    table: NotBlank
    schema_: NotBlank | None = Field(None, alias="schema")
    partition_column: NotBlank | None = None
    partitions: int | None = Field(None, ge=1, le=1000)


Strategy = Annotated[PathStrategy | TableStrategy, Field(discriminator="type")]


class Rule(Entity):
    """The first rule whose `when` is true wins; no `when` always matches."""

    name: NonEmpty
    when: Expression | None = None
    data_level: NonEmpty = Field(
        ANY_LEVEL, description="The calendar level one location covers, or `any`: one location for all periods."
    )
    strategy: Strategy
    on_missing: Literal["fail", "empty"] = "fail"


class Resolver(Entity):
    """An ordered list of rules."""

    id: Id
    name: Text | None = None
    status: Status = "active"
    is_default: bool = False
    rules: tuple[Rule, ...] = Field(min_length=1)
    version: int = Field(1, ge=1, description="Counted by the system; leave it out of files.")
