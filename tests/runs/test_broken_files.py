"""A project stands on its own files: a broken file stops the projects that need it, and no others."""

from __future__ import annotations

from textwrap import dedent

import pytest
from pyspark.sql import SparkSession
from tests.kit.commands import Tally
from tests.kit.workspaces import JANUARY, Books

from tallybook.errors import ValidationError

BROKEN_PROJECT = "project:\n  id: other\n  name: Other: again\n  input_dataset_id: sales\n"
"""Its second colon is a syntax error."""


def write(books: Books, file: str, text: str) -> None:
    (books.root / file).write_text(dedent(text))


def refusal(books: Books, project: str = "close") -> list[str]:
    """Where and why a plan is refused."""
    with pytest.raises(ValidationError) as caught:
        books.open().plan(project, "2026-01")
    return [f"{problem.place.file if problem.place else ''}: {problem.message}" for problem in caught.value.problems]


BROKEN = {
    "a syntax error": BROKEN_PROJECT,
    "a project without a head": "project: {id: other, operations: []}",
    "an unknown kind": "prject: {id: other}",
    "a dataset nobody needs": "dataset: {id: unused, name: Unused}",
    "a wrong column": "dataset: {id: u, name: U, main_table: {name: u, columns: [{name: 1x, type: string}]}}",
    "a resolver nobody needs": "resolver: {id: unused, rules: [{name: x}]}",
    "a datasource nobody needs": "datasource: {id: unused, type: csvv}",
    "an empty file": "",
    "a secret": "datasource: {id: db, type: database, options: {url: 'postgresql://u:secret@h/d'}}",
    "a project of the same id as a dataset": "project:\n  id: sales\n  name: a: b\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_file_that_a_project_does_not_need_does_not_stop_it(text: str, books: Books) -> None:
    write(books, "other.yaml", text)
    assert books.open().plan("close", "2026-01").outputs
    assert books.open().activate("close").status == "active"
    assert {problem.place.file for problem in books.open().validate() if problem.place} == {"other.yaml"}


def test_a_run_goes_on_beside_a_broken_file_and_says_that_it_is_not_recorded(active: Books) -> None:
    write(active, "other.yaml", BROKEN_PROJECT)
    result = active.run()
    assert active.ledger() == JANUARY
    assert result.warnings == ["definitions with problems are not recorded: other.yaml; see `tallybook validate`"]


NEEDED = {
    "its own file": ("close.yaml", "project 'close' may be defined here"),
    "its input": ("sales.yaml", "dataset 'sales' may be defined here"),
    "a joined dataset": ("tiers.yaml", "dataset 'tiers' may be defined here"),
    "its resolvers and datasources": ("places.yaml", "resolver 'by-month' is defined in this file"),
}


@pytest.mark.parametrize(("file", "reason"), NEEDED.values(), ids=NEEDED)
@pytest.mark.parametrize("recorded", [False, True], ids=["new", "recorded"])
def test_a_project_is_refused_if_a_broken_file_has_what_it_needs(
    file: str, reason: str, recorded: bool, books: Books
) -> None:
    if recorded:
        books.open().activate("close")
    write(books, file, (books.root / file).read_text() + "\nbroken: [}\n")
    assert any(line.startswith(f"{file}: ") and line.endswith(f"({reason})") for line in refusal(books))
    with pytest.raises(ValidationError):
        books.open().activate("close")
    with pytest.raises(ValidationError):
        books.run()


DOUBTS = {
    "another default resolver": (
        "resolver:\n  id: second\n  is_default: true\n  name: a: b\n",
        "the default resolver may be defined here",
    ),
    "a second definition": (
        "dataset:\n  id: sales\n  name: a: b\n",
        "dataset 'sales' may be defined here a second time",
    ),
    "a misspelt kind": (
        "datset:\n  id: sales\n",
        "dataset 'sales' may be defined here a second time",
    ),
    "text nobody can read": ("dataset: {id: \udcff}", None),
}


@pytest.mark.parametrize(("text", "reason"), DOUBTS.values(), ids=DOUBTS)
def test_a_broken_file_that_could_change_the_meaning_is_a_refusal(text: str, reason: str | None, books: Books) -> None:
    (books.root / "other.yaml").write_bytes(text.encode(errors="surrogateescape"))
    [line] = refusal(books)
    assert line.startswith("other.yaml: ") and (reason is None or line.endswith(f"({reason})"))


def test_a_dataset_defined_twice_stops_its_readers_only(books: Books) -> None:
    write(books, "zz.yaml", (books.root / "tiers.yaml").read_text())
    assert refusal(books) == [
        "zz.yaml: the dataset 'tiers' is already defined at tiers.yaml:2:7 "
        "(dataset 'tiers' may be defined here a second time)"
    ]
    write(books, "plain.yaml", PLAIN)
    assert books.open().plan("plain", "2026-01").outputs
    recorded = {(change.kind, change.id) for change in books.open().apply().versions}
    assert ("dataset", "sales") in recorded and ("dataset", "tiers") not in recorded


PLAIN = """\
    project:
      id: plain
      name: Plain
      input_dataset_id: sales
      operations:
        - {seq: 1, name: All, type: output, arguments: {destination: {location: "plain/{{period}}"}}}
    """


def test_a_missing_default_resolver_is_not_taken_for_none(books: Books) -> None:
    books.edit("places.yaml", "  is_default: true\n", "")
    write(books, "other.yaml", "resolver:\n  id: all\n  is_default: true\n  name: a: b\n")
    assert all("the default resolver may be defined here" in line for line in refusal(books))


def test_the_calendar_of_the_workspace_may_be_in_a_broken_file(books: Books) -> None:
    books.edit("tallybook.yaml", "name: tiny", "name: tiny\ncalendar: fiscal")
    write(books, "calendar.yaml", "calendar:\n  id: fiscal\n  name: a: b\n")
    [line] = refusal(books)
    assert line.endswith("(calendar 'fiscal', the one of the workspace, may be defined here)")


def test_a_reader_of_registered_rows_runs_while_its_maker_is_broken(active: Books) -> None:
    active.run()
    active.open().activate("report")
    active.edit("close.yaml", "name: Close", "name: Close: again")
    active.run("report")
    assert (active.root / "texts" / "2026-01.csv").exists()


def test_a_draft_does_not_read_older_rows_because_the_draft_that_makes_them_is_broken(books: Books) -> None:
    books.open().apply()
    books.edit("close.yaml", "name: Close", "name: Close: again")
    [line] = refusal(books, "report")
    assert line.endswith("(dataset 'ledger' may be registered by a project here)")


def test_apply_records_what_is_whole_and_says_what_is_not(books: Books, tally: Tally) -> None:
    books.open().activate("close")
    books.edit("close.yaml", "name: Close", "name: Close: again")
    books.edit("tiers.yaml", "name: Tiers", "name: Levels")
    said = tally(books, "apply")
    assert said.code == 1
    assert "dataset tiers is now v2" in said.out and "project close v1: active" in said.out
    assert "close.yaml:3:14: InvalidYaml" in said.err and "are not recorded" in said.err
    document = tally(books, "apply", "--dry-run", "--json")
    assert document.code == 1
    assert [problem["file"] for problem in document.json["left_out"]] == ["close.yaml"]
    with books.store() as store:
        assert len(store.versions("project", "close")) == 1, "what is broken is not taken as removed"


def test_wrong_settings_stop_everything(books: Books) -> None:
    books.edit("tallybook.yaml", "name: tiny", "name: tiny\nsandbx: x")
    assert len(refusal(books)) == 1


def test_scenarios_of_other_projects_run(books: Books, tally: Tally, spark: SparkSession) -> None:
    write(books, "plain.yaml", PLAIN)
    write(
        books,
        "scenario.yaml",
        """\
        scenario:
          name: All rows
          project: plain
          period: 2026-01
          data: {sales: {sales: [{id: a, region: EMEA, amount: 1}]}}
          expect: {row_count: 1}
        ---
        scenario: {name: Of the other, project: other, period: 2026-01, data: {}, expect: {row_count: 0}}
        """,
    )
    write(books, "other.yaml", BROKEN_PROJECT)
    write(books, "tests.yaml", "scenario: {name: [}\n")
    said = tally(books, "test", "--json")
    report = {(each["file"], each["name"]): each["status"] for each in said.json["scenarios"]}
    assert report == {
        ("scenario.yaml", "All rows"): "passed",
        ("scenario.yaml", "Of the other"): "error",
        ("tests.yaml", "a file that cannot be read"): "error",
    }
    assert "(project 'other' may be defined here)" in str(said.json)
