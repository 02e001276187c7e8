"""Draft, active, inactive, conflict; datasets, resolvers and datasources switched off; periods closed and locked."""

from __future__ import annotations

import pytest
from tests.kit.workspaces import FEBRUARY, JANUARY, Books

from tallybook.errors import ProblemError, RunError, StoreError, ValidationError
from tallybook.model.state import ProjectState


def state(books: Books, project: str = "close") -> ProjectState:
    """After recording what the files say now."""
    return next(each for each in books.open().apply().states if each.project_id == project)


def refusal(books: Books, project: str = "close", period: str = "2026-01", **options: str) -> str:
    """The type of the problem a run is refused with, before any run begins."""
    with books.store() as store:
        before = len(store.runs())
    with pytest.raises(ProblemError) as refused:
        books.run(project, period, **options)
    with books.store() as store:
        assert len(store.runs()) == before
    return f"{refused.value.problem.type}: {refused.value.problem.message}"


def test_only_a_valid_project_is_activated(books: Books) -> None:
    books.edit("close.yaml", "amount = 0", "amuont = 0")
    with pytest.raises(ValidationError, match="amuont"):
        books.open().activate("close")
    assert state(books).status == "draft"
    with pytest.raises(ValidationError, match="there is no project 'clsoe'") as unknown:
        books.open().activate("clsoe")
    assert unknown.value.problem.hint == "did you mean 'close'?"


def test_activation_pins_the_input_and_names_do_not_matter(books: Books) -> None:
    assert books.open().activate("close").input_dataset_version == 1
    books.edit("close.yaml", "name: Close", "name: Month end")
    books.edit("close.yaml", "name: Net", "name: Net of rebate")
    books.edit("sales.yaml", "name: Sales", "name: All sales")
    after = state(books)
    assert (after.status, after.version, after.input_dataset_version) == ("active", 2, 1)
    assert books.open().activate("close").input_dataset_version == 2, "activating again pins anew"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("amount = 0", "amount < 0"),
        ("input_dataset_id: sales", "input_dataset_id: tiers"),
        ("input_dataset_id: sales", "input_dataset_id: sales\n  input_dataset_version: 1"),
        ("columns: [id, tier, net, _period]", "columns: [id, net, _period]"),
    ],
)
def test_a_structural_change_makes_a_draft(books: Books, old: str, new: str) -> None:
    books.open().activate("close")
    books.edit("close.yaml", old, new)
    after = state(books)
    assert (after.status, after.version, after.input_dataset_version) == ("draft", 2, None)


def test_deactivate_and_activate(books: Books) -> None:
    with pytest.raises(ProblemError, match="there is no project 'clsoe'"):
        books.open().deactivate("clsoe")
    with pytest.raises(ProblemError, match="not recorded"):
        books.open().deactivate("close")
    state(books)
    with pytest.raises(StoreError, match="is draft and cannot become inactive"):
        books.open().deactivate("close")
    books.open().activate("close")
    assert books.open().deactivate("close").status == "inactive"
    assert refusal(books) == "ProjectNotRunnable: project 'close' is inactive"
    assert books.open().activate("close").status == "active"


def test_a_breaking_dataset_change_is_a_conflict_at_the_next_run(books: Books) -> None:
    books.open().activate("close")
    books.edit("sales.yaml", "{name: region,", "{name: area,")
    books.edit("sales.yaml", '"decimal(10,2)"', "string")
    message = refusal(books)
    assert message.startswith("ProjectNotRunnable: project 'close' is in conflict")
    after = state(books)
    [conflict] = after.conflicts
    assert (conflict.dataset_id, conflict.from_version, conflict.to_version) == ("sales", 1, 2)
    assert [str(each) for each in conflict.changes] == [
        "column region: renamed to area, used by operations 10, 40",
        "column amount: decimal(10,2) → string, used by operations 10, 20",
    ]
    assert str(conflict) in message


def test_a_harmless_dataset_change_is_none(books: Books) -> None:
    books.open().activate("close")
    books.edit("sales.yaml", "- {name: id,", "- {name: note, type: string}\n      - {name: id,")
    assert state(books).status == "active"


def test_a_project_told_to_stay_is_not_asked_again(books: Books) -> None:
    books.open().activate("close")
    with pytest.raises(StoreError, match="not in conflict"):
        books.open().activate("close", stay_pinned=True)
    books.edit("sales.yaml", "{name: region,", "{name: area,")
    assert state(books).status == "conflict"
    assert books.open().activate("close", stay_pinned=True).input_dataset_version == 1
    books.edit("sales.yaml", "- {name: id,", "- {name: note, type: string}\n      - {name: id,")
    assert state(books).status == "active", "the rename was settled, the new column breaks nothing"
    books.edit("sales.yaml", '"decimal(10,2)"', "string")
    [conflict] = state(books).conflicts
    assert [each.column for each in conflict.changes] == ["amount"]


def test_a_conflict_ends_with_a_changed_project(books: Books) -> None:
    books.open().activate("close")
    books.edit("sales.yaml", "{name: region,", "{name: area,")
    assert state(books).status == "conflict"
    with pytest.raises(ValidationError):
        books.open().activate("close")
    books.edit("close.yaml", "sales.region", "sales.area")
    books.edit("close.yaml", "group_by: [region]", "group_by: [area]")
    assert state(books).status == "draft"
    assert books.open().activate("close").input_dataset_version == 2


def test_a_joined_dataset_breaks_a_project_unless_its_version_is_written_down(books: Books) -> None:
    books.open().activate("close")
    books.edit("tiers.yaml", "{name: tier,", "{name: level,")
    [conflict] = state(books).conflicts
    assert [str(each) for each in conflict.changes] == ["column tier: renamed to level, used by operation 10"]
    with pytest.raises(StoreError, match="only its input dataset 'sales' is pinned"):
        books.open().activate("close", stay_pinned=True)
    books.edit("close.yaml", "dataset_id: tiers,", "dataset_id: tiers, dataset_version: 1,")
    assert state(books).status == "draft"
    books.open().activate("close")
    books.edit("tiers.yaml", "{name: level,", "{name: rank,")
    assert state(books).status == "active"


def test_a_changed_dataset_behind_a_lookup_is_a_conflict(books: Books) -> None:
    on = "join_conditions: [{source_column: region, target_column: region}]"
    lookup = f"{{alias: tier_of, target: {{dataset_id: tiers}}, {on}}}"
    books.edit("sales.yaml", "  main_table:", f"  lookups: [{lookup}]\n  main_table:")
    books.edit("close.yaml", "expression: t.tier", "expression: tier_of.tier")
    books.open().activate("close")
    books.edit("tiers.yaml", "{name: tier, type: string}", "{name: tier, type: integer}")
    [conflict] = state(books).conflicts
    assert conflict.dataset_id == "tiers"
    assert [str(each) for each in conflict.changes] == ["column tier: string → integer, used by operation 10"]


@pytest.mark.parametrize(
    ("file", "old", "new", "refused"),
    [
        (
            "tiers.yaml",
            "name: Tiers",
            "name: Tiers\n  status: disabled",
            "DatasetDisabled: dataset 'tiers' is disabled",
        ),
        (
            "sales.yaml",
            "name: Sales",
            "name: Sales\n  status: disabled",
            "DatasetDisabled: dataset 'sales' is disabled",
        ),
        ("places.yaml", "id: by-month", "id: by-month\n  status: disabled", "ResolverNotFound: "),
    ],
)
def test_what_is_disabled_is_refused(books: Books, file: str, old: str, new: str, refused: str) -> None:
    books.open().activate("close")
    books.edit(file, old, new)
    assert refusal(books).startswith(refused)
    books.edit(file, "status: disabled", "status: active")
    assert books.open().validate() == []


def test_periods_close_and_lock_one_way(books: Books) -> None:
    with books.store() as store:
        store.set_period_status("gregorian", "2026-01", "closed")
    assert refusal(books) == "PeriodNotOpen: period 2026-01 is closed"
    assert refusal(books, reopen_reason="  ") == "PeriodNotOpen: period 2026-01 is closed"
    with books.store() as store:
        store.set_period_status("gregorian", "2026-01", "locked")
        with pytest.raises(StoreError, match="locked is final"):
            store.set_period_status("gregorian", "2026-01", "closed")
    assert refusal(books, reopen_reason="late invoice") == "PeriodNotOpen: period 2026-01 is locked"
    assert refusal(books, period="2026-13").startswith("PeriodNotFound")


def test_a_run_needs_the_periods_around_and_inside_open(books: Books) -> None:
    books.open().set_period_status("2026-Q1", "closed")
    assert books.open().period("2026-02").status == "closed"
    assert refusal(books) == "PeriodNotOpen: period 2026-01 cannot run, because period 2026-Q1 is closed"
    books.open().set_period_status("2026-05", "closed")
    books.open().set_period_status("2026-05", "locked")
    locked = "PeriodNotOpen: period 2026-Q2 cannot run, because period 2026-05 is locked"
    assert refusal(books, period="2026-Q2", reopen_reason="late invoice") == locked
    problem = books.open().refusal("close", "2026-Q2")
    assert problem is not None and f"{problem.type}: {problem.message}" == locked


def test_a_draft_runs_into_the_sandbox_and_a_closed_period_with_a_reason(books: Books, spark: object) -> None:
    with books.store() as store:
        store.set_period_status("gregorian", "2026-01", "closed")
    books.edit(
        "close.yaml",
        "destination: {datasource_id: warehouse, table: ledger}",
        "destination: {datasource_id: warehouse, table: ledger}\n        mode: error",
    )
    for _ in range(2):
        result = books.run(reopen_reason="late invoice")
    assert (result.run.sandbox, result.run.reopen_reason) == (True, "late invoice")
    assert result.warnings == ["output 30 went to the sandbox, where only drafts can read it as 'ledger'"]
    assert sorted(entry.name for entry in books.root.iterdir() if entry.is_dir()) == [".tallybook", "data"]
    sandbox = books.root / ".tallybook" / "sandbox" / "close" / "2026-01"
    assert sorted(entry.name for entry in sandbox.iterdir()) == ["30-ledger", "50-2026-01"]
    with books.store() as store:
        assert store.latest("dataset", "ledger") is None


def test_a_disabled_datasource_fails_the_run_and_a_pinned_project_reads_the_old_columns(active: Books) -> None:
    active.edit("places.yaml", "{id: files, type: csv,", "{id: files, status: disabled, type: csv,")
    with pytest.raises(RunError, match="disabled") as failed:
        active.run()
    assert failed.value.run_id is not None
    active.edit("places.yaml", "status: disabled, ", "")
    active.edit("sales.yaml", "{name: region,", "{name: area,")
    state(active)
    active.open().activate("close", stay_pinned=True)
    result = active.run(period="2026-02")
    assert result.plan.input.dataset.version == 1
    assert active.ledger() == FEBRUARY != JANUARY
