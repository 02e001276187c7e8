"""An editor with a YAML language server completes, explains and checks the files of a new workspace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.editor.server import Editor, editor

from tallybook.cli.scaffold import make_workspace
from tallybook.operations.registry import OPERATIONS

SERVER = Path(__file__).parents[2] / "build/editor/node_modules/yaml-language-server/bin/yaml-language-server"
FILES = ("tallybook.yaml", "datasets/sales.yaml", "locations/files.yaml", "projects/sales-close.yaml")
PROJECT = FILES[-1]

pytestmark = pytest.mark.editor


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    root = tmp_path_factory.mktemp("books")
    make_workspace(root)
    bound = json.loads((root / ".vscode/settings.json").read_text(encoding="utf-8"))
    settings = {"hover": True, "completion": True, "validate": True, "schemas": bound["yaml.schemas"]}
    with editor(SERVER, root, {"yaml": settings}) as server:
        yield server


def text_of(opened: Editor, name: str = PROJECT) -> str:
    return (opened.root / name).read_text(encoding="utf-8")


def place(text: str, words: str, after: bool = False) -> tuple[int, int]:
    """The line and column of the first occurrence of words, or of their end."""
    before = text[: text.index(words) + (len(words) if after else 1)]
    return before.count("\n"), len(before.rpartition("\n")[2])


@pytest.mark.parametrize("name", [*FILES, "scenarios/commission.yaml"])
def test_a_new_workspace_has_no_problems(opened: Editor, name: str) -> None:
    assert opened.problems(opened.open(name, text_of(opened, name))) == []


@pytest.mark.parametrize(
    ("name", "key", "words"),
    [
        (PROJECT, "input_dataset_id", "The dataset whose rows are the initial working dataset."),
        (PROJECT, "selectors", "Conditions with a name, used as `{{NAME}}` in any selector of the project."),
        (PROJECT, "seq", "Execution order; positive, unique, gaps allowed."),
        (PROJECT, "assignments", "The columns to set. All expressions see the row as it was before."),
        (PROJECT, "group_by", "The columns that make a group; NULL is a group of its own."),
        (PROJECT, "type: aggregate", "`aggregate`: Appends a summary row per group of the selected rows."),
        ("datasets/sales.yaml", "temporal_mode", "How rows depend on time: by `period`"),
        ("locations/files.yaml", "strategy", "Files at a path below the datasource's prefix."),
        ("tallybook.yaml", "name:", "The name of the workspace"),
    ],
)
def test_every_key_is_explained_where_it_is_written(opened: Editor, name: str, key: str, words: str) -> None:
    text = text_of(opened, name)
    assert words in opened.hover(opened.open(name, text), *place(text, key))


def test_the_types_of_operations_are_offered(opened: Editor) -> None:
    text = text_of(opened).replace("type: delete", "type: ")
    uri = opened.open("projects/types.yaml", text)
    assert set(opened.complete(uri, *place(text, "not count\n      type: ", after=True))) == set(OPERATIONS)


@pytest.mark.parametrize(
    ("operation", "keys"),
    [
        ("name: Cut\n      ", {"description", "id", "selector", "seq", "type"}),
        ("type: delete\n      ", {"description", "id", "name", "selector", "seq"}),
        ("type: aggregate\n      arguments:\n        ", {"group_by", "aggregations"}),
        ("type: output\n      arguments:\n        ", {"destination", "mode", "columns", "exclude_columns"}),
    ],
)
def test_the_keys_of_an_operation_are_offered(opened: Editor, operation: str, keys: set[str]) -> None:
    text = f"project:\n  id: cut\n  operations:\n    - {operation}\n"
    uri = opened.open(f"projects/{operation.split()[1]}.yaml", text)
    assert keys <= set(opened.complete(uri, *place(text, operation, after=True)))


@pytest.mark.parametrize(
    ("right", "wrong", "problem", "marked"),
    [
        (
            "type: update",
            "type: updat",
            "Valid values: " + ", ".join(f'"{name}"' for name in sorted(OPERATIONS)),
            "updat",
        ),
        ("name: Charge", "nane: 5\n      name: Charge", "Property nane is not allowed.", "nane"),
        ("seq: 20", "seq: first", 'Incorrect type. Expected "integer".', "first"),
        ("input_dataset_id: sales", "", 'Missing property "input_dataset_id".', "project"),
    ],
)
def test_a_mistake_is_marked_where_it_is(opened: Editor, right: str, wrong: str, problem: str, marked: str) -> None:
    text = text_of(opened).replace(right, wrong)
    [found] = opened.problems(opened.open(f"projects/{marked}.yaml", text))
    line, column = place(text, marked)
    assert problem in found["message"]
    assert found["range"]["start"] == {"line": line, "character": column - 1}
