"""The README is executed: its console blocks print what it says, its YAML is that of the example."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


CONSOLE = blocks("console")
WITHOUT_SPARK = CONSOLE[: next(number for number, block in enumerate(CONSOLE) if "$ tallybook run" in block)]


def steps(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with what it prints."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def normal(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.mark.parametrize(
    "typed", [WITHOUT_SPARK, pytest.param(CONSOLE, marks=pytest.mark.long)], ids=["without Spark", "all"]
)
def test_the_tour_works_from_top_to_bottom(typed: list[str], tmp_path: Path) -> None:
    """`…` in the README stands for anything."""
    workspace = tmp_path / "orders"
    shutil.copytree(ROOT / "examples" / "orders", workspace, ignore=shutil.ignore_patterns(".tallybook", "warehouse"))
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    for command, said in (step for block in typed for step in steps(block)):
        done = subprocess.run(
            ["sh", "-c", f"({command}) 2>&1"],
            cwd=workspace,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        pattern = ".*".join(re.escape(part) for part in normal(said).split("…"))
        assert re.fullmatch(pattern, normal(done.stdout), re.DOTALL), f"{command}\n{done.stdout}"


def test_the_recipe_shown_is_that_of_the_example() -> None:
    project = (ROOT / "examples" / "orders" / "projects" / "order-close.yaml").read_text(encoding="utf-8")
    assert [block in project for block in blocks("yaml")] == [True]


def test_the_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
