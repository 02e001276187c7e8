"""The reference pages have the tables the code gives, a section for each command, and examples that hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from ruamel.yaml import YAML
from tests.docs.page import DOCS

from tallybook.cli import main
from tallybook.cli.app import app
from tallybook.engine import launch, session
from tallybook.model.dataset import Dataset
from tallybook.operations.registry import OPERATIONS
from tallybook.project.bind import bind_project
from tallybook.project.dataset_versions import DatasetVersions
from tallybook.project.model import Project
from tallybook.reference import filled, key_tables

REFERENCE = DOCS / "reference"
OPERATIONS_PAGE, FILES_PAGE = REFERENCE / "operations.md", REFERENCE / "workspace-files.md"
COMMAND_PAGE = REFERENCE / "command-line.md"
EVERYWHERE = {"--workspace", "-w", "--json", "--env", "--help", "-h"}


@pytest.mark.parametrize("page", [OPERATIONS_PAGE, FILES_PAGE], ids=lambda page: page.stem)
def test_the_tables_of_a_page_are_current(page: Path, golden: Any) -> None:
    golden(page, filled(page.read_text(encoding="utf-8"), key_tables()))


def test_every_table_is_on_a_page() -> None:
    pages = OPERATIONS_PAGE.read_text(encoding="utf-8") + FILES_PAGE.read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- table: (\S+) -->", pages)) == sorted(key_tables())


def table(name: str, **columns: str) -> Dataset:
    listed = [{"name": column, "type": type} for column, type in columns.items()]
    return Dataset.model_validate(
        {"id": name, "name": name, "main_table": {"name": name.replace("-", "_"), "columns": listed}}, strict=False
    )


LEDGER = (
    table("lines", region="string", currency="string", amount="decimal(18,2)"),
    table("fx-rates", currency="string", rate="decimal(18,6)"),
    table("budgets", region="string", budget_version="string", amount="decimal(18,2)"),
    table("headcount", region="string", kind="string", heads="integer"),
)
SHOP = (
    table("orders", order_id="string", customer_id="string", region="string", amount="decimal(18,2)"),
    table("customers", id="string", tier="string"),
)


def examples(page: Path) -> list[list[dict[str, Any]]]:
    """The blocks of operations on a page."""
    blocks = re.findall(r"```yaml\n(operations:.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [YAML(typ="safe").load(block)["operations"] for block in blocks]


def problems(operations: list[dict[str, Any]], datasets: tuple[Dataset, ...]) -> list[str]:
    """What is wrong with a project of these operations over the first dataset."""
    body = {"id": "p", "name": "p", "input_dataset_id": datasets[0].id, "operations": operations}
    project = Project.model_validate(body, strict=False)
    bound = bind_project(project, project.in_order(), DatasetVersions.of({each.id: each for each in datasets}))
    return [str(problem) for problem in bound.problems]


def test_the_examples_of_operations_are_valid() -> None:
    """One after the other, as one project."""
    operations = [operation for block in examples(OPERATIONS_PAGE) for operation in block]
    assert {operation["type"] for operation in operations} == set(OPERATIONS)
    assert problems(operations, LEDGER) == []


def test_the_examples_for_newcomers_are_valid() -> None:
    assert [problems(block, SHOP) for block in examples(DOCS / "coming-from.md")] == [[], [], []]


def test_the_session_page_lists_every_setting_that_is_made() -> None:
    page = (REFERENCE / "spark-session.md").read_text(encoding="utf-8")
    listed = {
        name for cell in re.findall(r"^\| (.+?) \|", page, re.MULTILINE) for name in re.findall(r"`(spark\.\S+)`", cell)
    }
    assert listed == {*session.DEFAULTS, *launch._JVM, *launch._laptop(), *launch._warehouse()}
    assert all(f"| `{key}` | `{values[0]}`" in page for key, values in session.NEEDS.items())


def commands() -> dict[str, set[str]]:
    """Every command with the options it alone has."""
    assert main.MODULES
    found: dict[str, set[str]] = {}

    def walk(group: Any, prefix: str) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, f"{prefix}{name} ")
            if getattr(command, "invoke_without_command", True):
                found[prefix + name] = {option for each in command.params for option in each.opts if option[0] == "-"}

    walk(typer.main.get_command(app), "")
    return {name: options - EVERYWHERE for name, options in found.items()}


def sections() -> dict[str, set[str]]:
    """Every section about a command with the options in the first column of its table."""
    text = COMMAND_PAGE.read_text(encoding="utf-8")
    parts = re.split(r"^## `tallybook ([a-z ]+)`\n", text, flags=re.MULTILINE)[1:]
    return {
        name: {option for cell in re.findall(r"^\| (`-.*?) \|", body, re.MULTILINE) for option in _options(cell)}
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def _options(cell: str) -> list[str]:
    return re.findall(r"(?<=`)--?[\w-]+", cell)


def test_every_command_is_described_with_all_its_options() -> None:
    assert sections() == commands()
