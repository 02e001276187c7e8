"""The example workspaces are valid as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallybook.workspace import Workspace

EXAMPLES = sorted(path.parent for path in (Path(__file__).parents[2] / "examples").glob("*/tallybook.yaml"))


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_the_example_is_valid(folder: Path) -> None:
    assert [str(problem) for problem in Workspace.open(folder).validate()] == []


def test_the_annotated_example_of_the_operations_document() -> None:
    """Its five operations, with the ids and names the document gives them, over the datasets it names."""
    checked = Workspace.open(EXAMPLES[0].parent / "orders").checked
    bound = checked.bound["order-close"]
    assert [(step.seq, step.type, step.name) for step in bound.steps] == [
        (1, "update", "Tag EMEA orders"),
        (2, "update", "Add customer tier and discounted price"),
        (3, "aggregate", "Monthly totals"),
        (4, "delete", "Remove zero-amount rows"),
        (5, "output", "Write to warehouse"),
    ]
    made = {name: str(type) for name, type in bound.steps[-1].after.business.items()}
    assert {name: made[name] for name in ("customer_tier", "discounted_price", "total_sales", "order_count")} == {
        "customer_tier": "string",
        "discounted_price": "decimal(20,3)",
        "total_sales": "decimal(28,2)",
        "order_count": "integer",
    }
