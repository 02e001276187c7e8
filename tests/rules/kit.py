"""What rule tests share: the mark that ties a test to a rule, and the problems of a project."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import dedent, indent
from typing import Any, TypeVar

from tests.kit.workspaces import CSV_OF_EACH_TABLE

from tallybook.errors import Problem
from tallybook.project.check import check
from tallybook.project.load import load_definitions

T = TypeVar("T", bound=Callable[..., Any])

DATASETS = """
    dataset:
      id: sales
      name: Sales
      main_table:
        name: orders
        temporal_mode: period
        columns:
          - {name: order_id, type: string}
          - {name: region, type: string}
          - {name: status, type: string}
          - {name: amount, type: "decimal(10,2)"}
          - {name: quantity, type: integer}
    ---
    dataset:
      id: customers
      name: Customers
      main_table: {name: customers, columns: [{name: id, type: string}, {name: tier, type: string}]}
    ---
    dataset:
      id: budget
      name: Budget
      main_table:
        name: budget
        columns:
          - {name: region, type: string}
          - {name: amount, type: "decimal(10,2)"}
          - {name: budget_type, type: string}
    ---
""" + indent(CSV_OF_EACH_TABLE, "    ")


def rule(*ids: str) -> Callable[[T], T]:
    """Ties a test to the rules it shows; the reference page lists them from here."""

    def mark(test: T) -> T:
        return test

    assert ids
    return mark


def problems_of(folder: Path, operations: str, *, head: str = "", datasets: str = DATASETS) -> list[Problem]:
    """The problems of a project over `sales` with these operations."""
    (folder / "tallybook.yaml").write_text("name: rules\n")
    (folder / "datasets.yaml").write_text(dedent(datasets))
    body = f"project:\n  id: p\n  name: P\n  input_dataset_id: sales\n{_indent(head, 2)}  operations:\n"
    (folder / "project.yaml").write_text(body + _indent(operations, 4))
    return list(check(load_definitions(folder)).problems)


def _indent(text: str, width: int) -> str:
    lines = dedent(text).strip("\n").splitlines()
    return "".join(f"{' ' * width}{line}\n" for line in lines)


def types(problems: Iterable[Problem]) -> list[str]:
    return [problem.type for problem in problems]
