"""Every rule of the source documents has a test, and the reference page says which."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "rules.md"
RULES = {
    **{f"BR-{i:03}": "operations" for i in range(1, 16)},
    **{f"BR-008{letter}": "operations" for letter in "abc"},
    **{f"VR-{i:03}": "update" for i in range(1, 9)},
    **{f"APPEND_{i:03}": "append" for i in range(1, 9)},
    **{f"ALIGN-{i}": "append, schema alignment" for i in range(1, 4)},
    **{f"TEMPORAL-{i}": "append, temporal filtering" for i in range(1, 4)},
    **{f"V-{i:03}": "output" for i in range(1, 8)},
    **{f"INV-{i}": "aggregate, invariants" for i in range(1, 7)},
    **{
        f"EDGE-{name}": "aggregate, edge cases"
        for name in ("zero-rows", "single-group", "null-group", "null-values", "all-null")
    },
}
"""The ids of the source documents, and for lists without ids the ones they go by here."""


@cache
def marked_tests() -> dict[str, list[str]]:
    """Read from the `@rule(...)` marks, wherever in the tests they stand."""
    found: dict[str, list[str]] = {}
    for path in sorted(HERE.parent.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "rule":
                    for argument in mark.args:
                        assert isinstance(argument, ast.Constant)
                        name = f"{path.relative_to(HERE.parent).as_posix()}::{node.name}"
                        found.setdefault(str(argument.value), []).append(name)
    return found


def page() -> str:
    found = marked_tests()
    rows = "".join(
        f"| {rule} | {subject} | {'<br>'.join(f'`{test}`' for test in found.get(rule, []))} |\n"
        for rule, subject in RULES.items()
    )
    return (
        "# Rules and their tests\n\n"
        "Every rule of the source documents, and the tests under `tests/` that show it. Made from the marks in the "
        "tests.\n\n| rule | about | tests |\n|---|---|---|\n" + rows
    )


def test_every_rule_has_a_test() -> None:
    assert [rule for rule in RULES if rule not in marked_tests()] == []


def test_every_mark_names_a_rule() -> None:
    assert [rule for rule in marked_tests() if rule not in RULES] == []


def test_the_reference_page_is_current(golden: Callable[[Path, str], None]) -> None:
    golden(PAGE, page())
