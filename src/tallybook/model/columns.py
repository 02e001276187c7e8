"""Column types, column definitions and the system columns. No other module defines any."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from tallybook.model.base import Entity, NonEmpty, Text

MAX_PRECISION = 38
KINDS = ("string", "integer", "decimal", "boolean", "date", "timestamp")
_DECIMAL = re.compile(r"^decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)$")
TYPE_PATTERN = r"^(string|integer|decimal|boolean|date|timestamp|decimal\s*\(\s*\d+\s*,\s*\d+\s*\))$"


@dataclass(frozen=True)
class ColumnType:
    """The type of a column and of an expression. `null` is the type of the bare literal NULL."""

    kind: str
    precision: int = 0
    scale: int = 0

    @classmethod
    def parse(cls, text: str) -> ColumnType:
        """The type written in YAML: `string`, `decimal`, `decimal(10,2)`; ValueError otherwise."""
        if text == "decimal":
            return DECIMAL
        if text in KINDS:
            return cls(text)
        match = _DECIMAL.match(text)
        if not match:
            raise ValueError(f"'{text}' is not a type; use one of: {', '.join(KINDS)}, decimal(p,s)")
        return decimal(int(match[1]), int(match[2]))

    @property
    def is_number(self) -> bool:
        return self.kind in ("integer", "decimal")

    @property
    def integer_digits(self) -> int:
        """Digits before the decimal point."""
        return self.precision - self.scale

    def __str__(self) -> str:
        if self.kind != "decimal":
            return self.kind
        return f"decimal({self.precision},{self.scale})"

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate, serialization=core_schema.to_string_ser_schema()
        )

    @classmethod
    def _validate(cls, value: object) -> ColumnType:
        if isinstance(value, ColumnType):
            return value
        if not isinstance(value, str):
            raise PydanticCustomError("column_type", "a type is text, such as 'string' or 'decimal(10,2)'")
        try:
            return cls.parse(value)
        except ValueError as error:
            raise PydanticCustomError("column_type", "{reason}", {"reason": str(error)}) from None

    @classmethod
    def __get_pydantic_json_schema__(cls, _schema: Any, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "pattern": TYPE_PATTERN, "examples": [*KINDS, "decimal(10,2)"]}


def decimal(precision: int, scale: int) -> ColumnType:
    """decimal(p,s), refused when it is not a type: 1 ≤ p ≤ 38 and 0 ≤ s ≤ p."""
    if not 1 <= precision <= MAX_PRECISION or not 0 <= scale <= precision:
        raise ValueError(f"'decimal({precision},{scale})' is not a type: it has at most 38 digits, the scale included")
    return ColumnType("decimal", precision, scale)


STRING = ColumnType("string")
INTEGER = ColumnType("integer")
DECIMAL = decimal(18, 6)
BOOLEAN = ColumnType("boolean")
DATE = ColumnType("date")
TIMESTAMP = ColumnType("timestamp")
NULL = ColumnType("null")
UNKNOWN = ColumnType("unknown")
"""The type of a column whose expression is wrong, so that the mistake is reported only once."""
INTEGER_AS_DECIMAL = decimal(19, 0)
"""The decimal that holds every 64-bit integer."""


class ColumnDef(Entity):
    """A declared business column."""

    name: Text
    type: ColumnType
    nullable: bool = True
    description: Text | None = None
    source: NonEmpty | None = Field(None, description="The physical column name, where it differs.")

    @property
    def physical(self) -> str:
        """The name the column has in the data."""
        return self.source or self.name


ROW_ID = "_row_id"
SOURCE_DATASET_ID = "_source_dataset_id"
SOURCE_TABLE = "_source_table"
OPERATION_SEQ = "_operation_seq"
CREATED_AT = "_created_at"
UPDATED_AT = "_updated_at"
DELETED = "_deleted"
LABELS = "_labels"
PERIOD = "_period"
VALID_FROM = "_valid_from"
VALID_TO = "_valid_to"

SYSTEM_COLUMNS: dict[str, ColumnType] = {
    ROW_ID: STRING,
    SOURCE_DATASET_ID: STRING,
    SOURCE_TABLE: STRING,
    OPERATION_SEQ: INTEGER,
    CREATED_AT: TIMESTAMP,
    UPDATED_AT: TIMESTAMP,
    DELETED: BOOLEAN,
    LABELS: STRING,
    PERIOD: STRING,
}
VALIDITY_COLUMNS: dict[str, ColumnType] = {VALID_FROM: DATE, VALID_TO: DATE}
"""Present where the main table is bitemporal."""

ALIASES = {"_source_dataset": SOURCE_DATASET_ID}
"""Other names of system columns, accepted in expressions and column lists."""

INTERNAL = "tallybook:"
"""The prefix of columns that only the engine uses; the colon keeps them apart from identifiers."""

RESERVED = frozenset({*SYSTEM_COLUMNS, *VALIDITY_COLUMNS, *ALIASES})
"""Names that no column of a user may have, in upper or lower case."""
ASSIGNABLE = frozenset({LABELS})
"""System columns a user may set."""


def folded(name: str) -> str:
    """The name in the one case in which Spark compares names by default: letter by letter, as Java does.

    To Spark `ſ` equals `s`, the Kelvin sign equals `k`, and `i`, `I`, `İ` and `ı` are all equal.
    """
    return name.lower() if name.isascii() else "".join(map(_folded, name))


def _folded(letter: str) -> str:
    """Python maps some letters to several, `ß` to `SS`; Java's comparison of letters does not."""
    upper = letter.upper()
    return (upper if len(upper) == 1 else letter).lower()[0]


_RESERVED_FOLDED = {folded(name): name for name in RESERVED}


def system_column(name: str) -> str | None:
    """The reserved name that this name is, or differs from by case only; None for any other name."""
    return _RESERVED_FOLDED.get(folded(name))


def why_reserved(name: str) -> str | None:
    """The reason a user's column cannot have this name; None when it can."""
    system = system_column(name)
    if system is None:
        return None
    return (
        f"'{name}' is a system column"
        if name == system
        else f"'{name}' differs from the system column '{system}' only by case"
    )
