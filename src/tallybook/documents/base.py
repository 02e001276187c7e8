"""The base class of all documents: frozen, no other keys, every key with a description."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")


class Document(BaseModel):
    """A JSON object. The text below a field is its description in the JSON Schema."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        json_schema_serialization_defaults_required=True,
        defer_build=True,
    )


IfKnown = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""A key that is left out if its value is not known. It is never null."""


def as_json(document: BaseModel) -> dict[str, Any]:
    """Returns the document as plain values, under the names it has in JSON."""
    return document.model_dump(mode="json", by_alias=True)


def json_value(value: object) -> Any:
    """Returns a value of a row as JSON; as text if JSON has no such type or would lose digits."""
    return json.loads(json.dumps(value, default=str))
