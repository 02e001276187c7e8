"""Scenarios run as projects do, over the rows they give, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import xlsxwriter
from pyspark.sql import SparkSession
from tests.scenarios.kit import HEAD, cases, rows

from tallybook.engine.local import LocalEngine
from tallybook.scenarios.suite import Outcome, judge, judge_all

Judge = Callable[..., Outcome]


@pytest.fixture
def judged(tmp_path: Path, engine: LocalEngine) -> Judge:
    def one(scenario: str, **files: str) -> Outcome:
        (case,) = cases(tmp_path, scenario, **files)
        return judge(case, engine)

    return one


def expect(text: str) -> str:
    return "  expect:\n" + "".join(f"    {line}\n" for line in text.strip().splitlines())


def test_every_kind_of_expectation(judged: Judge) -> None:
    outcome = judged(
        rows(
            "id: A, amount: 10, paid: true",
            "id: B, amount: 7, paid: null, _labels: vip",
            "id: C, amount: 0, paid: true",
            "id: D, amount: 99, paid: true, _period: 2025-12",
            expect=expect("""
rows: [{id: B, amount: 7.0, net: null}, {id: A, net: 8}]
row_count: 2
columns: [id, amount, net]
outputs: {30: {match: subset, rows: [{id: A}], row_count: 2}}
working:
  rows:
    - {id: A, _deleted: false, _period: 2026-01, _updated_at: 2026-01-01T00:00:00Z}
    - {id: B, _labels: vip}
    - {id: C, _deleted: true, net: 0}
    - {paid: true, amount: 10, _operation_seq: 40, _period: null}
    - {paid: null, amount: 7}
"""),
        )
    )
    assert (outcome.status, outcome.problems, outcome.differences) == ("passed", (), ())


def test_without_an_output_rows_are_those_not_deleted(judged: Judge) -> None:
    project = """scenario:
  name: One
  project:
    id: own
    name: Own
    input_dataset_id: sales
    operations:
      - {seq: 1, name: Drop, type: delete, selector: amount < 0}
      - {seq: 2, name: Date, type: update, arguments: {assignments: [{column: due, expression: 'DATEADD(day, 30)'}]}}
  period: 2026-01
"""
    given = rows(
        "id: A, amount: 1, day: 2026-01-31",
        "id: B, amount: -1",
        head=project,
        expect=expect("rows: [{due: 2026-03-02}]"),
    )
    assert judged(given).status == "passed"


def test_types_survive(judged: Judge) -> None:
    given = "id: A, day: 2026-01-31, sold_at: '2026-01-31T23:59:59.5+02:00', pieces: 7, amount: 1.5, paid: false"
    wanted = "working: {match: subset, rows: [{day: 2026-01-31, sold_at: '2026-01-31T21:59:59.500000Z', pieces: 7}]}"
    assert judged(rows(given, expect=expect(wanted))).status == "passed"


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
def test_the_first_and_the_last_moment(judged: Judge, moment: str) -> None:
    wanted = f"working: {{match: subset, rows: [{{sold_at: {moment}, _updated_at: {moment}}}]}}"
    head = f"{HEAD}  run_timestamp: {moment}\n"
    assert judged(rows(f"id: A, sold_at: {moment}, paid: true", head=head, expect=expect(wanted))).status == "passed"


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        ("rows: []", "rows"),
        ("rows: [{id: A, net: 9}]", "rows"),
        ("rows: [{id: A}, {id: A}]", "rows"),
        ("rows: [{id: Z}]\nmatch: subset", "rows"),
        ("row_count: 2", "row_count"),
        ("columns: [amount, id, net]", "columns"),
        ("outputs: {30: {rows: []}}", "rows"),
        ("working: {row_count: 1}", "row_count"),
        ("error: {type: JoinNotUnique}", "error"),
    ],
)
def test_an_expectation_that_does_not_hold(judged: Judge, wanted: str, what: str) -> None:
    outcome = judged(rows("id: A, amount: 10, paid: true", expect=expect(wanted)))
    assert outcome.status == "failed"
    assert [difference.what for difference in outcome.differences] == [what]


def test_a_difference_names_the_operation_that_could_have_caused_it(judged: Judge) -> None:
    outcome = judged(
        rows(
            "id: A, amount: 10, paid: true",
            expect=expect("working: {rows: [{id: A, net: 9, amount: 11, _deleted: true}, {paid: true, amount: 9}]}"),
        )
    )
    writers = [
        {cell.column: cell.writer and cell.writer.seq for cell in row.cells} for row in outcome.differences[0].rows
    ]
    assert writers == [{"net": 10, "amount": None, "_deleted": 20}, {"amount": 40}]


ERROR = """scenario:
  name: One
  project:
    id: own
    name: Own
    input_dataset_id: sales
    operations:
      - {seq: 1, name: Fine, type: update, arguments: {assignments: [{column: x, expression: pieces + 1}]}}
      - {seq: 2, name: Big, type: update, arguments: {assignments: [{column: x, expression: x * 9000000000000}]}}
  period: 2026-01
"""


def test_an_error_while_running_can_be_expected(judged: Judge) -> None:
    given = rows("id: A, pieces: 9000000000", head=ERROR, expect="  expect: {error: {type: EvaluationError, seq: 2}}\n")
    assert judged(given).status == "passed"


def test_another_error_than_the_expected_one_fails(judged: Judge) -> None:
    given = rows("id: A, pieces: 9000000000", head=ERROR, expect="  expect: {error: {type: EvaluationError, seq: 1}}\n")
    outcome = judged(given)
    assert outcome.status == "failed"
    assert outcome.differences[0].message == (
        "the scenario expects EvaluationError in operation 1, but got EvaluationError in operation 2"
    )


def test_an_error_nobody_expects_is_told(judged: Judge) -> None:
    outcome = judged(rows("id: A, pieces: 9000000000", head=ERROR, expect="  expect: {row_count: 1}\n"))
    assert outcome.status == "error"
    assert [(problem.type, problem.seq) for problem in outcome.problems] == [("EvaluationError", 2)]


def test_a_bug_is_told_as_one_and_stops_no_other_scenario(tmp_path: Path) -> None:
    without_session = LocalEngine(cast(SparkSession, None))
    found = cases(tmp_path, f"{rows('id: A')}---\n{rows('id: A, amuont: 1')}")
    bug, mistake = judge_all(found, without_session)
    (problem,) = bug.problems
    assert (bug.status, problem.type, problem.place) == ("error", "InternalError", found[0].part.place())
    assert problem.message.startswith("this is a bug of Tallybook: AttributeError: ")
    log = Path(str(problem.hint).removeprefix("the traceback is in "))
    assert "Traceback" in log.read_text()
    log.unlink()
    assert (mistake.status, mistake.problems[0].type) == ("error", "ColumnNotFound")


def test_a_scenario_that_expects_nothing_does_not_pass(judged: Judge) -> None:
    outcome = judged(rows("id: A", expect=""))
    assert outcome.status == "error"
    assert "--record" in str(outcome.problems[0].hint)


def test_a_project_that_is_wrong_is_told_as_such(judged: Judge) -> None:
    bad = "{seq: 1, name: Bad, type: delete, selector: missing}"
    broken = f"project: {{id: close, name: Close, input_dataset_id: sales, operations: [{bad}]}}\n"
    outcome = judged(rows("id: A", expect="  expect: {row_count: 0}\n"), **{"project.yaml": broken})
    assert (outcome.status, outcome.problems[0].type) == ("error", "ColumnNotFound")


def test_a_quarter_takes_the_rows_of_its_months(judged: Judge) -> None:
    quarter = HEAD.replace("2026-01", "2026-Q1")
    given = rows(
        "id: A, _period: 2026-01",
        "id: B, _period: 2026-03",
        "id: C, _period: 2026-04",
        "id: D",
        head=quarter,
        expect=expect("rows: [{id: A}, {id: B}, {id: D}]"),
    )
    assert judged(given).status == "passed"


def test_rows_of_a_year_that_lie_in_one_place_are_those_of_the_year(judged: Judge) -> None:
    yearly = """
datasource: {id: files, type: csv, options: {path_prefix: data}}
---
resolver:
  id: by-year
  is_default: true
  rules:
    - {name: yearly, data_level: year, strategy: {type: path, datasource_id: files, path: '{{YYYY}}.csv'}}
"""
    quarter = HEAD.replace("2026-01", "2026-Q1")
    given = rows("id: A, _period: 2026-01", "id: B, _period: 2026-Q1", head=quarter, expect=expect("rows: [{id: B}]"))
    assert judged(given, **{"places.yaml": yearly}).status == "passed"


def test_a_period_with_dates_of_its_own(judged: Judge) -> None:
    own = "{identifier: season-1, level: season, start_date: 2026-01-01, end_date: 2026-04-15}"
    given = rows(
        "id: A",
        head=HEAD.replace("2026-01", own),
        expect=expect("working: {match: subset, rows: [{_period: season-1}]}"),
    )
    assert judged(given).status == "passed"


RESOLVERS = """  resolvers:
    - id: own
      is_default: true
      rules:
        - name: old
          when: period.start_date < DATE("2026-01-01")
          data_level: month
          strategy: {type: path, datasource_id: files, path: '{{period}}.csv'}
"""


def test_a_resolver_of_its_own_must_find_a_place(judged: Judge) -> None:
    given = rows("id: A", head=HEAD + RESOLVERS, expect="  expect: {error: {type: NoRuleMatched}}\n")
    assert judged(given).status == "passed"


def test_a_resolver_of_its_own_that_finds_a_place_serves_the_rows_as_they_stand(judged: Judge) -> None:
    head = HEAD.replace("2026-01", "2025-Q4") + RESOLVERS
    given = rows("id: A, _period: 2025-11", "id: B, _period: 2026-01", head=head, expect=expect("rows: [{id: A}]"))
    assert judged(given).status == "passed"


LOOKED_UP = """scenario:
  name: One
  project:
    id: own
    name: Own
    input_dataset_id: tiny
    operations:
      - seq: 1
        name: Look up
        type: update
        arguments: {assignments: [{column: title, expression: names.title}]}
  period: 2026-01
  datasets:
    - id: tiny
      name: Tiny
      main_table: {name: tiny, columns: [{name: code, type: string}]}
      lookups:
        - alias: names
          target: {name: names, columns: [{name: code, type: string}, {name: title, type: string}]}
          join_conditions: [{source_column: code, target_column: code}]
  data:
    tiny:
      tiny: [{code: a}, {code: b}]
      names: [{code: a, title: Alpha}]
  expect:
    rows: [{code: a, title: Alpha}, {code: b, title: null}]
"""
PLACES = {"places.yaml": "datasource: {id: files, type: csv, options: {path_prefix: d}}\n"}


def test_a_dataset_of_its_own_needs_no_resolver(judged: Judge) -> None:
    assert judged(LOOKED_UP, **PLACES).status == "passed"


@pytest.mark.parametrize(
    ("selector", "problems"),
    [
        ('tiny.code = "b"', []),
        ('tiny.code = "a"', ["JoinNotUnique"]),
        ('names.title IS NULL AND tiny.code = "b"', ["JoinNotUnique"]),
    ],
)
def test_two_matches_of_a_lookup_matter_for_selected_rows(judged: Judge, selector: str, problems: list[str]) -> None:
    """Or for all, where which rows are selected depends on the match."""
    twice = LOOKED_UP.replace("title: Alpha}]\n", "title: Alpha}, {code: a, title: Aleph}]\n", 1)
    selected = twice.replace("type: update", f"type: update\n        selector: {selector}")
    outcome = judged(selected.replace("rows: [{code: a, title: Alpha}", "rows: [{code: a, title: null}"), **PLACES)
    assert [problem.type for problem in outcome.problems] == problems
    assert (outcome.status == "passed") == (not problems)


SHARED = """
scenario:
  name: Shared
  period: 2026-01
  datasets:
    - id: tiny
      name: Tiny
      main_table: {name: tiny, columns: [{name: month, type: string}, {name: amount, type: 'decimal(9,2)'}]}
    - id: heads
      name: Heads
      natural_key_columns: [centre]
      main_table:
        name: heads
        columns: [{name: centre, type: string}, {name: month, type: string}, {name: heads, type: integer}]
  project:
    id: shares
    name: Shares
    input_dataset_id: tiny
    operations:
      - seq: 1
        name: Share
        type: allocate
        arguments:
          amount: amount
          to: {dataset_id: heads}
          driver: targets.heads
          set: [{column: month, expression: targets.month}]
          pool: delete
  data:
    tiny: {tiny: [{amount: 0.01}]}
    heads: {heads: [{centre: c, month: JANUARY, heads: 1}, {centre: c, month: FEBRUARY, heads: 1}]}
  expect:
    rows: [{month: feb, amount: 0.01}, {month: jan, amount: 0}]
"""


@pytest.mark.parametrize(("first", "second"), [("jan", "feb"), ("feb", "jan")])
def test_targets_with_one_key_have_one_order(judged: Judge, first: str, second: str) -> None:
    outcome = judged(SHARED.replace("JANUARY", first).replace("FEBRUARY", second), **PLACES)
    assert outcome.status == "passed", outcome


FILE = HEAD + "  data: {sales: {sales: {file: rows.csv}}}\n"
CSV = "id,day,sold_at,pieces,amount,paid\nA,2026-01-31,,1,12.50,true\nB,,,,,\n"


def test_rows_of_a_file_belong_to_the_period(judged: Judge) -> None:
    outcome = judged(FILE + expect("rows: [{id: A, net: 10}, {id: B, net: null}]"), **{"rows.csv": CSV})
    assert outcome.status == "passed"


def test_rows_of_a_workbook_belong_to_the_period(tmp_path: Path, engine: LocalEngine) -> None:
    scenario = FILE.replace("rows.csv", "rows.xlsx") + expect("rows: [{id: A, net: 10}, {id: B, net: null}]")
    (case,) = cases(tmp_path, scenario)
    with xlsxwriter.Workbook(tmp_path / "rows.xlsx") as book:
        sheet = book.add_worksheet()
        for number, row in enumerate([CSV.splitlines()[0].split(","), ["A", None, None, 1, 12.5, True], ["B"]]):
            sheet.write_row(number, 0, row)
    assert judge(case, engine).status == "passed"


def test_a_bad_value_of_a_file_is_told_with_its_row(judged: Judge) -> None:
    outcome = judged(FILE + expect("row_count: 2"), **{"rows.csv": CSV.replace("12.50", "12,50")})
    assert outcome.status == "error"
    (problem,) = outcome.problems
    assert problem.type in ("DataLoadError", "SchemaMismatch")
    assert "rows.csv" in problem.message


def test_a_file_that_is_not_there_is_told(judged: Judge) -> None:
    outcome = judged(FILE + expect("row_count: 2"))
    assert [problem.type for problem in outcome.problems] == ["DataNotFound"]


def test_ids_and_times_are_the_same_every_time(tmp_path: Path, engine: LocalEngine) -> None:
    (case,) = cases(tmp_path, rows("id: A", "id: B", "id: C", expect=expect("working: {row_count: 4}")))
    first, second = (judge(case, engine).actual for _ in range(2))
    assert first is not None and first.working is not None
    assert second is not None and second.working is not None
    assert first.working.rows == second.working.rows
    assert len({row["_row_id"] for row in first.working.rows}) == len(first.working.rows) == 4


def test_nothing_is_written(tmp_path: Path, engine: LocalEngine) -> None:
    found = cases(tmp_path, rows("id: A, amount: 5", expect=expect("row_count: 1")))
    before = sorted(tmp_path.rglob("*"))
    assert [outcome.status for outcome in judge_all(found * 3, engine, threads=2)] == ["passed"] * 3
    assert sorted(tmp_path.rglob("*")) == before


PARAMETERS = """scenario:
  name: One
  project:
    id: own
    name: Own
    input_dataset_id: sales
    parameters: {limit: {type: 'decimal(10,2)'}, day: {type: date, default: 2026-01-31}}
    operations:
      - {seq: 1, name: Drop, type: delete, selector: amount < params.limit}
      - {seq: 2, name: Day, type: update, arguments: {assignments: [{column: day, expression: params.day}]}}
  period: 2026-01
  GIVEN
  data: {sales: {sales: [{id: A, amount: 10}, {id: B, amount: 7.5}]}}
  expect: {rows: [{id: A, day: 2026-01-31}]}
"""


def test_a_scenario_sets_parameters(judged: Judge) -> None:
    outcome = judged(PARAMETERS.replace("GIVEN", "parameters: {limit: 8}"))
    assert (outcome.status, outcome.problems, outcome.differences) == ("passed", (), ())


@pytest.mark.parametrize(
    ("given", "type", "path"),
    [
        ("parameters: {limit: many}", "TypeMismatch", "scenario.parameters.limit"),
        ("parameters: {limit: 8, limt: 8}", "ColumnNotFound", "scenario.parameters.limt"),
        ("as_of: 2026-01-31", "InvalidArguments", "scenario.parameters.limit"),
    ],
)
def test_wrong_parameters_are_problems_of_the_scenario(judged: Judge, given: str, type: str, path: str) -> None:
    outcome = judged(PARAMETERS.replace("GIVEN", given))
    assert [(problem.type, problem.path) for problem in outcome.problems] == [(type, path)]
    assert outcome.problems[0].place is not None


CHECKED = """scenario:
  name: One
  project:
    id: own
    name: Own
    input_dataset_id: sales
    INPUT
    operations:
      - {seq: 1, name: Positive, type: check, arguments: {assert: amount > 0, on_failure: warn}}
      - {seq: 2, name: Known, type: check, arguments: {group_by: [paid], assert: SUM(amount) > 5}}
  period: 2026-01
  data: {sales: {sales: [{id: A, amount: 10}, {id: B, amount: -1}]}}
  expect: EXPECTED
"""


@pytest.mark.parametrize(
    ("expected", "status", "said"),
    [
        ("{checks: {1: {failed: 1}, 2: {tested: 1, failed: 0}}}", "passed", []),
        ("{row_count: 2, checks: {1: {tested: 2}}}", "passed", []),
        (
            "{checks: {1: {tested: 3, failed: 0}}}",
            "failed",
            [
                "check 1 'Positive': 2 tested, but the scenario expects 3",
                "check 1 'Positive': 1 failed, but the scenario expects 0: id = B, amount = -1",
            ],
        ),
        (
            "{error: {type: CheckFailed, seq: 2}}",
            "failed",
            ["the scenario expects CheckFailed in operation 2, but nothing failed"],
        ),
    ],
)
def test_a_scenario_expects_what_checks_find(judged: Judge, expected: str, status: str, said: list[str]) -> None:
    outcome = judged(CHECKED.replace("EXPECTED", expected).replace("    INPUT\n", ""))
    assert (outcome.status, [difference.message for difference in outcome.differences]) == (status, said)


def test_a_scenario_expects_a_check_to_fail(judged: Judge) -> None:
    scenario = CHECKED.replace("EXPECTED", "{error: {type: CheckFailed, seq: 2}}").replace("    INPUT\n", "")
    assert judged(scenario.replace("SUM(amount) > 5", "SUM(amount) > 50")).status == "passed"


def test_a_scenario_expects_too_few_rows(judged: Judge) -> None:
    scenario = CHECKED.replace("EXPECTED", "{error: {type: CheckFailed}}").replace("INPUT", "input: {min_rows: 3}")
    assert judged(scenario).status == "passed"
    assert judged(scenario.replace("min_rows: 3", "min_rows: 2")).status == "failed"


@pytest.mark.parametrize("expected", ["{checks: {3: {failed: 0}}}", "{checks: {1: {}}}"])
def test_an_expectation_of_no_check_is_a_problem(judged: Judge, expected: str) -> None:
    outcome = judged(CHECKED.replace("EXPECTED", expected).replace("    INPUT\n", ""))
    assert (outcome.status, outcome.problems[0].type) == ("error", "InvalidArguments")


def test_rows_of_other_periods_are_given_with_their_period(judged: Judge) -> None:
    project = """scenario:
  name: One
  project:
    id: own
    name: Own
    input_dataset_id: sales
    operations:
      - seq: 1
        name: Compare
        type: update
        arguments:
          joins:
            - {alias: before, dataset_id: sales, period: prior, on: sales.id = before.id}
            - alias: so_far
              dataset_id: sales
              period: year_to_date
              aggregation: {group_by: [id], aggregations: [{column: total, expression: SUM(amount)}]}
              on: sales.id = so_far.id
            - {alias: r, dataset_id: rates, as_of: day, on: r.code = sales.id}
          assignments:
            - {column: before, expression: before.amount}
            - {column: so_far, expression: so_far.total}
            - {column: rate, expression: r.rate}
  period: 2026-03
"""
    given = """  data:
    sales:
      sales:
        - {id: A, amount: 4, day: 2026-03-31}
        - {id: A, amount: 2, _period: 2026-02}
        - {id: A, amount: 1, _period: 2026-01}
        - {id: A, amount: 9, _period: 2025-12}
    rates:
      rates:
        - {code: A, rate: 1, _valid_from: 2026-03-01, _valid_to: 2026-03-31}
        - {code: A, rate: 2, _valid_from: 2026-03-31}
"""
    outcome = judged(project + given + expect("rows: [{amount: 4, before: 2, so_far: 7, rate: 2}]"))
    assert (outcome.status, outcome.problems, outcome.differences) == ("passed", (), ())
