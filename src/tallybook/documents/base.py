"""What all documents share: frozen, no other keys, and every key explained by the text below it."""

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
"""A key that is left out where its value is not known, never null."""


def as_json(document: BaseModel) -> dict[str, Any]:
    """The document as plain values, under the names it has in JSON."""
    return document.model_dump(mode="json", by_alias=True)


def json_value(value: object) -> Any:
    """A value of a row as JSON has it; as text where JSON has no such type or would lose digits."""
    return json.loads(json.dumps(value, default=str))
