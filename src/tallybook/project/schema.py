"""Builds the JSON Schema of the YAML for editors, from the models that read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import TypeAdapter

from tallybook.model.dataset import Dataset
from tallybook.model.datasource import DataSource
from tallybook.model.period import Calendar
from tallybook.model.resolver import Resolver
from tallybook.model.settings import Settings
from tallybook.project.entities import OTHER_NAMES
from tallybook.project.key_descriptions import KEY_DESCRIPTIONS
from tallybook.project.model import Project

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODE: Literal["validation"] = "validation"
_KINDS: dict[str, tuple[Any, str]] = {
    "project": (Project, "A recipe: operations over one working dataset."),
    "dataset": (Dataset, "The columns of rows."),
    "resolver": (Resolver, "Finds the rows of a table for a period."),
    "datasource": (DataSource, "How to reach files or tables with rows."),
    "calendar": (Calendar, "The periods that a company uses."),
    "scenario": (dict[str, Any], "A test: given rows, a project and the expected results."),
}


def definitions_schema(models: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One schema for every kind of document; `models` has those of packages after this one."""
    by_name = {kind: (models or {}).get(kind, model) for kind, (model, _) in _KINDS.items()}
    inputs = [(kind, _MODE, TypeAdapter(model)) for kind, model in by_name.items()]
    by_kind, shared = TypeAdapter.json_schemas(inputs)
    bodies = {kind: by_kind[kind, _MODE] for kind in _KINDS}
    schema = {
        "$schema": DIALECT,
        "title": "Tallybook document",
        "description": "Exactly one key says what the document is.",
        "type": "object",
        "properties": {kind: body | {"description": _KINDS[kind][1]} for kind, body in bodies.items()},
        "additionalProperties": False,
        "oneOf": [{"required": [kind]} for kind in bodies],
    }
    return _finished(schema | {"$defs": shared["$defs"]})


def settings_schema() -> dict[str, Any]:
    """The schema of tallybook.yaml."""
    schema = TypeAdapter(Settings).json_schema(mode=_MODE)
    return _finished({"$schema": DIALECT} | schema | {"title": "Tallybook settings"}, root="Settings")


def _finished(schema: dict[str, Any], root: str = "") -> dict[str, Any]:
    definitions = schema.get("$defs", {})
    for name, definition in {root: schema, **definitions}.items():
        _explain(name, definition)
        _accept_other_names(definition)
    finished: dict[str, Any] = _by_type(_tidy(schema), _tidy(definitions))
    for name, definition in finished.get("$defs", {}).items():
        definition["title"] = _TITLES.get(name, _words(name))
    return finished | {key: _with_markdown(value) for key, value in finished.items()}


_TITLES = {"ColumnDef": "Column", "DatasetRef": "Dataset", "Grouping": "Groups"}
"""Titles of definitions that are not the words of their name. Editors show titles above descriptions."""


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()


def _with_markdown(value: Any) -> Any:
    """Adds each description as Markdown too: editors show the marks of code in a plain description as they stand."""
    if isinstance(value, list):
        return [_with_markdown(item) for item in value]
    if not isinstance(value, dict):
        return value
    added = {key: _with_markdown(item) for key, item in value.items()}
    description = value.get("description")
    if not isinstance(description, str):
        return added
    return added | {"markdownDescription": re.sub(r"\{\{\w+\}\}", r"`\g<0>`", description)}


def _explain(entity: str, definition: dict[str, Any]) -> None:
    for key, value in definition.get("properties", {}).items():
        meaning = KEY_DESCRIPTIONS.get(f"{entity}.{key}") or KEY_DESCRIPTIONS.get(key)
        if "description" not in value and meaning is not None:
            value["description"] = meaning


def _accept_other_names(definition: dict[str, Any]) -> None:
    """`parameters` for `arguments` and `order` for `seq`: either, not both."""
    properties, required = definition.get("properties", {}), definition.get("required", [])
    for name, other in OTHER_NAMES.items():
        if name not in properties:
            continue
        properties[other] = properties[name] | {"description": f"Another name for `{name}`."}
        choice: dict[str, Any] = {"oneOf": [{"required": [name]}, {"required": [other]}]}
        if name not in required:
            choice = {"not": {"required": [name, other]}}
        definition["required"] = required = [key for key in required if key != name]
        definition.setdefault("allOf", []).append(choice)


def _by_type(value: Any, definitions: dict[str, Any]) -> Any:
    """Writes a choice of entities by their `type` as a condition for each.

    An editor then offers and explains the keys that all have in common before there is a `type`, lists all types if
    one is wrong, and shows the problems of the chosen entity only. For a `oneOf` it takes the entity that fits best.
    """
    if isinstance(value, list):
        return [_by_type(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "discriminator" not in value:
        return {key: _by_type(item, definitions) for key, item in value.items()}
    rest = {key: item for key, item in value.items() if key not in ("discriminator", "oneOf")}
    key, references = value["discriminator"]["propertyName"], value["discriminator"]["mapping"]
    chosen = {type: definitions[reference.rpartition("/")[2]] for type, reference in references.items()}
    first, *others = (definition["properties"] for definition in chosen.values())
    common = {name: item for name, item in first.items() if all(other.get(name) == item for other in others)}
    type = {
        "enum": list(chosen),
        "enumDescriptions": [definition["description"] for definition in chosen.values()],
        "description": first[key]["description"],
    }
    cases = [
        {"if": {"properties": {key: {"const": type}}, "required": [key]}, "then": {"$ref": reference}}
        for type, reference in references.items()
    ]
    return rest | {"type": "object", "required": [key], "properties": {**common, key: type}, "allOf": cases}


_SCALARS = ("string", "integer", "number", "boolean")


def _tidy(value: Any) -> Any:
    """Removes noise: titles of keys, `null` for optional keys, nested choices."""
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    if not isinstance(value, dict):
        return value
    tidied = {key: _tidy(item) for key, item in value.items()}
    for definition in tidied.get("properties", {}).values():
        definition.pop("title", None)
        if definition.get("default", "") is None:
            del definition["default"]
    choices = tidied.get("anyOf")
    return tidied if choices is None else _merged(tidied, choices)


def _merged(schema: dict[str, Any], choices: list[dict[str, Any]]) -> dict[str, Any]:
    kept = [choice for choice in choices if choice != {"type": "null"}]
    rest = {key: item for key, item in schema.items() if key != "anyOf"}
    types = [choice["type"] for choice in kept if set(choice) == {"type"} and choice["type"] in _SCALARS]
    if len(types) == len(kept) == len(_SCALARS):
        return rest | {"type": ["string", "number", "boolean"]}
    return kept[0] | rest if len(kept) == 1 else rest | {"anyOf": kept}
