"""The JSON Schema of the YAML, for editors: every key explained, and of one mind with the reader of the YAML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tallybook.documents.schema import yaml_schema
from tallybook.project.schema import settings_schema


def entities() -> Iterator[tuple[str, dict[str, Any]]]:
    for schema in (yaml_schema(), settings_schema()):
        yield from schema["$defs"].items()
        yield schema["title"], schema


@pytest.mark.parametrize(("name", "definition"), list(entities()))
def test_every_key_is_explained_and_no_other_is_allowed(name: str, definition: dict[str, Any]) -> None:
    assert definition["additionalProperties"] is False
    silent = [key for key, value in definition["properties"].items() if not value.get("description")]
    assert silent == [], f"say what they mean in KEY_DESCRIPTIONS, under '{name}.<key>'"


def test_one_key_says_what_a_document_is() -> None:
    schema = yaml_schema()
    assert schema["oneOf"] == [{"required": [kind]} for kind in schema["properties"]]


def test_other_names_of_keys_are_accepted() -> None:
    update = yaml_schema()["$defs"]["Update"]
    assert update["properties"]["parameters"]["$ref"] == update["properties"]["arguments"]["$ref"]
    assert update["properties"]["order"]["type"] == "integer"
    assert update["required"] == ["name", "type"]
