"""The how-tos run as written."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession
from tests.docs.page import DOCS, Reader


def test_use_in_a_notebook(spark: SparkSession, tmp_path: Path) -> None:
    example = DOCS.parent / "examples" / "orders"
    shutil.copytree(example, tmp_path / "orders", ignore=shutil.ignore_patterns(".tallybook", "warehouse"))
    Reader(tmp_path).follow("howto/use-in-a-notebook.md")
