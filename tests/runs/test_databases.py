"""Runs that read and write a PostgreSQL database: the same rows as from files, once, whole, also after a kill."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable
from tests.kit.month_close import copy_of_month_close, generator
from tests.kit.workspaces import FEBRUARY, JANUARY, AtStep, Books, delta_rows
from tests.runs.forks import DATABASE_MOMENTS, Job

from tallybook.workspace import Workspace

KILLED = pytest.mark.fault(
    "SIGKILL during a write to PostgreSQL", "old rows or new rows, whole; nothing staged is left"
)
SALES = [("a", "EMEA", 10, "2026-01"), ("b", "APAC", 20, "2026-01"), ("c", "EMEA", 0, "2026-01")]


@pytest.fixture
def server(new_database):
    """A connection to an empty database; `server.info.dsn` leads to it."""
    url = new_database().set(drivername="postgresql").render_as_string()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.url = url
        yield connection


def in_database(root: Path, url: str) -> Books:
    """A workspace whose sales and ledger are tables of a database. The ledger keeps the rows of other periods."""
    books = Books.at(root)
    (root / "report.yaml").unlink()
    books.edit(
        "places.yaml",
        "datasource: {id: warehouse",
        f"datasource: {{id: books, type: database, options: {{url: '{url}'}}}}\n---\ndatasource: {{id: warehouse",
    )
    books.edit(
        "places.yaml",
        """\
      data_level: month
      strategy: {type: path, datasource_id: files, path: "{{table_name}}/{{period}}.csv"}
""",
        """\
      strategy: {type: table, datasource_id: books, table: sales, partition_column: number, partitions: 2}
""",
    )
    books.edit("close.yaml", "{datasource_id: warehouse, table: ledger}", "{datasource_id: books, table: ledger}")
    books.edit("close.yaml", "        register_as_dataset: ledger", "        mode: replace_period")
    return books


@pytest.fixture
def books(tmp_path, server, spark):
    server.execute("CREATE TABLE sales (number serial, id text, region text, amount numeric(10,2), _period text)")
    insert(server, *SALES, ("d", "EMEA", 5, "2026-02"))
    books = in_database(tmp_path, server.url)
    books.open().activate("close")
    return books


def insert(server, *rows):
    with server.cursor() as cursor:
        cursor.executemany("INSERT INTO sales (id, region, amount, _period) VALUES (%s, %s, %s, %s)", rows)


def ledger(server):
    return sorted(server.execute("SELECT id, tier, net, _period FROM ledger").fetchall())


def staging_tables(server):
    found = server.execute("SELECT relname FROM pg_class WHERE relname ~ '^tallybook_[0-9a-f]{32}_'")
    return [name for (name,) in found]


def test_a_close_in_a_database(books, server):
    for period in ("2026-01", "2026-02", "2026-01"):
        assert books.run(period=period).run.status == "completed"
    assert ledger(server) == sorted(JANUARY + FEBRUARY)
    with books.store() as store:
        (sales,) = (kept for kept in store.snapshot(books.newest().id).resolver_snapshots if kept.table == "sales")
    (state,) = sales.locations[0]["files"]
    assert (state["file"], state["rows"]) == ("sales", 4)
    replayed = books.open().replay(books.newest().id)
    assert (replayed.identical, replayed.changed_inputs) == (True, [])


def test_a_table_that_changes_while_it_is_read(books, server):
    added = AtStep(20, lambda: insert(server, ("e", "EMEA", 7, "2026-01")))
    assert books.open().run("close", "2026-01", observers=[added]).run.status == "completed"
    assert ledger(server) == JANUARY
    replayed = books.open().replay(books.newest().id)
    assert replayed.identical is False
    assert replayed.changed_inputs == ["sales was changed"]


def test_a_value_that_cannot_be_read_names_its_table(books, server):
    server.execute("UPDATE sales SET amount = 'NaN' WHERE id = 'b'")
    problem = books.fails()
    assert problem.type == "DataLoadError"
    assert problem.message == "column 'amount' of table 'sales' is decimal(10,2) and cannot hold database sales: 'NaN'"


def test_a_connection_that_breaks_while_rows_are_read(books, server):
    ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tallybook'"
    with pytest.raises(Exception, match="could not be read"):
        books.open().run("close", "2026-01", observers=[AtStep(10, lambda: server.execute(ends))])
    assert books.newest().status == "failed"


def test_a_table_that_the_run_reads_is_not_written(books):
    books.edit("close.yaml", "table: ledger", "table: sales")
    books.open().activate("close")
    assert books.fails().type == "InvalidDestination"


def as_text(rows):
    return sorted(tuple(map(str, row)) for row in rows)


@pytest.mark.long
def test_the_month_close_in_production(tmp_path, server, spark, monkeypatch):
    """The example on files, and in its environment prod, where PostgreSQL has its ledger and gets its audit trail: the
    same rows."""
    root = copy_of_month_close(tmp_path / "close")
    text = (root / "tallybook.yaml").read_text()
    (root / "tallybook.yaml").write_text(text.replace("postgresql://close@ledger.internal/finance", server.url))
    monkeypatch.setenv("LEDGER_PASSWORD", "this server trusts everybody")
    journal = generator().journal(spark, "2026-01", 90, 1)
    journal.write.parquet(str(root / "data" / "journal_2026_01"))
    load_journal(server, journal)
    for environment in (None, "prod"):
        workspace = Workspace.open(root, environment=environment)
        workspace.activate("month-close")
        workspace.run("month-close", "2026-01")

    closed, in_production = (delta_rows(root / folder / "closed_ledger") for folder in ("warehouse", "prod/warehouse"))
    assert len(closed) > 90 and as_text(closed) == as_text(in_production)
    expected = DeltaTable(root / "warehouse" / "audit_trail").to_pyarrow_table().drop_columns("_row_id")
    columns = psycopg.sql.SQL(", ").join(map(psycopg.sql.Identifier, expected.column_names))
    written = server.execute(psycopg.sql.SQL("SELECT {} FROM audit.audit_trail").format(columns)).fetchall()
    assert len(written) == 90
    assert as_text(written) == as_text(tuple(row.values()) for row in expected.to_pylist())
    assert not (root / "prod" / "warehouse" / "audit_trail").exists()


def load_journal(server, journal) -> None:
    """Puts the journal of a month into a table, with other types than in the files."""
    server.execute("CREATE SCHEMA ledger; CREATE SCHEMA audit")
    server.execute(
        "CREATE TABLE ledger.journal_2026_01 (journal_id text NOT NULL, line_number int NOT NULL, posting_date date,"
        " document_ref text, memo text, account_code text, cost_centre text, currency char(3),"
        " amount_local numeric(18,2), amount_reporting numeric, PRIMARY KEY (journal_id, line_number))"
    )
    with server.cursor() as cursor:
        cursor.executemany(f"INSERT INTO ledger.journal_2026_01 VALUES ({', '.join(['%s'] * 10)})", journal.collect())


LATER = [pytest.param(turn, marks=pytest.mark.long) for turn in range(17)]


@pytest.fixture
def killed(books, server, forks):
    """Changes the input, then kills a run of it; returns the old rows and the new ones."""
    books.run()

    def kill(**job):
        old = ledger(server)
        insert(server, *(("x" + str(number), "EMEA", 1, "2026-01") for number in range(2000)))
        new = sorted(old + [("x" + str(number), "gold", Decimal("0.90"), "2026-01") for number in range(2000)])
        said = forks.run(Job(str(books.root), "2026-01", **job))
        assert said in (["killed"], ["completed"]), said
        return old, new

    return kill


@pytest.mark.long
@KILLED
@pytest.mark.parametrize("moment", DATABASE_MOMENTS)
def test_killed_at_a_moment(books, server, killed, moment):
    old, new = killed(dies=f"database {moment}")
    assert ledger(server) == (new if moment == "committed" else old)
    assert books.retry().outputs[0].rows_written == len(new)
    assert (ledger(server), staging_tables(server)) == (new, [])


@KILLED
@pytest.mark.parametrize("turn", LATER)
def test_killed_at_any_time(books, server, killed, turn):
    old, new = killed(dies_after=random.Random(turn).uniform(0.5, 12))
    assert ledger(server) in (old, new)
    books.run()
    assert (ledger(server), staging_tables(server)) == (new, [])
