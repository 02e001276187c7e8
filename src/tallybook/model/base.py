"""What all entities share: immutable, strict, unknown keys are errors."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
NOT_BLANK = r"\S"
IDENTIFIER_PATTERN = r"^[a-zA-Z_][a-zA-Z0-9_]*$"


class Entity(BaseModel):
    """A frozen value with named, typed fields and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)


class Record(Entity):
    """An entity that the store keeps and documents show. The text below a field is its description in the schema."""

    model_config = ConfigDict(use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)


def as_text(value: Any) -> Any:
    """Returns the user's own characters of a value such as `2026-01`, `42` or `true`, for keys whose value is text."""
    written = getattr(value, "text", None)
    if written is not None:
        return written
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return value


Text = Annotated[str, BeforeValidator(as_text, json_schema_input_type=str | int | float | bool)]
NonEmpty = Annotated[Text, StringConstraints(min_length=1)]
NotBlank = Annotated[Text, StringConstraints(min_length=1, pattern=NOT_BLANK)]
Id = Annotated[Text, StringConstraints(pattern=ID_PATTERN)]
Identifier = Annotated[str, StringConstraints(pattern=IDENTIFIER_PATTERN)]
"""The text of an expression of the language; parsed and checked by the project checker."""
Expression = Annotated[Text, StringConstraints()]
