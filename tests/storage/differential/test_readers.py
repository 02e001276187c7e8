"""The product reads from generated files what the strict readers read, or refuses them where they do."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from .campaign import campaign, shrunk


def test_generated_files(quick: SparkSession) -> None:
    report = campaign(quick, cases=25, seed=1)
    for number, _, _ in report.disagreements[:1]:
        shrunk(quick, 1, number)
    assert not report.disagreements, report.disagreements


@pytest.mark.long
def test_two_thousand_generated_files(quick: SparkSession) -> None:
    report = campaign(quick, cases=2000, seed=2)
    assert not report.disagreements, f"{report}\n" + "\n".join(str(each) for each in report.disagreements)


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("strict_*.py")), ids=lambda path: path.stem)
def test_strict_readers_share_no_code_with_the_product(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    assert not [module for module in modules if module.startswith(("tallybook", "pyspark", "product"))]
