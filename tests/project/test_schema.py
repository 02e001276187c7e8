"""The JSON Schema for editors: committed, current, explained, and of one mind with the reader of the YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallybook.cli.schema import whole_schema
from tallybook.project.schema import settings_schema

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("file", "schema"), [("tallybook.schema.json", whole_schema()), ("settings.schema.json", settings_schema())]
)
def test_the_committed_schema_is_current(file: str, schema: dict[str, Any]) -> None:
    committed = json.loads((ROOT / "schema" / file).read_text(encoding="utf-8"))
    option = " --settings" if "settings" in file else ""
    assert committed == schema, f"write it anew: tallybook schema{option} > schema/{file}"


def entities() -> Iterator[tuple[str, dict[str, Any]]]:
    for schema in (whole_schema(), settings_schema()):
        yield from schema["$defs"].items()
        yield schema["title"], schema


@pytest.mark.parametrize(("name", "definition"), list(entities()))
def test_every_key_is_explained_and_no_other_is_allowed(name: str, definition: dict[str, Any]) -> None:
    assert definition["additionalProperties"] is False
    silent = [key for key, value in definition["properties"].items() if not value.get("description")]
    assert silent == [], f"say what they mean in MEANINGS, under '{name}.<key>'"


def test_one_key_says_what_a_document_is() -> None:
    schema = whole_schema()
    assert schema["oneOf"] == [{"required": [kind]} for kind in schema["properties"]]


def test_other_names_of_keys_are_accepted() -> None:
    update = whole_schema()["$defs"]["Update"]
    assert update["properties"]["parameters"]["$ref"] == update["properties"]["arguments"]["$ref"]
    assert update["properties"]["order"]["type"] == "integer"
    assert update["required"] == ["name", "type"]
