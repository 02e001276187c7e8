"""delete: marks selected rows as deleted; they stay in the working dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.model.base import Entity
from tallybook.model.columns import DELETED, UPDATED_AT
from tallybook.operations.base import BuildContext, Operation, Step
from tallybook.operations.binding import Binding
from tallybook.operations.lookups import assign_columns, lookups_of, no_values

if TYPE_CHECKING:
    from tallybook.rows.working import Rows


class DeleteArguments(Entity):
    """delete has no arguments."""


class Delete(Operation, type="delete"):
    """Soft-deletes the selected rows."""

    reference: ClassVar[str] = """
    Marks the selected rows as deleted. They stay in the working dataset, flagged in `_deleted`.

    ```yaml
    operations:
      - seq: 40
        name: Set zero amounts aside
        type: delete
        selector: amount = 0
    ```

    {arguments}
    """

    type: Literal["delete"]
    arguments: DeleteArguments = Field(DeleteArguments(), validation_alias=AliasChoices("arguments", "parameters"))

    def bind(self, binding: Binding) -> DeleteStep | None:
        return DeleteStep(self.seq, self.name, binding.selector(), binding.before, binding.before)


@dataclass(frozen=True)
class DeleteStep(Step):
    """A checked delete."""

    type: ClassVar[str] = "delete"

    @property
    def writes(self) -> Mapping[str, str | None]:
        return {DELETED: None, UPDATED_AT: None}

    def change(self, rows: Rows, build: BuildContext) -> Rows:
        return assign_columns(rows, self, lookups_of(self), no_values, build)
