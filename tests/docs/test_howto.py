"""The how-tos run as written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.docs.page import DOCS, Reader, steps

EXAMPLE = DOCS.parent / "examples" / "orders"
UNWRITTEN = shutil.ignore_patterns(".tallybook", "warehouse")


def test_use_in_a_notebook(spark: SparkSession, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "orders", ignore=UNWRITTEN)
    Reader(tmp_path).follow("howto/use-in-a-notebook.md")


def test_the_readme_as_a_library(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "orders", ignore=UNWRITTEN)
    monkeypatch.chdir(tmp_path / "orders")
    names: dict[str, Any] = {}
    (code,) = (step.text for step in steps("../README.md") if step.language == "python")
    exec(code, names)
    assert names["result"].run.status == "completed"
