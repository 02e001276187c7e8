"""The checker follows the schema through the operations in order, and reports all problems at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tallybook.errors import Problem
from tallybook.workspace import Workspace

Validate = Callable[[Mapping[str, str | bytes]], list[Problem]]
OfOperations = Callable[..., list[Problem]]


def facts(problems: list[Problem]) -> list[tuple[str, int | None, int | None]]:
    """Type, seq and line of each."""
    return [(problem.type, problem.seq, problem.place.line if problem.place else None) for problem in problems]


def test_columns_of_updates_and_aggregates_are_there_afterwards_and_not_before(of_operations: OfOperations) -> None:
    problems = of_operations("""
- {seq: 10, name: Too early, type: delete, selector: net > 0 OR total > 0}
- {seq: 20, name: Make, type: update, arguments: {assignments: [{column: net, expression: amount * 0.9}]}}
- seq: 30
  name: Sum
  type: aggregate
  arguments: {group_by: [region], aggregations: [{column: total, expression: SUM(net)}]}
- {seq: 40, name: Now, type: delete, selector: net > 0 OR total > 0 OR orders.net = orders.total}
""")
    assert facts(problems) == [("ColumnNotFound", 10, 6), ("ColumnNotFound", 10, 6)]


def test_operations_are_checked_by_seq_and_not_as_written(of_operations: OfOperations) -> None:
    assert not of_operations("""
- {seq: 2, name: Use, type: delete, selector: net > 0}
- {seq: 1, name: Make, type: update, arguments: {assignments: [{column: net, expression: amount * 0.9}]}}
""")


def test_assignments_see_the_row_as_it_was(of_operations: OfOperations) -> None:
    problems = of_operations("""
- seq: 1
  name: Make
  type: update
  arguments:
    assignments:
      - {column: net, expression: amount * 0.9}
      - {column: tax, expression: net * 0.2}
""")
    assert facts(problems) == [("ColumnNotFound", 1, 12)]


def test_the_type_of_a_made_column_counts(of_operations: OfOperations) -> None:
    problems = of_operations("""
- {seq: 1, name: Make, type: update, arguments: {assignments: [{column: net, expression: amount * 0.9}]}}
- {seq: 2, name: Text, type: update, arguments: {assignments: [{column: net, expression: "'none'"}]}}
- {seq: 3, name: Whole, type: update, arguments: {assignments: [{column: net, expression: 1}]}}
- {seq: 4, name: Compare, type: delete, selector: net = "none"}
""")
    assert facts(problems) == [("TypeMismatch", 2, 7), ("TypeMismatch", 4, 9)]


JOIN = """
- seq: 1
  name: Enrich
  type: update
  selector: c.tier = "gold"
  arguments:
    joins:
      - {alias: c, dataset_id: customers, on: orders.customer_id = c.id}
      - {alias: again, dataset_id: customers, on: c.id = again.id AND rates.rate > 0}
    assignments:
      - {column: tier, expression: again.tier}
"""


def test_join_aliases_are_seen_in_their_operation_only(of_operations: OfOperations) -> None:
    problems = of_operations(JOIN + '- {seq: 2, name: After, type: delete, selector: c.tier = "gold"}\n')
    assert [(problem.type, problem.seq, problem.message) for problem in problems] == [
        ("ColumnNotFound", 2, "there is no table or alias 'c' here")
    ]


def test_a_join_condition_sees_earlier_aliases_only(of_operations: OfOperations) -> None:
    swapped = JOIN.replace("on: orders.customer_id = c.id", "on: orders.customer_id = again.id")
    assert facts(of_operations(swapped)) == [("ColumnNotFound", 1, 12)]


@pytest.mark.parametrize("alias", ["orders", "rates", "again"])
def test_an_alias_shadows_nothing(alias: str, of_operations: OfOperations) -> None:
    problems = of_operations(JOIN.replace("alias: c,", f"alias: {alias},").replace("c.", "customers."))
    assert ("DuplicateColumn", 1, 12 if alias != "again" else 13) in facts(problems)


def test_lookups_are_read_everywhere_but_are_no_columns_of_the_rows(of_operations: OfOperations) -> None:
    problems = of_operations("""
- {seq: 1, name: Read, type: update, arguments: {assignments: [{column: tax, expression: amount * rates.rate}]}}
- {seq: 2, name: Choose, type: delete, selector: rates.rate IS NULL}
- seq: 3
  name: Sum
  type: aggregate
  selector: rates.rate > 0
  arguments: {group_by: [rates.region], aggregations: [{column: best, expression: MAX_AGG(rates.rate)}]}
- seq: 4
  name: Write
  type: output
  selector: rates.rate > 0
  arguments: {destination: {location: out.parquet}, columns: [rates.rate]}
""")
    assert facts(problems) == [("ColumnNotFound", 3, 12), ("ColumnProjectionError", 4, 17)]


def test_every_problem_at_once_in_file_order_with_all_its_facts(validate: Validate) -> None:
    problems = validate(
        {
            "a.yaml": "dataset: {id: a, name: A, main_table: {name: a, columns: [{name: a b, type: string}]}}\n",
            "b/project.yaml": """\
project:
  id: close
  name: Close
  input_dataset_id: sales-orders
  operations:
    - seq: 2
      name: Write
      type: output
      arguments:
        destination: {datasource_id: nowhere, table: t}
        columns: [amuont]
    - seq: 1
      name: Set
      type: update
      selector: amount > "1"
      parameters:
        assignments:
          - column: _period
            expression: RUOND(amuont) + )
""",
            "c.yaml": "resolver: {id: c, rules: [{name: n, when: period.lvel = 1, "
            "strategy: {type: path, datasource_id: files, path: p}}]}\n",
        }
    )
    told = [
        (p.type, p.place and f"{p.place.file}:{p.place.line}:{p.place.column}", p.project, p.seq, p.operation, p.path)
        for p in problems
    ]
    operations = "project.operations"
    assert told == [
        ("InvalidColumnName", "a.yaml:1:66", None, None, None, "dataset.main_table.columns[0].name"),
        (
            "DataSourceNotFound",
            "b/project.yaml:10:38",
            "close",
            2,
            "Write",
            f"{operations}[0].arguments.destination.datasource_id",
        ),
        ("ColumnProjectionError", "b/project.yaml:11:19", "close", 2, "Write", f"{operations}[0].arguments.columns[0]"),
        ("TypeMismatch", "b/project.yaml:15:17", "close", 1, "Set", f"{operations}[1].selector"),
        (
            "SystemColumn",
            "b/project.yaml:18:21",
            "close",
            1,
            "Set",
            f"{operations}[1].parameters.assignments[0].column",
        ),
        (
            "ExpressionParseError",
            "b/project.yaml:19:41",
            "close",
            1,
            "Set",
            f"{operations}[1].parameters.assignments[0].expression",
        ),
        ("ColumnNotFound", "c.yaml:1:43", None, None, None, "resolver.rules[0].when"),
    ]


def test_a_problem_in_a_named_selector_points_into_the_map_and_names_the_use(of_operations: OfOperations) -> None:
    problems = of_operations(
        """
- {seq: 1, name: One, type: delete, selector: "{{outer}}"}
- {seq: 2, name: Two, type: delete, selector: "amount > 0 AND {{outer}}"}
""",
        selectors="{inner: amuont > 0, outer: '{{inner}} OR TRUE'}",
    )
    [problem] = problems
    assert (problem.type, problem.seq, problem.path) == ("ColumnNotFound", 1, "project.selectors.inner")
    assert str(problem.place) == "project.yaml:5:22"
    assert str(problem.via) == "project.yaml:5:42"
    assert "used at project.yaml:5:42" in str(problem)


def test_a_selector_can_be_right_in_one_operation_and_wrong_in_another(of_operations: OfOperations) -> None:
    problems = of_operations(
        """
- {seq: 1, name: Too early, type: delete, selector: "{{cheap}}"}
- {seq: 2, name: Make, type: update, arguments: {assignments: [{column: net, expression: amount * 0.9}]}}
- {seq: 3, name: Fine, type: delete, selector: "{{cheap}}"}
""",
        selectors="{cheap: net < 1}",
    )
    assert facts(problems) == [("ColumnNotFound", 1, 5)]


@pytest.mark.parametrize("expression", ["amount +", "{{inner}}", "{{a}}"])
def test_selectors_nobody_uses_are_read_all_the_same(expression: str, of_operations: OfOperations) -> None:
    problems = of_operations(
        "- {seq: 1, name: One, type: delete, selector: amount = 0}", selectors=f"{{a: '{expression}'}}"
    )
    [problem] = problems
    assert (problem.project, problem.seq, problem.path) == ("close", None, "project.selectors.a")


NO_CASCADE = {
    "an operation that cannot be read": "- {seq: 1, name: Make, type: updte, arguments: {assignments: []}}",
    "a wrong expression": (
        "- {seq: 1, name: Make, type: update, arguments: {assignments: [{column: net, expression: amount +}]}}"
    ),
    "a column nobody has": (
        "- {seq: 1, name: Make, type: update, arguments: {assignments: [{column: net, expression: amuont}]}}"
    ),
    "a join of nothing": (
        "- {seq: 1, name: Make, type: update, arguments: {joins: [{alias: c, dataset_id: nobody, on: c.x = c.y}], "
        "assignments: [{column: net, expression: c.z}]}}"
    ),
    "an aggregate without groups": (
        "- {seq: 1, name: Make, type: aggregate, arguments: {group_by: [], "
        "aggregations: [{column: net, expression: SUM(amount)}]}}"
    ),
    "an aggregate of nothing": (
        "- {seq: 1, name: Make, type: aggregate, arguments: {group_by: [region], "
        "aggregations: [{column: net, expression: SUM(amuont)}]}}"
    ),
}


@pytest.mark.parametrize("case", NO_CASCADE)
def test_one_broken_operation_is_one_problem(case: str, of_operations: OfOperations) -> None:
    users = """
- {seq: 2, name: Use, type: delete, selector: net > 0}
- {seq: 3, name: Add, type: update, arguments: {assignments: [{column: net, expression: net + 1}]}}
- {seq: 4, name: Sum, type: aggregate, arguments: {group_by: [net], aggregations: [{column: s, expression: SUM(net)}]}}
- {seq: 5, name: Write, type: output, arguments: {destination: {location: out.csv}, columns: [net, s]}}
"""
    problems = of_operations(NO_CASCADE[case] + users)
    assert [problem.seq for problem in problems] == [1]


def test_what_does_not_depend_on_the_missing_input_is_checked_all_the_same(validate: Validate) -> None:
    problems = validate(
        {
            "project.yaml": """\
project:
  id: close
  name: Close
  input_dataset_id: nobody
  operations:
    - {seq: 1, name: Remove, type: delete, selector: some.column = RUOND(other)}
    - {seq: 2, name: Write, type: output, arguments: {destination: {location: "{{nothing}}"}, columns: [a, b]}}
"""
        }
    )
    assert facts(problems) == [("DatasetNotFound", None, 4), ("UnknownFunction", 1, 6), ("UnknownToken", 2, 7)]


def test_an_unreadable_operation_keeps_its_place_in_the_order(of_operations: OfOperations) -> None:
    problems = of_operations("""
- {seq: 1, name: Early, type: delete, selector: net > 0}
- {seq: 2, name: Make, type: update, arguments: {assignment: [{column: net, expression: 1}]}}
- {seq: 3, name: Late, type: delete, selector: net > 0}
""")
    assert {problem.seq for problem in problems} == {1, 2}


APPEND = "- {{seq: 1, name: Add, type: append, arguments: {{source: {{dataset_id: budgets{version}}}, {rest}}}}}"
TOTAL = "aggregation: {group_by: [region], aggregations: [{column: amount, expression: %s}]}"


@pytest.mark.parametrize(
    ("type", "code", "operation"),
    [
        ("DatasetNotFound", "APPEND_001", APPEND.format(version="x", rest=TOTAL % "SUM(amount)")),
        (
            "DatasetVersionNotFound",
            "APPEND_002",
            APPEND.format(version=", dataset_version: 9", rest=TOTAL % "SUM(amount)"),
        ),
        ("ColumnMismatch", "APPEND_003", APPEND.format(version="", rest="")),
        ("ExpressionParseError", "APPEND_004", APPEND.format(version="", rest=TOTAL % "SUM(amount) +")),
        ("InvalidAggregation", "APPEND_005", APPEND.format(version="", rest=TOTAL % "MODE(amount)")),
        ("InvalidAggregation", "APPEND_005", APPEND.format(version="", rest=TOTAL % "amount")),
        ("ColumnNotFound", "APPEND_006", APPEND.format(version="", rest=TOTAL % "SUM(amuont)")),
        (
            "ColumnNotFound",
            "APPEND_006",
            APPEND.format(version="", rest="source_selector: order_id = region, " + TOTAL % "SUM(amount)"),
        ),
    ],
)
def test_problems_of_append_carry_the_code_of_its_document(
    type: str, code: str, operation: str, of_operations: OfOperations
) -> None:
    [problem] = of_operations(operation)
    assert (problem.type, problem.code, problem.seq) == (type, code, 1)


def test_append_without_a_resolver(validate: Validate, sound: Path) -> None:
    places = (sound / "places.yaml").read_text().replace("is_default: true", "is_default: false")
    overrides = "  resolver_overrides: {sales-orders: by-name}\n"
    operation = APPEND.format(version="", rest=TOTAL % "SUM(amount)")
    head = f"project:\n  id: p\n  name: P\n  input_dataset_id: sales-orders\n{overrides}  operations:\n    "
    [problem] = validate({"places.yaml": places, "project.yaml": head + operation})
    assert (problem.type, problem.code, problem.seq) == ("ResolverNotFound", "APPEND_007", 1)
    assert problem.hint is not None
    assert "is_default: true" in problem.hint


def test_the_same_mistake_elsewhere_has_no_code(of_operations: OfOperations) -> None:
    [problem] = of_operations("- {seq: 1, name: Remove, type: delete, selector: amuont = 0}")
    assert problem.code is None


@pytest.mark.parametrize(
    ("columns", "extra"),
    [
        ("{name: amount, type: integer}", []),
        ("{name: amount, type: 'decimal(9,4)'}", []),
        ("{name: quantity, type: decimal}", ["quantity"]),
        ("{name: order_date, type: timestamp}", ["order_date"]),
        ("{name: one, type: string}, {name: two, type: string}", ["one', 'two"]),
    ],
)
def test_appended_columns_fit_the_working_dataset(columns: str, extra: list[str], validate: Validate) -> None:
    dataset = f"dataset: {{id: more, name: More, main_table: {{name: more, columns: [{columns}]}}}}\n"
    project = (
        "project: {id: p, name: P, input_dataset_id: sales-orders, operations: "
        "[{seq: 1, name: Add, type: append, arguments: {source: {dataset_id: more}}}]}\n"
    )
    problems = validate({"more.yaml": dataset, "project.yaml": project})
    assert [problem.type for problem in problems] == ["ColumnMismatch"] * len(extra)
    assert all(f"'{name}'" in problem.message for name, problem in zip(extra, problems, strict=True))


WRITER = """\
project:
  id: writer
  name: Writer
  input_dataset_id: sales-orders
  operations:
    - {seq: 1, name: Make, type: update, arguments: {assignments: [{column: net, expression: amount * 0.9}]}}
    - seq: 2
      name: Write
      type: output
      arguments:
        destination: {location: "net/{{period}}.delta"}
        columns: [_period, order_id, net]
        register_as_dataset: net-orders
"""
READER = """\
project:
  id: another-reader
  name: Reader
  input_dataset_id: net-orders
  operations:
    - {seq: 1, name: Use, type: delete, selector: net > 0 AND net-orders._period = "2026-01"}
    - {seq: 2, name: Miss, type: delete, selector: amount > 0}
""".replace("net-orders._period", "_period")


def test_a_registered_dataset_is_seen_by_other_projects_whatever_their_file(validate: Validate, sound: Path) -> None:
    problems = validate({"a-reader.yaml": READER, "z-writer.yaml": WRITER})
    assert [(problem.type, problem.project, problem.seq) for problem in problems] == [
        ("ColumnNotFound", "another-reader", 2)
    ]
    [registered] = Workspace.open(sound).checked.datasets.versions["net-orders"].values()
    assert registered.main_table.temporal_mode == "period"
    assert {name: str(type) for name, type in registered.main_table.business_types.items()} == {
        "order_id": "string",
        "net": "decimal(20,3)",
    }


def test_a_broken_writer_is_not_held_against_its_readers(validate: Validate) -> None:
    broken = WRITER.replace("amount * 0.9", "amuont * 0.9")
    problems = validate({"a-reader.yaml": READER, "z-writer.yaml": broken})
    assert [(problem.type, problem.project, problem.seq) for problem in problems] == [("ColumnNotFound", "writer", 1)]


def test_nor_against_those_who_join_what_it_writes(validate: Validate) -> None:
    join = "{alias: n, dataset_id: net-orders, on: orders.order_id = n.order_id AND n.gross > 0}"
    joining = f"""\
project:
  id: joining
  name: Joining
  input_dataset_id: sales-orders
  operations:
    - seq: 1
      name: Use
      type: update
      arguments: {{joins: [{join}], assignments: [{{column: gross, expression: n.gross}}]}}
"""
    missed = [("ColumnNotFound", "joining", 1)] * 2
    assert [(p.type, p.project, p.seq) for p in validate({"a.yaml": joining, "z.yaml": WRITER})] == missed
    broken = WRITER.replace("amount * 0.9", "amuont * 0.9")
    problems = validate({"a.yaml": joining, "z.yaml": broken})
    assert [(problem.type, problem.project, problem.seq) for problem in problems] == [("ColumnNotFound", "writer", 1)]


def test_projects_that_wait_for_each_other_are_told(validate: Validate) -> None:
    first = WRITER.replace("id: writer", "id: first").replace("input_dataset_id: sales-orders", "input_dataset_id: b")
    second = WRITER.replace("id: writer", "id: second").replace("input_dataset_id: sales-orders", "input_dataset_id: a")
    files = {
        "first.yaml": first.replace("net-orders", "a"),
        "second.yaml": second.replace("net-orders", "b"),
    }
    assert [problem.type for problem in validate(files)] == ["DatasetNotFound"]


LOOKING = """\
dataset:
  id: looking
  name: Looking
  main_table: {name: looking, columns: [{name: id, type: string}, {name: amount, type: decimal}]}
  lookups:
    - {alias: n, target: {dataset_id: net-orders}, join_conditions: [{source_column: id, target_column: order_id}]}
"""
BESIDE = """\
project:
  id: beside
  name: Beside
  input_dataset_id: looking
  operations:
    - {seq: 1, name: Use, type: update, arguments: {assignments: [{column: share, expression: amount / n.net}]}}
"""


def test_a_lookup_reads_what_a_project_registers_whatever_its_file(validate: Validate) -> None:
    files = {"a.yaml": BESIDE, "looking.yaml": LOOKING, "z.yaml": WRITER}
    assert validate(files) == []
    files["looking.yaml"] = LOOKING.replace("target_column: order_id", "target_column: id")
    [problem] = validate(files)
    assert (problem.type, problem.path) == ("ColumnNotFound", "dataset.lookups[0].join_conditions[0].target_column")
    files["z.yaml"] = WRITER.replace("amount * 0.9", "amuont * 0.9")
    assert [(problem.project, problem.seq) for problem in validate(files)] == [("writer", 1)]


@pytest.mark.parametrize("expression", ["amount * n.net", "amount * net_of_orders"])
def test_a_lookup_into_what_the_project_itself_registers(validate: Validate, expression: str) -> None:
    """Other projects may use the lookup; the project that registers its table cannot."""
    writer = WRITER.replace("sales-orders", "looking").replace("_period, order_id, net", "id, net")
    looking = LOOKING.replace("order_id", "id")
    assert validate({"looking.yaml": looking, "writer.yaml": writer}) == []
    [problem] = validate({"looking.yaml": looking, "writer.yaml": writer.replace("amount * 0.9", expression)})
    assert (problem.type, problem.seq) == ("DatasetNotFound", 1)
    assert problem.message == "there is no dataset 'net-orders'; lookup 'n' reads it"
    assert problem.hint == "the project registers it itself, so it cannot read it"


def test_lookups_nobody_reads_make_no_circle(validate: Validate) -> None:
    """Two writers over one dataset, which has a lookup into what either makes, and a reader of both."""
    pair = LOOKING.splitlines(keepends=True)[-1]
    looking = LOOKING + pair.replace("alias: n", "alias: m").replace("net-orders", "more")
    first = WRITER.replace("sales-orders", "looking").replace("_period, order_id, net", "id, net")
    second = first.replace("id: writer", "id: second").replace(
        "register_as_dataset: net-orders", "register_as_dataset: more"
    )
    reader = BESIDE.replace("amount / n.net", "n.net / m.net")
    files = {"a.yaml": reader, "b.yaml": first, "c.yaml": second, "looking.yaml": looking.replace("order_id", "id")}
    assert validate(files) == []


def test_a_registered_dataset_needs_a_column_of_its_own(validate: Validate) -> None:
    only_system = WRITER.replace("[_period, order_id, net]", "[_period, _row_id]")
    [problem] = validate({"writer.yaml": only_system})
    assert (problem.type, problem.seq) == ("InvalidSchema", 2)


def test_naming_projects_leaves_out_what_is_wrong_with_others(sound: Path) -> None:
    (sound / "writer.yaml").write_text(WRITER.replace("amount", "amuont"))
    (sound / "reader.yaml").write_text(READER)
    (sound / "empty.yaml").write_text("")
    named = Workspace.open(sound).validate(["another-reader"])
    assert {problem.project for problem in named} <= {None, "another-reader"}
    assert "InvalidYaml" in {problem.type for problem in named}
