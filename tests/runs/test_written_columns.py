"""What an output writes: renamed columns, sorted rows, no system columns; and `--show` shows exactly that."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from python_calamine import CalamineWorkbook
from tests.kit.commands import Tally
from tests.kit.workspaces import Books

SALES = "id,region,amount\na,EMEA,10\nb,APAC,30\nc,,7\nd,APAC,\ne,EMEA,10\n"
REPORT = """
project:
  id: sorted
  name: Sorted
  input_dataset_id: sales
  operations:
    - seq: 1
      name: Note
      type: update
      arguments: {assignments: [{column: note, expression: 'IF(id = "a", "", TO_STRING(NULL))'}]}
    - seq: 2
      name: Sheet
      type: output
      arguments:
        destination: {location: {path: out, %s}}
        columns: [id, {amount: "Amount, EUR"}, {_period: Month}, {note: 'Note "n"'}]
        order_by: [region, -amount]
"""
ROWS = [("b", 30), ("d", None), ("a", 10), ("e", 10), ("c", 7)]
"""By region, NULL last; by amount downwards, NULL last; then as the rows came in."""


@pytest.fixture
def sorting(books: Books, spark: SparkSession) -> Books:
    (books.root / "data/sales/2026-01.csv").write_text(SALES)
    return books


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc"])
def test_renamed_columns_and_sorted_rows(sorting: Books, tally: Tally, spark: SparkSession, format: str) -> None:
    (sorting.root / "sorted.yaml").write_text(REPORT % f"format: {format}")
    sorting.open().activate("sorted")
    said = tally(sorting, "run", "sorted", "--period", "2026-01", "--show", "3")
    folder = sorting.root / "out"
    [file] = folder.iterdir()
    reader = spark.read.options(header=True, escape='"') if format == "csv" else spark.read
    frame = reader.format(format).load(str(folder))
    names = ["id", "Amount, EUR", "Month", 'Note "n"']
    assert sorted(frame.columns) == sorted(names)
    written = [(row.id, None if row["Amount, EUR"] is None else float(row["Amount, EUR"])) for row in frame.collect()]
    assert written == ROWS
    assert frame.first()["Month"] == "2026-01"
    nothing = "NULL" if format == "csv" else '""'
    assert [line.split() for line in said.out.splitlines()[-5:]] == [
        ["id", "Amount,", "EUR", "Month", "Note", '"n"'],
        ["──", "───────────", "───────", "────────"],
        ["b", "30.00", "2026-01", "NULL"],
        ["d", "NULL", "2026-01", "NULL"],
        ["a", "10.00", "2026-01", nothing],
    ]
    assert file.suffix == f".{format}"


def test_a_registered_dataset_reads_renamed_columns(active: Books) -> None:
    columns = "columns: [id, {tier: Tier-Name}, {net: Net%}, {_period: Month}]"
    active.edit("close.yaml", "columns: [id, tier, net, _period]", columns)
    active.open().activate("close")
    active.run()
    active.open().activate("report")
    active.run("report")
    lines = (active.root / "texts/2026-01.csv").read_text().splitlines()
    assert lines == ["id,double", "a,18.00", "b,36.00"]


def test_without_system_columns(active: Books, spark: SparkSession) -> None:
    active.edit("close.yaml", "exclude_columns: [_labels]", "exclude_columns: system")
    active.open().activate("close")
    active.run()
    frame = spark.read.parquet(str(active.root / "reports/2026-01"))
    assert frame.columns == ["id", "region", "amount", "net", "tier", "total"]
    assert frame.where("total IS NULL").count() == 3


WORKBOOK = """
datasource: {id: sheets, type: excel, options: {path_prefix: sheets, sheet: Sales}}
---
project:
  id: sheet
  name: Sheet
  input_dataset_id: sales
  operations:
    - {seq: 1, name: A, type: output, arguments: {destination: {datasource_id: sheets, table: a.xlsx}, order_by: [-id]}}
    - {seq: 2, name: B, type: output, arguments: {destination: {location: b.xlsx}, columns: [{amount: Sum}, _period]}}
"""


def test_workbooks_have_no_system_columns_unless_they_are_chosen(sorting: Books, tally: Tally) -> None:
    (sorting.root / "sheet.yaml").write_text(WORKBOOK)
    sorting.open().activate("sheet")
    said = tally(sorting, "run", "sheet", "--period", "2026-01", "--show", "1")
    assert said.code == 0, said.err
    book = CalamineWorkbook.from_path(sorting.root / "sheets/a.xlsx")
    assert book.sheet_names == ["Sales"]
    rows = book.get_sheet_by_name("Sales").to_python()
    assert rows[0] == ["id", "region", "amount"]
    assert [row[0] for row in rows[1:]] == ["e", "d", "c", "b", "a"]
    rows = CalamineWorkbook.from_path(sorting.root / "b.xlsx").get_sheet_by_index(0).to_python()
    assert rows[0] == ["Sum", "_period"]
    assert "  e   EMEA     10.00" in said.out
    run = sorting.newest()
    assert sorting.open().replay(run.id).identical is True


def test_a_replay_of_renamed_and_sorted_rows(sorting: Books, spark: SparkSession) -> None:
    (sorting.root / "sorted.yaml").write_text(REPORT % "format: csv, decimal: ',', delimiter: ';'")
    sorting.open().activate("sorted")
    run = sorting.run("sorted").run
    [file] = (sorting.root / "out").iterdir()
    assert Path(file).read_text().splitlines()[:2] == ['id;Amount, EUR;Month;"Note ""n"""', "b;30,00;2026-01;"]
    assert sorting.open().replay(run.id).identical is True


def test_the_plan_shows_names_and_order(sorting: Books, tally: Tally) -> None:
    (sorting.root / "sorted.yaml").write_text(REPORT % "format: csv")
    said = tally(sorting, "plan", "sorted", "--period", "2026-01")
    assert '   columns     id, Amount, EUR, Month, Note "n"\n' in said.out
    assert "   order by    region, -amount\n" in f"{said.out}\n"


def test_a_scenario_reads_renamed_columns(sorting: Books, tally: Tally) -> None:
    (sorting.root / "sorted.yaml").write_text(REPORT % "format: csv")
    (sorting.root / "scenario.yaml").write_text("""
scenario:
  name: Renamed
  project: sorted
  period: 2026-01
  data: {sales: {sales: [{id: a, region: EMEA, amount: 10}]}}
  expect: {rows: [{id: a, "Amount, EUR": 10, Month: 2026-01}], columns: [id, "Amount, EUR", Month, 'Note "n"']}
""")
    said = tally(sorting, "test")
    assert said.code == 0, said.out
