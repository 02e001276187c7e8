"""The checker on parameters: their declaration, and every expression of a project that reads one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallybook.errors import Problem
from tallybook.project.lifecycle import is_structural_change

Check = Callable[..., list[Problem]]
EVERYWHERE = """
- seq: 1
  name: Mark
  type: update
  selector: '{{large}}'
  arguments:
    joins:
      - {alias: c, dataset_id: customers, on: c.id = customer_id AND c.tier = params.tier}
    assignments: [{column: share, expression: amount / params.threshold}]
- seq: 2
  name: Totals
  type: aggregate
  selector: amount > params.threshold
  arguments:
    group_by: [region]
    aggregations: [{column: total, expression: SUM(amount) - params.threshold}]
- seq: 3
  name: Budgets
  type: append
  arguments:
    source: {dataset_id: budgets}
    source_selector: owner = params.tier
    aggregation:
      group_by: [region]
      aggregations: [{column: amount, expression: SUM(amount) * params.threshold}]
- {seq: 4, name: Old, type: delete, selector: order_date < params.since}
"""
PARAMETERS = "{threshold: {type: decimal, default: 1000}, tier: {type: string, default: gold}, since: {type: date}}"


def test_every_expression_of_a_project_may_read_parameters(of_operations: Check) -> None:
    assert of_operations(EVERYWHERE, parameters=PARAMETERS, selectors="{large: amount > params.threshold}") == []


@pytest.mark.parametrize(
    ("parameters", "type", "path"),
    [
        ("{threshold: {type: decimal, default: many}}", "TypeMismatch", "parameters.threshold.default"),
        ("{since: {type: date, default: 31.01.2026}}", "TypeMismatch", "parameters.since.default"),
        ("{the limit: {type: decimal}}", "InvalidArguments", "parameters.the limit"),
        ("{_labels: {type: string}}", "SystemColumn", "parameters._labels"),
        ("{threshold: {type: number}}", "InvalidArguments", "parameters.threshold.type"),
        ("{threshold: {type: decimal, value: 5}}", "UnknownKey", "parameters.threshold.value"),
        ("{threshold: {default: 5}}", "InvalidArguments", "parameters.threshold.type"),
    ],
)
def test_a_wrong_declaration_has_its_place(of_operations: Check, parameters: str, type: str, path: str) -> None:
    (problem,) = of_operations("- {seq: 1, name: D, type: delete}", parameters=parameters)
    assert (problem.type, problem.path, problem.project) == (type, f"project.{path}", "close")
    assert problem.place is not None and problem.place.file == "project.yaml"


def test_the_name_params_is_taken_once_a_project_has_parameters(of_operations: Check) -> None:
    joining = """
    - seq: 1
      name: Join
      type: update
      arguments:
        joins: [{alias: params, dataset_id: customers, on: params.id = customer_id}]
        assignments: [{column: tier, expression: params.tier}]
    """
    assert of_operations(joining) == [], "a project without parameters may use the name as before"
    problem, *_ = of_operations(joining, parameters=PARAMETERS)
    assert (problem.type, problem.message) == (
        "DuplicateColumn",
        "the alias 'params' is already used for parameters here",
    )


def test_an_input_table_called_params_and_parameters_do_not_go_together(validate: Callable[..., list[Problem]]) -> None:
    dataset = "{id: limits, name: L, main_table: {name: params, columns: [{name: amount, type: integer}]}}"
    project = "{id: p, name: P, input_dataset_id: limits, parameters: {x: {type: integer}}, operations: OPERATIONS}"
    operations = "[{seq: 1, name: D, type: delete, selector: params.amount = 0}]"
    wrong = f"dataset: {dataset}\n---\nproject: {project.replace('OPERATIONS', operations)}\n"
    (problem,) = validate({"p.yaml": wrong})
    assert (problem.type, problem.path) == ("DuplicateColumn", "project.parameters")


def test_a_new_default_makes_a_draft_and_a_new_description_does_not() -> None:
    project = {"operations": [], "parameters": {"x": {"type": "integer", "default": "1", "description": "a"}}}
    described = {"operations": [], "parameters": {"x": {"type": "integer", "default": "1", "description": "b"}}}
    changed = {"operations": [], "parameters": {"x": {"type": "integer", "default": "2", "description": "a"}}}
    assert not is_structural_change(project, described)
    assert is_structural_change(project, changed)


@pytest.mark.parametrize("text", ["${HOME}", "{{HOME}}"])
@pytest.mark.parametrize(
    ("file", "document", "path"),
    [
        (
            "s.yaml",
            "datasource: {id: s, type: csv, options: {path_prefix: 'a/TEXT'}}",
            "datasource.options.path_prefix",
        ),
        (
            "s.yaml",
            "datasource: {id: s, type: database, options: {url: 'postgresql://h/TEXT'}}",
            "datasource.options.url",
        ),
        ("s.yaml", "datasource: {id: s, type: spark_catalog, options: {schema: 'TEXT'}}", "datasource.options.schema"),
        ("tallybook.yaml", "{name: golden, sandbox: 'TEXT/sandbox'}", "sandbox"),
        ("tallybook.yaml", "{name: golden, store: 'sqlite:///TEXT/x.db'}", "store"),
        (
            "r.yaml",
            "resolver: {id: r, rules: [{name: a, strategy: {type: path, datasource_id: files, path: 'TEXT/a'}}]}",
            "resolver.rules[0].strategy.path",
        ),
        (
            "r.yaml",
            "resolver: {id: r, rules: [{name: a, strategy: {type: table, datasource_id: files, table: 'TEXT'}}]}",
            "resolver.rules[0].strategy.table",
        ),
    ],
)
def test_a_token_that_nothing_replaces_is_a_problem(
    validate: Callable[..., list[Problem]], text: str, file: str, document: str, path: str
) -> None:
    """Otherwise a folder would be called `${HOME}`."""
    (problem,) = validate({file: document.replace("TEXT", text)})
    assert (problem.type, problem.path) == ("UnknownToken", path)
    assert problem.place is not None and text in problem.message and problem.hint


@pytest.mark.parametrize("text", ["${HOME}", "{{HOME}}"])
@pytest.mark.parametrize("destination", ["{location: 'out/TEXT.csv'}", "{datasource_id: files, table: 'TEXT'}"])
def test_an_output_has_no_such_token_either(of_operations: Check, text: str, destination: str) -> None:
    arguments = f"{{destination: {destination.replace('TEXT', text)}}}"
    (problem,) = of_operations(f"- {{seq: 1, name: Write, type: output, arguments: {arguments}}}")
    assert (problem.type, problem.seq) == ("UnknownToken", 1)
