"""The tutorial runs as written, and builds the example it promises."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.docs.page import DOCS, Reader

from tallybook.workspace import Workspace

EXAMPLE = DOCS.parent / "examples" / "orders"
OTHER_IDS = {"d5e6f7g8-0000-0000-0000-000000000010": "customers"}
"""The example keeps an id of the document it comes from; the tutorial has a readable one."""


@pytest.fixture(scope="module")
def built(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tutorial")
    Reader(folder).follow("tutorial.md")
    return folder


@pytest.fixture(scope="module")
def closed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second part goes on where the first one ends, in a copy of its folder."""
    folder = tmp_path_factory.mktemp("close") / "orders"
    shutil.copytree(built, folder)
    Reader(folder).follow("tutorial-close.md")
    return folder


def recipe(folder: Path) -> dict[str, Any]:
    project = Workspace.open(folder).definitions.projects["order-close"].project
    assert project is not None
    operations = [operation.model_dump(exclude={"id"}) for operation in project.in_order()]
    for operation in operations:
        for join in operation["arguments"].get("joins", ()):
            join["dataset_id"] = OTHER_IDS.get(join["dataset_id"], join["dataset_id"])
    return {"selectors": project.selectors, "input": project.input_dataset_id, "operations": operations}


def test_the_tutorial_builds_the_example(built: Path) -> None:
    assert recipe(built) == recipe(EXAMPLE)


@pytest.mark.parametrize("file", ["customers.csv", "orders/2026-01.csv", "orders/2026-02.csv"])
def test_the_data_is_that_of_the_example(built: Path, file: str) -> None:
    assert (built / "data" / file).read_text(encoding="utf-8") == (EXAMPLE / "data" / file).read_text(encoding="utf-8")


def test_what_it_shows_is_still_valid_at_the_end(built: Path) -> None:
    assert Workspace.open(built).validate() == []


def test_the_second_part_ends_with_a_closed_month(closed: Path) -> None:
    workspace = Workspace.open(closed)
    assert workspace.validate() == []
    assert (closed / "reports" / "2026-02" / "regions.csv").is_file()
