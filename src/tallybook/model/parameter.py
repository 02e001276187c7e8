"""A parameter of a project: a typed constant that each run may set."""

from __future__ import annotations

from pydantic import Field

from tallybook.model.base import Entity, Text
from tallybook.model.columns import ColumnType


class Parameter(Entity):
    """A constant that expressions read as `params.NAME`."""

    type: ColumnType
    default: Text | None = Field(None, description="The value without `--set`; if it is left out, a run must set it.")
    description: Text | None = None
