"""The state commands as people and programs use them: text, JSON, exit codes, mistakes."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from tests.kit.commands import Tally
from tests.kit.workspaces import Books

from tallybook.runs.runner import RunResult


def test_plan_computes_conditions_without_spark(books: Books, tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    books.edit("places.yaml", "    - name: month\n", "    - name: month\n      when: YEAR(period.start_date) >= 2026\n")
    monkeypatch.setattr("tallybook.engine.session.get_session", lambda *_args, **_options: pytest.fail("no Spark"))
    assert "by-month" in tally(books, "plan", "close", "--period", "2026-01").out
    said = tally(books, "plan", "close", "--period", "2025-12")
    assert said.code == 1 and "rule 'month': YEAR(period.start_date) >= 2026 is false" in said.err


def test_apply_says_what_it_does(books: Books, tally: Tally) -> None:
    assert "dataset sales would become v1 (new)\n" in tally(books, "apply", "--dry-run").out
    said = tally(books, "apply")
    assert "project close is now v1 (new)\n" in said.out and said.out.endswith("project report v1: draft\n")
    assert tally(books, "apply").out == "nothing changed\nproject close v1: draft\nproject report v1: draft\n"
    tally(books, "activate", "close")
    books.edit("sales.yaml", "{name: region,", "{name: area,")
    assert tally(books, "apply").out == (
        "dataset sales is now v2\n"
        "  column region: renamed to area\n"
        "project close v1: conflict\n"
        "  dataset sales v1 → v2\n"
        "    column region: renamed to area, used by operations 10, 40\n"
        "project report v1: draft\n"
    )
    document = tally(books, "apply", "--json").json
    assert document["changes"] == [] and document["dry_run"] is False
    assert document["projects"][0]["conflicts"][0]["changes"][0]["operations"] == [10, 40]


def test_activate_and_deactivate(books: Books, tally: Tally) -> None:
    assert tally(books, "activate", "close").out == "project close v1 is active, on version 1 of its input dataset\n"
    assert tally(books, "activate", "close", "--json").json["status"] == "active"
    said = tally(books, "activate", "close", "--stay-pinned")
    assert said.code == 1 and "is active, not in conflict" in said.err
    assert tally(books, "deactivate", "close").out == "project close v1 is inactive\n"
    assert tally(books, "deactivate", "report", "--json").code == 1
    assert tally(books, "activate", "close", "--json").json["input_dataset_version"] == 1
    assert tally(books, "deactivate", "close", "--json").json["status"] == "inactive"
    said = tally(books, "activate", "clos")
    assert said.code == 1 and "did you mean 'close'?" in said.err
    assert tally(books, "activate").code == 2


def test_periods(books: Books, tally: Tally) -> None:
    assert tally(books, "period").out.startswith("no period of calendar gregorian was closed or locked")
    assert tally(books, "period", "2026-Q1").out == "2026-Q1  quarter  2026-01-01 to 2026-03-31  open\n"
    assert not (books.root / ".tallybook").exists(), "looking makes no store"
    assert "  closed\n" in tally(books, "period", "2026-01", "--close").out
    assert tally(books, "period", "2026-01", "--json").json["status"] == "closed"
    assert tally(books, "period", "--json").json == {"calendar": "gregorian", "periods": {"2026-01": "closed"}}
    assert tally(books, "period", "2026-01", "--lock").code == 0
    assert tally(books, "period").out == "2026-01  locked\n"
    said = tally(books, "period", "2026-01", "--close")
    assert said.code == 1 and "locked is final" in said.err
    assert tally(books, "period", "--close").code == 2
    assert tally(books, "period", "2026-02", "--close", "--lock").code == 2
    said = tally(books, "period", "2026-1")
    assert said.code == 1 and "PeriodNotFound" in said.err


@pytest.mark.parametrize(
    ("settings", "type"),
    [("name: tiny\nstroe: {}\n", "UnknownKey"), ("store: {}\n", "InvalidArguments"), ("name: [{}\n", "InvalidYaml")],
)
def test_settings_with_a_mistake_lead_to_no_other_store(
    books: Books, tally: Tally, monkeypatch: pytest.MonkeyPatch, settings: str, type: str
) -> None:
    """What was closed there would be open in the store that is meant."""
    (books.root / "tallybook.yaml").write_text(settings.format("sqlite:///meta/m.db"))
    for command in (
        ["period", "2026-03", "--close"],
        ["period"],
        ["runs"],
        ["datasets"],
        ["deactivate", "close"],
        ["replay", "nope"],
        ["store", "upgrade"],
    ):
        said = tally(books, *command)
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith("tallybook.yaml:") and f": {type}\n" in said.err
    assert not (books.root / ".tallybook").exists()
    monkeypatch.setenv("TALLYBOOK_STORE", "sqlite:///meta/other.db")
    assert tally(books, "runs").out == "no runs\n", "the environment says which store is meant"


@pytest.mark.parametrize("origin", ["settings", "environment"])
def test_looking_makes_no_store_elsewhere(
    books: Books, tally: Tally, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    url = "sqlite:///meta/m.db"
    if origin == "settings":
        books.edit("tallybook.yaml", "name: tiny", f"name: tiny\nstore: {url}")
    else:
        monkeypatch.setenv("TALLYBOOK_STORE", url)
    assert tally(books, "plan", "close", "--period", "2026-01").code == 0
    assert tally(books, "apply", "--dry-run").code == 0
    assert not (books.root / "meta").exists()
    tally(books, "apply")
    assert (books.root / "meta" / "m.db").exists()


def test_nothing_has_run_yet(books: Books, tally: Tally) -> None:
    assert tally(books, "runs").out == "no runs\n"
    assert tally(books, "runs", "--json").json == {"runs": []}
    assert "there is no project 'clos'" in tally(books, "runs", "--project", "clos").err
    assert "PeriodNotFound" in tally(books, "runs", "--period", "202601").err
    said = tally(books, "runs", "--status", "compleet")
    assert said.code == 2 and "did you mean 'completed'?" in said.err
    for command in (["runs", "nope"], ["replay", "nope"], ["run", "--retry", "nope"]):
        said = tally(books, *command)
        assert said.code == 1 and "no run has the id nope" in said.err
    assert "no datasets are recorded" in tally(books, "datasets").out
    assert tally(books, "datasets", "sales").code == 1


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["run"], 2, "name projects and a period"),
        (["run", "close"], 2, "tallybook run close --period"),
        (["run", "close", "--retry", "x"], 2, "name projects and a period"),
        (["run", "--retry", "x", "--period", "2026-01"], 2, "cannot be given with --retry"),
        (["run", "clos", "--period", "2026-01"], 1, "did you mean 'close'?"),
        (["run", "close", "--period", "january"], 1, "PeriodNotFound"),
        (["run", "report", "--period", "2026-01"], 1, "`tallybook run close` registers it"),
        (["activate", "report"], 1, "`tallybook run close` registers it"),
        (["plan", "clos", "--period", "2026-01"], 1, "did you mean 'close'?"),
    ],
)
def test_mistakes_cost_no_spark(books: Books, tally: Tally, args: list[str], code: int, words: str) -> None:
    said = tally(books, *args)
    assert (said.code, said.out) == (code, "") and words in said.err
    as_json = tally(books, *args, "--json")
    assert as_json.code == code and as_json.json.keys() >= {"problems", "count"}


def test_the_store_is_upgraded(books: Books, tally: Tally) -> None:
    assert tally(books, "store", "upgrade").out == "the store is up to date\n"
    assert tally(books, "store").code == 2
    assert tally(books, "store", "upgrade", "--json").json == {"upgraded": True}


def test_runs_are_listed_filtered_and_shown(closed: tuple[Books, RunResult], tally: Tally) -> None:
    books, result = closed
    run_id = result.run.id
    assert f"\n{run_id}  close v1  2026-01  completed     7" in tally(books, "runs", "--status", "completed").out
    assert tally(books, "runs", "--status", "failed").out == "no runs\n"
    assert tally(books, "runs", "--period", "2026-02", "--json").json == {"runs": []}
    shown = tally(books, "runs", run_id).out
    for words in (
        "completed",
        "reads sales v1, table sales",
        "    csv data/sales/2026-01.csv\n",
        "  2 rows → delta warehouse/ledger\n",
        "registered as dataset ledger v1",
    ):
        assert words in shown
    assert tally(books, "runs", run_id[:10].upper()).out == shown, "the beginning of an id is enough"
    document = tally(books, "runs", run_id, "--json").json
    assert document["run"]["id"] == run_id
    assert [each["seq"] for each in document["operations"]] == [10, 20, 30, 40, 50]
    assert document["snapshot"]["project"]["id"] == "close"


def test_datasets_are_listed_and_shown(closed: tuple[Books, RunResult], tally: Tally) -> None:
    books, result = closed
    listed = tally(books, "datasets").out
    assert f"ledger          1  active  registered for 2026-01 by run {result.run.id}, output 30\n" in listed
    assert "sales           1  active  from a file\n" in listed
    shown = tally(books, "datasets", "ledger").out
    assert f"  rows: delta {books.root / 'warehouse' / 'ledger'} at version 0\n" in shown
    assert "  table ledger, temporal mode period\n    id string\n" in shown
    [version] = tally(books, "datasets", "ledger", "--json").json["versions"]
    made = {"run_id": result.run.id, "seq": 30, "project": "close", "period": "2026-01"}
    assert version["registered_by"] == made
    assert "did you mean 'ledger'?" in tally(books, "datasets", "legder").err


def test_replay_says_identical(closed: tuple[Books, RunResult], tally: Tally) -> None:
    books, result = closed
    document = tally(books, "replay", result.run.id, "--json").json
    assert document["identical"] and [each["rows"] for each in document["outputs"]] == [2, 5]


def test_plan_says_that_a_run_would_be_refused(books: Books, tally: Tally) -> None:
    def refused() -> Any:
        said = tally(books, "plan", "close", "--period", "2026-01")
        problem = tally(books, "plan", "close", "--period", "2026-01", "--json").json["refused"]
        assert said.code == 0
        last = said.out.splitlines()[-1]
        assert last == f"a run would be refused: {problem['message']}" if problem else "refused" not in said.out
        return problem and (problem["type"], problem["message"])

    assert refused() is None
    tally(books, "activate", "close")
    assert refused() is None
    tally(books, "period", "2026-01", "--close")
    assert refused() == ("PeriodNotOpen", "period 2026-01 is closed")
    text = (books.root / "sales.yaml").read_text()
    books.edit("sales.yaml", "{name: region,", "{name: area,")
    conflict = (
        "ProjectNotRunnable",
        "project 'close' is in conflict with a dataset it uses: dataset sales v1 → v2, "
        "column region: renamed to area, used by operations 10, 40",
    )
    assert refused() == conflict, "the run would record the change first"
    tally(books, "apply")
    assert refused() == conflict
    (books.root / "sales.yaml").write_text(text)
    tally(books, "deactivate", "close")
    assert refused() == ("ProjectNotRunnable", "project 'close' is inactive")


SAME_PLACE = """\
project:
  id: twice
  name: Twice
  input_dataset_id: sales
  operations:
    - {seq: 1, name: All, type: output, arguments: {destination: {location: ids}, columns: [id]}}
    - {seq: 2, name: Again, type: output, arguments: {destination: {location: ids}, columns: [id], mode: append}}
---
project:
  id: silent
  name: Silent
  input_dataset_id: sales
  operations:
    - {seq: 1, name: Drop, type: delete}
"""


def test_replay_says_what_it_could_not_compare(books: Books, tally: Tally, spark: object) -> None:
    (books.root / "more.yaml").write_text(SAME_PLACE)
    tally(books, "activate", "twice")
    run_id = books.run("twice").run.id
    said = tally(books, "replay", run_id)
    assert said.code == 1, "a script must not take it for a proof"
    assert "): output 2 has written there since\n" in said.out and "): identical\n" in said.out
    assert said.out.endswith(f"run {run_id}: could not be compared\n")
    document = tally(books, "replay", run_id, "--json").json
    assert document["identical"] is None
    assert [each["identical"] for each in document["outputs"]] == [None, True]

    run_id = books.run("silent").run.id
    said = tally(books, "replay", run_id)
    assert (said.code, said.out) == (1, f"the run has no outputs to compare\nrun {run_id}: could not be compared\n")


ADDING = """\
project:
  id: adding
  name: Adding
  input_dataset_id: sales
  operations:
    - seq: 1
      name: Moments
      type: update
      arguments:
        assignments:
          - {column: at, expression: 'TIMESTAMP("2026-01-01T00:30:00Z")'}
          - {column: early, expression: 'TIMESTAMP("0001-01-01T00:00:00Z")'}
    - {seq: 2, name: D, type: output, arguments: {destination: {location: all.delta}, mode: append}}
    - {seq: 3, name: P, type: output, arguments: {destination: {location: all}, mode: append, columns: [id, at, early]}}
    - seq: 4
      name: C
      type: output
      arguments: {destination: {location: {path: texts, format: csv}}, mode: append, columns: [id, at, early]}
"""


def test_rows_are_shown_of_this_run_and_in_utc(
    books: Books, tally: Tally, spark: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """West of Greenwich the first moment of year 1 is in a year that Python does not have."""
    (books.root / "adding.yaml").write_text(ADDING)
    tally(books, "activate", "adding")
    assert tally(books, "run", "adding", "--period", "2026-01").code == 0
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        said = tally(books, "run", "adding", "--period", "2026-02", "--show", "9")
    time.tzset()
    assert said.code == 0
    shown = [text.splitlines()[2:] for text in re.split(r"first rows of output \d:\n", said.out)[1:]]
    moments = "2026-01-01 00:30:00  0001-01-01 00:00:00"
    [[first], *others] = [[line.strip() for line in lines if line] for lines in shown]
    assert first.startswith(f"d   EMEA      5.00  {moments}  "), "then the system columns, which are written, too"
    assert others == [[f"d   {moments}"], [f"d   {moments}"]]


def test_run_says_what_it_did(books: Books, tally: Tally, spark: object) -> None:
    (books.root / "data" / "sales" / "2026-02.csv").unlink()
    said = tally(books, "run", "close", "--period", "2026-01", "--show", "1")
    assert said.code == 0
    assert "its outputs went to the sandbox" in said.out and "`tallybook activate close`" in said.out
    assert "warning: output 30 went to the sandbox, where only drafts can read it as 'ledger'" in said.out
    assert "2 rows → " in said.out and "first rows of output 30:\n  id  tier   net  _period\n" in said.out
    said = tally(books, "run", "close", "--period", "2026-01", "--period", "2026-02", "--json")
    assert said.code == 1, "the second period has no data"
    assert [each["run"]["period"] for each in said.json["runs"]] == ["2026-01"]
    assert said.json["problems"][0]["type"] == "DataNotFound"
    shown = tally(books, "runs", said.json["items"][1]["run_id"]).out
    assert "last completed operation: none" in shown and "`tallybook run --retry" in shown
