"""Values of YAML become entities: text keys keep the user's own characters, and wrong values become problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tallybook.errors import Problem
from tallybook.workspace import Workspace

Validate = Callable[[Mapping[str, str | bytes]], list[Problem]]

DATASET = """\
dataset:
  id: 42
  name: 2026-01
  description: true
  main_table:
    name: NO
    columns:
      - {name: on, type: integer}
      - {name: yes, type: string, source: 007}
      - {name: off, type: date, description: 1.50}
"""
PROJECT = """\
project:
  id: 2026.01
  name: 7
  input_dataset_id: 42
  selectors:
    ON: NO.on > 0
  operations:
    - id: 001
      seq: 1
      name: 2026-01-31
      type: update
      selector: TRUE
      arguments:
        assignments:
          - {column: rate, expression: 0.10}
          - {column: whole, expression: 007}
          - {column: on, expression: NULL}
          - {column: flag, expression: true}
    - order: 2
      name: Remove
      type: delete
      selector: "{{ON}}"
      parameters: {}
"""


def test_text_is_what_was_written(validate: Validate, sound: Path) -> None:
    assert validate({"dataset.yaml": DATASET, "project.yaml": PROJECT}) == []

    definitions = Workspace.open(sound).definitions
    dataset = definitions.datasets["42"].entity
    assert (dataset.name, dataset.description, dataset.main_table.name) == ("2026-01", "true", "NO")
    assert [column.name for column in dataset.main_table.columns] == ["on", "yes", "off"]
    assert [column.source for column in dataset.main_table.columns] == [None, "007", None]
    assert dataset.main_table.columns[2].description == "1.50"

    project = definitions.projects["2026.01"].project
    assert project is not None
    update, delete = project.operations
    assert (project.name, update.id, update.name, update.selector) == ("7", "001", "2026-01-31", "true")
    expressions = [assignment.expression for assignment in update.arguments.assignments]  # type: ignore[union-attr]  # an update
    assert expressions == ["0.10", "007", "NULL", "true"]
    assert (delete.seq, delete.selector) == (2, "{{ON}}")


def test_exact_decimals_are_not_floats(validate: Validate, sound: Path) -> None:
    assert validate({"dataset.yaml": DATASET, "project.yaml": PROJECT}) == []
    first = Workspace.open(sound).checked.bound["2026.01"].steps[0]
    assert str(first.after.business["rate"]) == "decimal(2,2)"
    assert str(first.after.business["whole"]) == "integer"
    assert str(first.after.business["on"]) == "integer"


WRONG = {
    "a list for text": ("  name: [a]\n", "'name' must be text, but it is a list"),
    "a map for text": ("  name: {a: 1}\n", "'name' must be text, but it is a map"),
    "nothing for text": ("  name:\n", "'name' must be text, but it is nothing"),
    "blank text": ('  name: ""\n', "'name' must not be empty"),
    "text for a list": ("  name: N\n  lookups: none\n", "'lookups' must be a list, but it is 'none'"),
    "text for a map": ("  name: N\n  main_table: t\n", "'main_table' must be a map of keys and values, but it is 't'"),
    "a wrong choice": ("  name: N\n  status: on\n", "'on' is not a valid value for 'status'"),
    "a wrong id": ("  name: N\n  resolver_id: a b\n", "'a b' is not a valid value for 'resolver_id'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_value_of_another_kind_is_named(case: str, validate: Validate) -> None:
    lines, said = WRONG[case]
    table = "" if "main_table" in lines else "  main_table: {name: t, columns: [{name: a, type: string}]}\n"
    [problem] = validate({"dataset.yaml": f"dataset:\n  id: d\n{lines}{table}"})
    assert (problem.type, problem.message) == ("InvalidArguments", said)
    assert problem.place is not None
    assert problem.place.line == 2 + lines.count("\n")


@pytest.mark.parametrize("type", ["strin", "decimal(39,2)", "decimal(2,3)", "decimal(10)", "12", ""])
def test_a_type_that_is_none(type: str, validate: Validate) -> None:
    columns = f"[{{name: a, type: '{type}'}}, {{name: b, type: string}}]"
    [problem] = validate(
        {"d.yaml": f"dataset:\n  id: d\n  name: D\n  main_table:\n    name: t\n    columns: {columns}\n"}
    )
    assert (problem.type, problem.path) == ("InvalidArguments", "dataset.main_table.columns[0].type")
    assert "type" in problem.message


def of_operation(operation: str) -> str:
    return f"project: {{id: p, name: P, input_dataset_id: budgets, operations: [{operation}]}}"


UNKNOWN_KEYS = {
    "dataset.x": "dataset: {x: 1, id: d, name: D, main_table: {name: t, columns: [{name: a, type: string}]}}",
    "dataset.main_table.x": (
        "dataset: {id: d, name: D, main_table: {x: 1, name: t, columns: [{name: a, type: string}]}}"
    ),
    "dataset.main_table.columns[0].x": (
        "dataset: {id: d, name: D, main_table: {name: t, columns: [{name: a, type: string, x: 1}]}}"
    ),
    "dataset.lookups[0].target.x": (
        "dataset: {id: d, name: D, main_table: {name: t, columns: [{name: a, type: string}]}, lookups: "
        "[{alias: l, target: {dataset_id: customers, x: 1}, "
        "join_conditions: [{source_column: a, target_column: id}]}]}"
    ),
    "dataset.lookups[0].target.columns[0].x": (
        "dataset: {id: d, name: D, main_table: {name: t, columns: [{name: a, type: string}]}, lookups: "
        "[{alias: l, target: {name: u, columns: [{name: b, type: string, x: 1}]}, "
        "join_conditions: [{source_column: a, target_column: b}]}]}"
    ),
    "dataset.lookups[0].join_conditions[0].x": (
        "dataset: {id: d, name: D, main_table: {name: t, columns: [{name: a, type: string}]}, lookups: "
        "[{alias: l, target: {dataset_id: customers}, "
        "join_conditions: [{source_column: a, target_column: id, x: 1}]}]}"
    ),
    "datasource.x": "datasource: {id: d, type: csv, options: {path_prefix: p}, x: 1}",
    "datasource.options.x": "datasource: {id: d, type: csv, options: {path_prefix: p, x: 1}}",
    "resolver.x": "resolver: {id: r, x: 1, rules: [{name: n, strategy: {type: path, datasource_id: files, path: p}}]}",
    "resolver.rules[0].x": (
        "resolver: {id: r, rules: [{name: n, x: 1, strategy: {type: path, datasource_id: files, path: p}}]}"
    ),
    "resolver.rules[0].strategy.x": (
        "resolver: {id: r, rules: [{name: n, strategy: {type: path, datasource_id: files, path: p, x: 1}}]}"
    ),
    "calendar.x": "calendar: {id: c, x: 1, levels: [{name: year, identifier: '{{YYYY}}'}]}",
    "calendar.levels[0].x": "calendar: {id: c, levels: [{name: year, identifier: '{{YYYY}}', x: 1}]}",
    "project.x": of_operation("{seq: 1, name: N, type: delete}").replace("id: p", "id: p, x: 1"),
    "project.operations[0].x": of_operation("{seq: 1, name: N, type: delete, x: 1}"),
    "project.operations[0].arguments.x": of_operation("{seq: 1, name: N, type: delete, arguments: {x: 1}}"),
    "project.operations[0].parameters.assignments[0].x": of_operation(
        "{seq: 1, name: N, type: update, parameters: {assignments: [{column: a, expression: 1, x: 1}]}}"
    ),
    "project.operations[0].arguments.joins[0].x": of_operation(
        "{seq: 1, name: N, type: update, arguments: {joins: [{alias: c, dataset_id: customers, on: 'owner = c.id', "
        "x: 1}], assignments: [{column: a, expression: 1}]}}"
    ),
    "project.operations[0].arguments.destination.location.x": of_operation(
        "{seq: 1, name: N, type: output, arguments: {destination: {location: {path: out.csv, x: 1}}}}"
    ),
}


@pytest.mark.parametrize("path", UNKNOWN_KEYS)
def test_an_unknown_key_is_found_on_every_level_and_hides_nothing(path: str, validate: Validate) -> None:
    [problem] = validate({"wrong.yaml": UNKNOWN_KEYS[path]})
    assert (problem.type, problem.path, problem.message) == ("UnknownKey", path, "unknown key 'x'")
    assert problem.hint is not None
    assert problem.place is not None
    assert problem.place.text[problem.place.column - 1 :].startswith("x: 1")


def test_a_comma_that_splits_a_type(validate: Validate) -> None:
    table = "{name: t, columns: [{name: a, type: decimal(18,2)}]}"
    first, second = validate({"wrong.yaml": f"dataset: {{id: d, name: D, main_table: {table}}}"})
    assert first.hint == 'inside {…}, put a type with a comma in quotes: "decimal(18,2)"'
    assert second.type == "UnknownKey"


@pytest.mark.parametrize("where", ["store: {}", "environments: {{prod: {{store: '{}'}}}}"])
def test_a_store_is_sqlite_or_postgresql(validate: Validate, where: str) -> None:
    (problem,) = validate({"tallybook.yaml": f"name: n\n{where.format('mysql://me@host/db')}\n"})
    assert problem.type == "InvalidArguments"
    assert "a store is `sqlite:///path/to/file` or `postgresql://user@host/database`" in problem.message
    for url in ("sqlite:///state.db", "postgresql://me@host/db", "postgres://host/db", "postgresql+psycopg://host/db"):
        assert validate({"tallybook.yaml": f"name: n\n{where.format(url)}\n"}) == []


def test_unknown_keys_of_the_settings(validate: Validate) -> None:
    first, second = validate({"tallybook.yaml": "name: n\nsandbx: s\nspark: {mater: local}\n"})
    assert (first.path, first.hint, second.path, second.hint) == (
        "sandbx",
        "did you mean 'sandbox'?",
        "spark.mater",
        "did you mean 'master'?",
    )


@pytest.mark.parametrize(("name", "other"), [("seq", "order"), ("arguments", "parameters")])
def test_a_key_and_its_other_name_together(name: str, other: str, validate: Validate) -> None:
    keys = {"seq": "{}: 1", "arguments": "{}: {{}}"}
    both = ", ".join(keys[name].format(key) for key in (name, other))
    rest = "seq: 1, " if name != "seq" else ""
    operation = f"{{{rest}{both}, name: N, type: delete}}"
    project = f"project: {{id: p, name: P, input_dataset_id: budgets, operations: [{operation}]}}"
    [problem] = validate({"wrong.yaml": project})
    assert (problem.type, problem.path) == ("InvalidArguments", f"project.operations[0].{other}")
    assert problem.message == f"'{name}' and '{other}' are two names for the same key"
