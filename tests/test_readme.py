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


def console() -> list[object]:
    """Each block by its last command; one that starts Spark is left to the long profile."""
    marks = {True: [pytest.mark.long], False: []}
    commands = [(re.findall(r"^\$ (.*)$", block, re.MULTILINE), block) for block in blocks("console")]
    return [pytest.param(block, id=found[-1], marks=marks["tallybook run" in block]) for found, block in commands]


def normal(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


@pytest.mark.parametrize("block", console())
def test_a_console_block_prints_what_it_says(block: str, tmp_path: Path) -> None:
    """`…` in the README stands for anything."""
    workspace = tmp_path / "orders"
    shutil.copytree(ROOT / "examples" / "orders", workspace, ignore=shutil.ignore_patterns(".tallybook", "warehouse"))
    script = "\n".join(line[2:] for line in block.splitlines() if line.startswith("$ "))
    said = "\n".join(line for line in block.splitlines() if not line.startswith("$ "))
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    done = subprocess.run(
        ["sh", "-c", f"({script}) 2>&1"], cwd=workspace, env=environment, capture_output=True, text=True, check=False
    )
    pattern = ".*".join(re.escape(part) for part in normal(said).split("…"))
    assert re.fullmatch(pattern, normal(done.stdout), re.DOTALL), done.stdout


def test_the_recipe_shown_is_that_of_the_example() -> None:
    project = (ROOT / "examples" / "orders" / "projects" / "order-close.yaml").read_text(encoding="utf-8")
    assert [block in project for block in blocks("yaml")] == [True]


def test_the_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
