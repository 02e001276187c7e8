"""A sound workspace, and files laid over it: the way the checker's tests say what is wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tallybook.errors import Problem
from tallybook.workspace import Workspace

SOUND = Path(__file__).parents[1] / "golden" / "workspace"
Validate = Callable[[Mapping[str, str | bytes]], list[Problem]]


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A folder with a workspace nothing is wrong with: orders with tax rates, customers, budgets."""
    shutil.copytree(SOUND, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def validate(sound: Path) -> Validate:
    """The problems of the sound workspace with some files added or replaced."""

    def problems(files: Mapping[str, str | bytes]) -> list[Problem]:
        for name, content in files.items():
            path = sound / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return Workspace.open(sound).validate()

    return problems


@pytest.fixture
def of_operations(validate: Validate) -> Callable[..., list[Problem]]:
    """The problems of a project over the orders with these operations, written as YAML list items."""

    def problems(operations: str, **keys: str) -> list[Problem]:
        head = "".join(f"  {key}: {value}\n" for key, value in keys.items())
        body = "".join(f"    {line}\n" if line.strip() else "\n" for line in operations.strip("\n").split("\n"))
        project = "project:\n  id: close\n  name: Close\n  input_dataset_id: sales-orders\n"
        return validate({"project.yaml": f"{project}{head}  operations:\n{body}"})

    return problems
