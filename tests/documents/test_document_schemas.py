"""The published JSON Schemas: committed as the code makes them, one for each command, every key explained."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer
from jsonschema import Draft202012Validator, ValidationError
from tests.documents.kit import SCHEMAS, schema_of

from tallybook.cli import main
from tallybook.cli.app import app
from tallybook.documents.schema import DOCUMENTS, OTHERS, file_name, published_schemas

PUBLISHED = published_schemas()


@pytest.mark.parametrize("file", PUBLISHED)
def test_the_committed_schema_is_current(file: str, golden: Any) -> None:
    golden(SCHEMAS / file, json.dumps(PUBLISHED[file], indent=2) + "\n")


def test_no_other_schema_is_committed() -> None:
    assert {str(path.relative_to(SCHEMAS)) for path in SCHEMAS.rglob("*.json")} == set(PUBLISHED)


def test_every_command_has_a_schema() -> None:
    assert main.MODULES

    def commands(group: Any, prefix: str = "") -> set[str]:
        nested = {name: command for name, command in group.commands.items() if hasattr(command, "commands")}
        inner = [commands(command, f"{prefix}{name} ") for name, command in nested.items()]
        own = {name for name, command in nested.items() if command.invoke_without_command}
        return {prefix + name for name in group.commands if name not in nested or name in own}.union(*inner)

    assert commands(typer.main.get_command(app)) == set(DOCUMENTS)


@pytest.mark.parametrize("command", [*DOCUMENTS, *OTHERS])
def test_a_schema_explains_every_key_and_allows_no_other(command: str) -> None:
    schema = PUBLISHED[f"documents/{file_name(command)}"]
    Draft202012Validator.check_schema(schema)
    for name, definition in {"the document": schema, **schema.get("$defs", {})}.items():
        if "properties" in definition:
            assert definition["additionalProperties"] is False
            silent = [key for key, value in definition["properties"].items() if not value.get("description")]
            assert silent == [], f"say what these keys of {name} mean in a text below the field"


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"upgraded": "yes"}, id="another type"),
        pytest.param({"upgraded": True, "more": 1}, id="another key"),
        pytest.param({}, id="a missing key"),
    ],
)
def test_a_document_of_another_form_is_refused(document: dict[str, Any]) -> None:
    schema_of("store upgrade").validate({"upgraded": True})
    with pytest.raises(ValidationError):
        schema_of("store upgrade").validate(document)
