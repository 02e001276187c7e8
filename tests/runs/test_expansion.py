"""`${...}` in what users write stays as it is in results, messages, the store and the log, also in a session that
Tallybook did not start, where Spark would put variables and settings there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from pyspark.sql import SparkSession
from tests.kit.workspaces import Books, parquet_rows

from tallybook.engine.session import log_file
from tallybook.errors import RunError

TEXT = "${env:PATH} ${spark:tallybook.secret} ${tallybook.secret} ${env.PATH}"
PERIOD = "${tallybook.secret}-${env.PATH}"
"""In file names there is no colon: Hadoop has no paths with one."""
FILES = {
    "tallybook.yaml": "{name: 'TEXT', calendar: odd}",
    "calendar.yaml": """\
        calendar:
          id: odd
          periods: [{identifier: 'PERIOD', level: month, start_date: 2026-01-01, end_date: 2026-01-31}]
        """,
    "places.yaml": """\
        datasource: {id: files, type: csv, name: 'TEXT', options: {path_prefix: in, null_value: '${env:PATH}'}}
        ---
        datasource: {id: lake, type: parquet, options: {path_prefix: out}}
        ---
        resolver:
          id: all
          is_default: true
          rules:
            - name: 'TEXT'
              when: 'period.identifier <> "TEXT" AND table.name <> "TEXT"'
              data_level: month
              strategy: {type: path, datasource_id: files, path: '{{period}}/{{table_name}}.csv'}
        """,
    "sales.yaml": """\
        dataset:
          id: sales
          name: 'TEXT'
          main_table:
            name: 'table PERIOD'
            temporal_mode: period
            columns:
              - {name: id, type: string, source: 'TEXT', description: 'TEXT'}
              - {name: amount, type: integer, source: '${system:java.home}'}
          lookups:
            - alias: 'TEXT'
              target:
                name: 'tiers PERIOD'
                columns: [{name: key, type: string, source: '${env:PATH}'}, {name: tier, type: string}]
              join_conditions: [{source_column: id, target_column: key}]
        """,
    "rates.yaml": """\
        dataset:
          id: rates
          name: Rates
          main_table:
            name: rates
            columns: [{name: key, type: string, source: 'TEXT'}, {name: rate, type: integer}]
        """,
    "close.yaml": """\
        project:
          id: close
          name: 'TEXT'
          input_dataset_id: sales
          selectors: {all: 'id LIKE "%TEXT%" OR id = "TEXT" OR id IN ("${env:PATH}", "b")'}
          operations:
            - seq: 1
              name: 'TEXT'
              type: update
              selector: '{{all}}'
              arguments:
                joins:
                  - {alias: 'rates TEXT', dataset_id: rates, on: '`rates TEXT`.key = id AND `rates TEXT`.rate < amount'}
                assignments:
                  - {column: literal, expression: '"TEXT"'}
                  - {column: tier, expression: '`TEXT`.tier'}
                  - {column: rate, expression: '`rates TEXT`.rate'}
                  - {column: _labels, expression: 'CONCAT("${env:PATH} ", PERIOD())'}
            - seq: 2
              name: Sum
              type: aggregate
              selector: 'literal = "TEXT"'
              arguments: {group_by: [literal], aggregations: [{column: total, expression: SUM(amount)}]}
            - seq: 3
              name: Table
              type: output
              arguments: {destination: {datasource_id: lake, table: 'table {{period}}'}}
            - seq: 4
              name: File
              type: output
              arguments:
                destination: {location: {path: 'reports/{{period}}.csv', format: csv, null_value: 'TEXT'}}
                columns: [id, tier, literal, total]
        """,
    "in/PERIOD/table PERIOD.csv": "TEXT,${system:java.home}\n${env:PATH},1\nTEXT,7\nb,9\n",
    "in/PERIOD/tiers PERIOD.csv": "${env:PATH},tier\nTEXT,gold\nb,TEXT\n",
    "in/PERIOD/rates.csv": "TEXT,rate\nb,3\nb,10\n",
}  # fmt: skip


@pytest.fixture
def books(tmp_path: Path) -> Books:
    def filled(text: str) -> str:
        return dedent(text).replace("TEXT", TEXT).replace("PERIOD()", "PERIOD_()").replace("PERIOD", PERIOD)

    for name, text in FILES.items():
        file = tmp_path / filled(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(filled(text).replace(f"{PERIOD}_()", "PERIOD()"))
    return Books(tmp_path)


@pytest.fixture(autouse=True)
def _expanding(spark: SparkSession, books: Books) -> Iterator[None]:
    """A session as others start it. After the test no file of the workspace and no line of the log has a secret."""
    settings = {"spark.sql.variable.substitute": "true", "tallybook.secret": "hunter2"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    log = log_file(spark)
    before = log.stat().st_size if log and log.exists() else 0
    yield
    for key in settings:
        spark.conf.unset(key)
    kept = [file.read_bytes() for file in books.root.rglob("*") if file.is_file()]
    kept += [str(file).encode() for file in books.root.rglob("*")]
    kept += [log.read_bytes()[before:]] if log and log.exists() else []
    for secret in ("hunter2", os.environ["PATH"]):
        assert not [text for text in kept if secret.encode() in text]


def test_a_run(books: Books) -> None:
    books.open().activate("close")
    run = books.run(period=PERIOD).run
    written = parquet_rows(
        books.root / "out" / f"table {PERIOD}",
        "id", "amount", "literal", "tier", "rate", "_labels", "_period", "_source_table", "total",
    )  # fmt: skip
    label, table = f"${{env:PATH}} {PERIOD}", f"table {PERIOD}"
    assert written == [
        (TEXT, 7, TEXT, "gold", None, label, PERIOD, table, None),
        ("b", 9, TEXT, TEXT, 3, label, PERIOD, table, None),
        (None, 1, None, None, None, "", PERIOD, table, None),
        (None, None, TEXT, None, None, "", None, table, 16),
    ]
    report = (books.root / "reports" / f"{PERIOD}.csv").read_text().splitlines()
    assert f"{TEXT},gold,{TEXT},{TEXT}" in report
    assert books.open().replay(run.id).identical


def test_messages(books: Books) -> None:
    rates = next(books.root.rglob("rates.csv"))
    rates.write_text(f"{TEXT},rate\nb,3\nb,4\n")
    with pytest.raises(RunError) as twice:
        books.run(period=PERIOD)
    assert (twice.value.problem.type, f"'rates {TEXT}'" in twice.value.problem.message) == ("JoinNotUnique", True)
    rates.write_text(f"{TEXT},rate\n{TEXT},many\n")
    with pytest.raises(RunError) as bad:
        books.run(period=PERIOD)
    assert (bad.value.problem.type, str(rates) in bad.value.problem.message) == ("DataLoadError", True)
    rates.write_text("key,rate\n")
    with pytest.raises(RunError) as absent:
        books.run(period=PERIOD)
    assert (absent.value.problem.type, f"'{TEXT}'" in absent.value.problem.message) == ("SchemaMismatch", True)
    rates.unlink()
    with pytest.raises(RunError) as gone:
        books.run(period=PERIOD)
    assert (gone.value.problem.type, f"rule '{TEXT}'" in gone.value.problem.message) == ("DataNotFound", True)


def test_paths_with_a_colon(books: Books) -> None:
    """Hadoop has no such paths. The message says so, and has the path as it was written."""
    books.edit("close.yaml", "reports/{{period}}.csv", "reports/a:b.csv")
    with pytest.raises(RunError) as output:
        books.run(period=PERIOD)
    assert (output.value.problem.type, output.value.problem.seq) == ("WriteFailed", 4)
    assert "a:b.csv" in output.value.problem.message
    books.edit("places.yaml", "{{period}}/{{table_name}}.csv", "a:b.csv")
    (books.root / "in" / "a:b.csv").write_text("a\n1\n")
    with pytest.raises(RunError) as place:
        books.run(period=PERIOD)
    assert (place.value.problem.type, "'a:b.csv'" in place.value.problem.message) == ("DataLoadError", True)
