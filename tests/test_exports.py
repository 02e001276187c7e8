"""What users may import is a list, written down twice so that it changes on purpose."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from types import ModuleType

import pytest

import tallybook

PUBLIC = [
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
"""The names of `from tallybook import …`."""


def test_the_public_names_are_those_listed() -> None:
    assert tallybook.__all__ == PUBLIC
    assert dir(tallybook) == PUBLIC


def test_the_list_is_sorted() -> None:
    assert sorted(PUBLIC) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(tallybook, name)


def test_the_version_is_that_of_the_package() -> None:
    assert tallybook.__version__ == version("tallybook")


def test_nothing_else_is_reachable() -> None:
    reachable = {name for name, value in vars(tallybook).items() if not isinstance(value, ModuleType)}
    of_the_language = {"annotations", "Any", "TYPE_CHECKING"}
    assert {name for name in reachable if not name.startswith("_")} - of_the_language <= set(PUBLIC)
    with pytest.raises(AttributeError, match="no attribute 'Runner'"):
        _ = tallybook.Runner


def test_importing_loads_neither_spark_nor_the_checker() -> None:
    script = "import sys, tallybook; print([name for name in ('pyspark', 'pydantic', 'lark') if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
