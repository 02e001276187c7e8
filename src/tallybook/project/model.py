"""A project: an ordered list of operations over one working dataset."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tallybook.model.base import Entity, Expression, Id, NonEmpty, Text
from tallybook.model.parameter import Parameter
from tallybook.operations.base import Operation
from tallybook.operations.registry import Registered, follow

AnyOperation = Annotated[Operation, Registered()]


class InputRules(Entity):
    """What the input rows must fulfil."""

    min_rows: int = Field(0, ge=0, description="The fewest rows for the period; with fewer the run fails.")


class ProjectHead(Entity):
    """A project without its operations."""

    id: Id
    name: NonEmpty
    description: Text | None = None
    input_dataset_id: Id
    input_dataset_version: int | None = Field(None, ge=1, description="By default the latest active one.")
    input: InputRules = InputRules()
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    selectors: dict[str, Expression] = Field(default_factory=dict)
    resolver_overrides: dict[str, Id] = Field(default_factory=dict)
    version: int = Field(1, ge=1, description="Counted by the system; leave it out of files.")


class Project(ProjectHead):
    """A recipe. Operations run in ascending `seq`."""

    operations: tuple[AnyOperation, ...] = Field(min_length=1)

    def in_order(self) -> tuple[Operation, ...]:
        return tuple(sorted(self.operations, key=lambda operation: operation.seq))


follow(lambda: Project.model_rebuild(force=True))
