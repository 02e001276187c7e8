"""Writes the reference pages from the registries, so that they always match the product."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any

from tallybook.documents.schema import yaml_schema
from tallybook.errors import PROBLEM_TYPES
from tallybook.exit_codes import EXIT_CODES
from tallybook.expressions.elsewhere import EQUIVALENTS
from tallybook.expressions.functions import FAMILIES
from tallybook.expressions.registry import FUNCTIONS, Function, load_functions
from tallybook.operations.base import Operation
from tallybook.operations.registry import OPERATIONS
from tallybook.project.entities import OTHER_NAMES
from tallybook.project.key_descriptions import KEY_DESCRIPTIONS
from tallybook.project.schema import settings_schema

_GENERATED = "<!-- Generated from the registry: change the declaration, then run `pytest --update-golden`. -->"
_TITLES = {
    "logic": "Choices and logic",
    "comparisons": "Comparisons",
    "numbers": "Numbers",
    "text": "Text",
    "dates": "Dates and the run",
    "conversions": "Conversions",
    "aggregates": "Aggregates",
}
_NOTES = {
    "text": "Text is counted in Unicode code points and compared by them, case-sensitive.",
    "dates": "Timestamps are UTC. The examples are of a run for the period 2026-01.",
    "conversions": "Values are never converted implicitly. One that cannot be converted fails the run, or is NULL with "
    "the functions that begin with TRY.",
    "aggregates": "They are allowed in `aggregate`, in the `aggregation` of a source, in a `check`, and with `OVER` in "
    "an update. They skip NULLs. "
    "The examples are of three rows: `amount` is 10.00, 20.50 and NULL, `region` is EMEA, APAC and EMEA, `day` is "
    "2026-01-31, 2026-01-01 and 2026-01-31.",
}
_EXPRESSIONS = {"expression", "on", "selector", "source_selector", "when"}
"""The keys whose value is an expression."""
_DESCRIBED_ELSEWHERE: dict[str, tuple[str, ...]] = {"scenario": ("Project", "Dataset", "Resolver", "FileRows")}
_SCALARS = ("number", "true or false")
"""Types that a text key also accepts; their written form is the text."""
_WORDS = {"integer": "number", "number": "number", "boolean": "true or false", "object": "mapping"}
_WHEN = {"check": "before a run", "run": "during a run"}


def functions_page() -> str:
    """Returns the page of functions and operators, by family."""
    load_functions()
    every = list(dict.fromkeys(FUNCTIONS.values()))
    parts = [
        _GENERATED,
        "# Functions and operators",
        "[Expressions](expressions.md) describes how to combine them. Names may be written in any case. A NULL "
        "argument makes the result NULL unless stated otherwise. The last two columns name the nearest thing in a "
        "spreadsheet and in SQL; it may differ in details.",
    ]
    for family in FAMILIES:
        rows = [_function_row(function) for function in every if function.family == family]
        parts += [f"## {_TITLES[family]}", *([_NOTES[family]] if family in _NOTES else [])]
        parts.append(_table(("Written", "Meaning", "Type", "Example", "In Excel", "In SQL"), rows))
    return "\n\n".join(parts) + "\n"


def problems_page() -> str:
    """Returns the page of problem types."""
    rows = [
        (_code(type.name), _code(type.append_code or ""), _WHEN[type.when], type.meaning)
        for type in PROBLEM_TYPES.values()
    ]
    parts = [
        _GENERATED,
        "# Problems",
        "The problems that a workspace or its data can have. Those found before a run are all reported at once by "
        "`tallybook validate`; the code is that of the append rules, for problems of an `append`.",
        _table(("Type", "Code", "Found", "Meaning"), rows),
    ]
    return "\n\n".join(parts) + "\n"


def exit_codes_page() -> str:
    """Returns the page of exit codes."""
    rows = [
        (_code(str(exit.code)), exit.name, "yes" if exit.retry else "no", exit.meaning, exit.advice)
        for exit in EXIT_CODES
    ]
    types = {exit: [_code(type.name) for type in PROBLEM_TYPES.values() if type.exit is exit] for exit in EXIT_CODES}
    always = "; ".join(f"{', '.join(names)} ends with {exit.code}" for exit, names in types.items() if exit.retry)
    parts = [
        _GENERATED,
        "# Exit codes",
        "What a command returns to the shell or the scheduler that called it. Code 1 means that a person must look. A "
        "code with *yes* below *retry* means that the same command may succeed later, without a change of the project "
        "or the data.",
        _table(("Code", "Name", "Retry", "Meaning", "What a scheduler should do"), rows),
        f"Of the [types of problems](problems.md), {always}. Other problems end with 1, except where the cause is a "
        "full disk, a conflicting write or a file that changed during the run. The metadata store and Spark end a "
        "command with 4 or 5 if they are locked, cannot be reached or do not start.",
        "A command with several runs returns the code that all failures share, and 1 if they differ. `test`, `replay` "
        "and `validate` return 1 if something failed, differs or is wrong.",
        "The events of a run (`tallybook run --events FILE`) have the same code as `exit_code`, and `retry`. [Schedule "
        "runs](../howto/schedule.md) shows how schedulers use them.",
    ]
    return "\n\n".join(parts) + "\n"


def filled(page: str, tables: Mapping[str, str]) -> str:
    """Returns a page with the text between `<!-- table: NAME -->` and `<!-- end -->` replaced by the tables."""
    marked = re.compile(r"(<!-- table: (\S+) -->\n).*?(?=<!-- end -->)", re.DOTALL)
    return marked.sub(lambda mark: f"{mark[1]}\n{tables[mark[2]]}\n\n", page)


def key_tables() -> dict[str, str]:
    """Returns the tables of keys for settings, documents and operations, and the sections of all operations."""
    settings, definitions = settings_schema(), yaml_schema()
    schemas = definitions["$defs"]
    tables = {"settings": _Keys(settings["$defs"]).table(settings)}
    elsewhere = _DESCRIBED_ELSEWHERE | {"project": tuple(operation.__name__ for operation in OPERATIONS.values())}
    for kind, body in definitions["properties"].items():
        tables[kind] = _Keys(schemas, closed=elsewhere.get(kind, ())).table(body)
    tables["operation"] = _Keys(schemas).table(_shared_keys(schemas))
    tables["source"] = _Keys(schemas).table(schemas["Source"])
    tables["operations"] = "\n\n".join(_operation_section(name, schemas) for name in OPERATIONS)
    return tables


def _shared_keys(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema of the keys that all operations have."""
    schema: dict[str, Any] = schemas[next(iter(OPERATIONS.values())).__name__]
    shared = {key: value for key, value in schema["properties"].items() if key in Operation.model_fields}
    shared["type"] = shared["type"] | {"enum": list(OPERATIONS)}
    shared["arguments"] = {"type": "object", "description": KEY_DESCRIPTIONS["arguments"]}
    return schema | {"properties": shared}


def _operation_section(name: str, schemas: Mapping[str, Any]) -> str:
    operation = OPERATIONS[name]
    text = operation.reference or f"{operation.__doc__}\n\n{{arguments}}"
    table = _Keys(schemas).table(schemas[operation.__name__]["properties"]["arguments"])
    return f"## {name}\n\n{cleandoc(text).replace('{arguments}', table)}"


@dataclass
class _Keys:
    """Collects the keys of a JSON Schema, including nested ones, each with its possible values."""

    schemas: Mapping[str, Any]
    closed: Collection[str] = ()
    """Definitions that are described elsewhere, or already described."""
    rows: dict[str, tuple[list[str], str, str]] = field(default_factory=dict)
    described: set[str] = field(default_factory=set)

    def table(self, schema: Mapping[str, Any]) -> str:
        self._collect(schema, "")
        rows = [(_code(key), " or ".join(values), *rest) for key, (values, *rest) in self.rows.items()]
        return _table(("Key", "Value", "Default", "Meaning"), rows) if rows else "It has no arguments."

    def _collect(self, schema: Mapping[str, Any], path: str) -> None:
        """Collects the keys of the mappings that a value can be: itself, one of several, or the items of a list."""
        by_type = [case["then"] for case in schema.get("allOf", ()) if "then" in case]
        for choice in (*by_type, *schema.get("oneOf", ()), *schema.get("anyOf", ())):
            if "required" not in choice:
                self._collect(choice, path)
        if by_type:
            return
        name = schema.get("$ref", "").rpartition("/")[2]
        if name and name not in self.closed and name not in self.described:
            self.described.add(name)
            self._collect(self.schemas[name], path)
        if "items" in schema:
            self._collect(schema["items"], f"{path}[]")
        if isinstance(schema.get("additionalProperties"), dict):
            self._collect(schema["additionalProperties"], f"{path}.NAME")
        either = [rule["oneOf"][0] for rule in schema.get("allOf", ()) if "oneOf" in rule]
        required = {key for part in (schema, *either) for key in part.get("required", ())}
        for key, value in schema.get("properties", {}).items():
            if key not in OTHER_NAMES.values():
                self._note(f"{path}.{key}".removeprefix("."), key, value, key in required)

    def _note(self, path: str, key: str, value: Mapping[str, Any], required: bool) -> None:
        given = value.get("default")
        simple = "" if given is None or isinstance(given, dict | list) else _written(given)
        values, *_ = self.rows.setdefault(path, ([], "required" if required else simple, value.get("description", "")))
        words = _value(key, value)
        if words not in values:
            values.append(words)
        self._collect(value, path)


def _value(key: str, schema: Mapping[str, Any]) -> str:
    """Describes the possible values of a key."""
    kind, choices = schema.get("type"), schema.get("anyOf") or schema.get("oneOf")
    if "enum" in schema or "const" in schema:
        return ", ".join(_code(choice) for choice in schema.get("enum", [schema.get("const")]))
    if key in _EXPRESSIONS:
        return "expression"
    if choices:
        words = dict.fromkeys(_value(key, choice) for choice in choices)
        return " or ".join(word for word in words if "text" not in words or word not in _SCALARS)
    if kind == "array":
        return f"list of {_value(key, schema['items'])}".replace("mapping", "mappings")
    if "$ref" in schema:
        return "mapping"
    return _WORDS.get(str(kind), str(schema.get("format", "text")))


def _written(value: object) -> str:
    return _code(str(value).lower() if isinstance(value, bool) else f'"{value}"' if value in ("", ",") else str(value))


def _function_row(function: Function) -> Sequence[str]:
    others = f" Also {', '.join(function.aliases)}." if function.aliases else ""
    expression, result = function.example
    excel, sql = (name.replace("*", "\\*") for name in EQUIVALENTS[function.name])
    example = f"{_code(expression)} → {_code(result)}"
    return _code(function.signature), function.summary + others, function.result.words, example, excel, sql


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
