"""delete: marks selected rows as deleted; they stay in the working dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.model.base import Entity
from tallybook.model.columns import DELETED, UPDATED_AT
from tallybook.operations.base import Applying, Binding, Operation, Step
from tallybook.operations.lookups import with_lookups, without_joined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeleteArguments(Entity):
    """delete has none; the selector says it all."""


class Delete(Operation, type="delete"):
    """Soft-deletes the selected rows."""

    type: Literal["delete"]
    arguments: DeleteArguments = Field(DeleteArguments(), validation_alias=AliasChoices("arguments", "parameters"))

    def bind(self, binding: Binding) -> DeleteStep | None:
        return DeleteStep(self.seq, self.name, binding.selector(), binding.before, binding.before)


@dataclass(frozen=True)
class DeleteStep(Step):
    """A checked delete."""

    type: ClassVar[str] = "delete"

    def apply(self, frame: DataFrame, applying: Applying) -> DataFrame:
        from pyspark.sql import functions as F

        from tallybook.rows.system import selected

        beside = with_lookups(frame, self, applying)
        chosen = selected(None if self.selector is None else applying.compiler.column(self.selector))
        values = {
            DELETED: F.when(chosen, F.lit(True)).otherwise(F.col(DELETED)),
            UPDATED_AT: F.when(chosen, F.lit(applying.timestamp)).otherwise(F.col(UPDATED_AT)),
        }
        return without_joined(beside.withColumns(values), self)
