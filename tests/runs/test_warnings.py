"""What a run could leave out without a word: months a calendar does not list, rows that say no period."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import Books

from tallybook.model.columns import ColumnDef, ColumnType
from tallybook.model.dataset import Table
from tallybook.model.datasource import CatalogSource, FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.model.period import GREGORIAN, uncovered_days
from tallybook.storage import inputs
from tallybook.storage.inputs import rows_without_period

CALENDAR = dedent("""
    calendar:
      id: retail
      periods:
        - {identifier: Q1, level: quarter, start_date: 2026-01-01, end_date: 2026-03-31}
        - {identifier: P1, level: month, start_date: 2026-01-01, end_date: 2026-01-31, parent: Q1}
        - {identifier: P3, level: month, start_date: 2026-03-01, end_date: 2026-03-30, parent: Q1}
    """)
MISSING = (
    "calendar 'retail' has no month for 2026-02-01 to 2026-02-28, 2026-03-31 to 2026-03-31 of quarter Q1, so no rows "
    "of sales v1, table sales are read for these days"
)


def test_days_that_no_part_has() -> None:
    quarter = GREGORIAN.period("2026-Q1")
    months = GREGORIAN.children(quarter, "month")
    assert uncovered_days(quarter, months) == []
    missing = uncovered_days(quarter, months[1:2])
    assert [(str(first), str(last)) for first, last in missing] == [
        ("2026-01-01", "2026-01-31"),
        ("2026-03-01", "2026-03-31"),
    ]


def test_a_quarter_that_lacks_a_month_says_so(books: Books, spark: SparkSession) -> None:
    (books.root / "calendar.yaml").write_text(CALENDAR)
    books.edit("tallybook.yaml", "name: tiny", "name: tiny\ncalendar: retail")
    for month in ("P1", "P3"):
        (books.root / f"data/sales/{month}.csv").write_text("id,region,amount\na,EMEA,10\n")
    assert books.open().plan("close", "Q1").warnings == (MISSING,)
    assert books.open().plan("close", "P1").warnings == ()
    assert list(books.run(period="Q1").warnings)[:1] == [MISSING]


def test_rows_without_a_period_are_counted(books: Books, spark: SparkSession) -> None:
    (books.root / "data/sales/2026-01.csv").write_text(
        'id,region,amount,_period\na,EMEA,10,2026-01\nb,EMEA,5,\nc,EMEA,5," "\nd,EMEA,5,2026-02\n'
    )
    result = books.run()
    warning = "2 rows of sales v1, table sales have no _period, so they belong to no period and no run reads them"
    assert warning in result.warnings
    assert result.outputs[0].rows_written == 1
    (books.root / "data/sales/2026-02.csv").write_text("id,region,amount\na,EMEA,10\n")
    assert not any("no _period" in warning for warning in books.run(period="2026-02").warnings)


@pytest.mark.parametrize(
    ("values", "lost", "jobs"),
    [(["2026-01", "2026-02"], 0, 0), (["2026-01", None], 1, 1), ([" ", "2026-01", "", "\t"], 3, 1)],
)
def test_statistics_spare_the_count(
    monkeypatch: pytest.MonkeyPatch,
    spark: SparkSession,
    tmp_path: Path,
    values: list[str | None],
    lost: int,
    jobs: int,
) -> None:
    counted = []
    count = inputs._count_blank
    monkeypatch.setattr(inputs, "_count_blank", lambda *given: counted.append(given) or count(*given))
    pq.write_table(pa.table({"id": list(range(len(values))), "_period": values}), tmp_path / "a.parquet")
    table = Table(name="t", temporal_mode="period", columns=(ColumnDef(name="id", type=ColumnType("integer")),))
    source = FileSource(id="files", type="parquet", options=FileOptions(path_prefix="/"))
    assert rows_without_period(spark, [Location(source, str(tmp_path))], table) == lost
    assert len(counted) == jobs


def test_rows_of_a_catalog_table_are_counted(spark: SparkSession) -> None:
    """Such a table has no files that Tallybook knows, so there are no statistics either."""
    spark.createDataFrame([(1, "2026-01"), (2, None)], "id int, _period string").createOrReplaceTempView("lost_rows")
    table = Table(name="t", temporal_mode="period", columns=(ColumnDef(name="id", type=ColumnType("integer")),))
    location = Location(CatalogSource(id="session", type="spark_catalog"), "lost_rows")
    assert rows_without_period(spark, [location], table) == 1
