"""Two projects write to one location at the same time: no row is lost, doubled or mixed."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import FOREIGN, Books, delta_rows, parquet_rows
from tests.runs.forks import Forks, Job

DESTINATIONS = {
    "delta": "{datasource_id: warehouse, table: both}",
    "parquet": "{location: {path: both, format: parquet}}",
}
ROWS = {"close": [("a", Decimal(9)), ("b", Decimal(18))], "other": [("a", Decimal(20)), ("b", Decimal(40))]}
QUICK = (("delta", "append", 0), ("parquet", "overwrite", 0))


def rows(books: Books, format: str) -> list[tuple[Any, ...]]:
    if format == "delta":
        return delta_rows(books.root / "warehouse/both", columns=["id", "net"])
    return parquet_rows(books.root / "both", "id", "net")


@pytest.mark.fault("two projects write one table at once", "both completed, all rows once")
@pytest.mark.parametrize(
    ("format", "mode", "turn"),
    [
        pytest.param(format, mode, turn, marks=() if (format, mode, turn) in QUICK else pytest.mark.long)
        for format in DESTINATIONS
        for mode in ("append", "overwrite")
        for turn in range(3)
    ],
)
def test_two_projects_at_once(
    books: Books,
    forks: Forks,
    spark: SparkSession,
    record_property: Callable[[str, object], None],
    format: str,
    mode: str,
    turn: int,
) -> None:
    file = books.root / "close.yaml"
    text = file.read_text().partition("    - seq: 40")[0].replace("        register_as_dataset: ledger\n", "")
    text = text.replace("{datasource_id: warehouse, table: ledger}", f"{DESTINATIONS[format]}\n        mode: {mode}")
    file.write_text(text)
    other = text.replace("id: close", "id: other", 1).replace("amount * 0.9", "amount * 2")
    (books.root / "other.yaml").write_text(other)
    for project in ROWS:
        books.open().activate(project)
    outcomes = dict(zip(ROWS, forks.run(*(Job(str(books.root), "2026-01", project) for project in ROWS)), strict=True))
    refused = {project: said for project, said in outcomes.items() if said != "completed"}
    for project, said in refused.items():
        assert "WriteFailed" in said and not any(word in said for word in FOREIGN), said
        with books.store() as store:
            [run] = store.runs(project_id=project)
        assert run.status == "failed"
        assert books.open().retry(run.id).run.status == "completed"
    if mode == "append":
        assert rows(books, format) == sorted(ROWS["close"] + ROWS["other"], key=str)
    else:
        assert rows(books, format) in ROWS.values()
    left = "all rows once" if mode == "append" else "the rows of one, whole"
    record_property(
        "outcome", f"WriteFailed for one, retry completed; {left}" if refused else f"both completed; {left}"
    )
