"""Tallybook as a library: the public names for scripts and notebooks.

Names that need pyspark or the checker are imported when they are first used, so `import tallybook` is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybook.errors import (
    Problem,
    ProblemError,
    RunError,
    SessionError,
    StoreError,
    TallybookError,
    UsageError,
    ValidationError,
)

if TYPE_CHECKING:
    from tallybook.engine.frames import apply_operations
    from tallybook.workspace import Workspace

    __version__: str

__all__ = [
    "Problem",
    "ProblemError",
    "RunError",
    "SessionError",
    "StoreError",
    "TallybookError",
    "UsageError",
    "ValidationError",
    "Workspace",
    "__version__",
    "apply_operations",
]


def __getattr__(name: str) -> Any:
    match name:
        case "Workspace":
            from tallybook.workspace import Workspace

            return Workspace
        case "apply_operations":
            from tallybook.engine.frames import apply_operations

            return apply_operations
        case "__version__":
            from importlib.metadata import version

            return version("tallybook")
    raise AttributeError(f"module 'tallybook' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
