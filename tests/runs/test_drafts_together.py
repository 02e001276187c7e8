"""Drafts can be tried together: a draft reads what another draft registered in the sandbox; an active project never."""

from __future__ import annotations

import pytest
from tests.kit.workspaces import Books

from tallybook.errors import RunError, ValidationError


def sandboxed(books: Books, period: str = "2026-01") -> str:
    return next((books.root / ".tallybook/sandbox/report" / period).glob("2-*")).read_text()


def test_a_draft_reads_what_another_draft_registered(books: Books) -> None:
    with pytest.raises(ValidationError, match="there is no dataset 'ledger'"):
        books.run("report")
    books.run("close")
    result = books.run("report")
    notice = "'ledger' is read from the sandbox, where draft 'close' registered it"
    assert result.run.sandbox and notice in result.warnings
    assert sandboxed(books) == "id,double\na,18.00\nb,36.00\n"
    assert notice in books.open().plan("report", "2026-01").warnings
    assert books.open().replay(result.run.id).identical
    books.edit("close.yaml", "ROUND(amount * 0.9, 2)", "ROUND(amount * 0.5, 2)")
    books.run("close")
    books.run("report")
    assert sandboxed(books) == "id,double\na,10.00\nb,20.00\n"


@pytest.mark.long
def test_each_period_is_read_from_its_own_run(books: Books) -> None:
    books.run("close")
    with pytest.raises(RunError) as caught:
        books.open().plan("report", "2026-02")
    problem = caught.value.problem
    assert problem.type == "DataNotFound" and "draft 'close' has not been run for it" in problem.message
    assert problem.hint == "`tallybook run close --period 2026-02` writes it"
    books.run("close", "2026-02")
    books.run("report", "2026-02")
    assert sandboxed(books, "2026-02") == "id,double\nd,9.00\n"
    with pytest.raises(RunError, match="no rows of 'ledger' for 2026-03: draft 'close' has not been run for it"):
        books.open().plan("report", "2026-Q1")
    (books.root / "data/sales/2026-03.csv").write_text("id,region,amount\ne,APAC,30\n")
    books.run("close", "2026-03")
    quarter = books.open().plan("report", "2026-Q1")
    months = [location.period for location in quarter.locations[quarter.input]]
    assert months == ["2026-01", "2026-02", "2026-03"]


def test_an_active_project_does_not_see_the_sandbox(books: Books) -> None:
    books.run("close")
    with pytest.raises(ValidationError) as caught:
        books.open().activate("report")
    assert caught.value.problem.type == "DatasetNotFound"
    books.open().activate("close")
    with pytest.raises(ValidationError):
        books.run("report")  # the draft is an active project now, and has registered nothing yet
    books.run("close")
    assert not any("sandbox, where" in warning for warning in books.run("report").warnings)
