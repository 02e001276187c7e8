"""delete: marks selected rows as deleted; they stay in the working dataset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import AliasChoices, Field

from tallybook.model.base import Entity
from tallybook.model.columns import DELETED
from tallybook.operations.base import Applying, Binding, Operation, Step
from tallybook.operations.lookups import with_lookups, with_values

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

        beside = with_lookups(frame, self, applying)
        chosen = applying.chosen(self.selector)
        deleted = {DELETED: applying.where(chosen, F.lit(True), F.col(DELETED))}
        return with_values(beside, deleted | applying.stamp(chosen), self)
