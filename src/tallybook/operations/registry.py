"""The registry of operations, and the type of a model field that takes any of them.

An operation registers itself under its type name when its class is made. Pydantic builds a model's validator once, so
whatever is built from the registry follows it: it is built anew when an operation is registered or removed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

if TYPE_CHECKING:
    from tallybook.operations.base import Operation

OPERATIONS: dict[str, type[Operation]] = {}
"""Every operation under its type name."""

_FOLLOWERS: list[Callable[[], object]] = []


def register(type: str, operation: type[Operation]) -> None:
    """Makes an operation known under its type name."""
    if type in OPERATIONS:
        raise ValueError(f"operation {type} is declared twice")
    OPERATIONS[type] = operation
    _changed()


def unregister(type: str) -> None:
    """Forgets an operation."""
    del OPERATIONS[type]
    _changed()


def follow(rebuild: Callable[[], object]) -> None:
    """Calls `rebuild` after every change of the registry, in the order in which followers came."""
    _FOLLOWERS.append(rebuild)


def _changed() -> None:
    any_operation.cache_clear()
    for rebuild in _FOLLOWERS:
        rebuild()


@cache
def any_operation() -> Any:
    """Returns the union of all registered operations, discriminated by `type`."""
    return Annotated[Union[tuple(OPERATIONS.values())], Field(discriminator="type")]  # noqa: UP007  # made at run time


class Registered:
    """Marks a field that takes any registered operation. A model with such a field follows the registry."""

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(any_operation())
