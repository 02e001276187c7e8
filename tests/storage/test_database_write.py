"""Outputs to PostgreSQL and SQLite: one transaction, exact values, tables kept, nothing twice and nothing left."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from threading import Barrier, BrokenBarrierError, Timer

import psycopg
import pytest

from tallybook.errors import RunError, fail
from tallybook.model.replaced_periods import ReplacedPeriods
from tallybook.storage.output import Guard
from tallybook.storage.write import check_destination, has_written, write

COLUMNS = "id bigint, amount decimal(12,2), paid boolean, day date, at timestamp, name string"
NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)
ROWS = [(1, Decimal("10.10"), True, date(2026, 1, 31), NOON, "Zoë"), (2, None, None, None, None, "")]


@pytest.fixture
def publish(spark, run_id):
    """`publish(location, [(1, "a")], "id bigint, name string", run="run-2", mode="append")`: writes rows."""

    def make(location, rows=ROWS, columns=COLUMNS, *, run="run-1", seq=10, mode="overwrite", periods=None, **guard):
        frame = rows if hasattr(rows, "columns") else spark.createDataFrame(rows, columns)
        allowed = Guard(guard.pop("check", lambda: None), guard.pop("output", "close"), guard.pop("claim", 1), **guard)
        return write(spark, frame, location, mode=mode, run_id=run_id(run), seq=seq, guard=allowed, periods=periods)

    return make


@pytest.fixture
def refused_write(publish):
    """Returns the problem of a write."""

    def problem(*args, **options):
        with pytest.raises(RunError) as caught:
            publish(*args, **options)
        return caught.value.problem

    return problem


@pytest.fixture(params=["postgresql", "sqlite"])
def ledger(request):
    """The location of a table that does not exist yet."""
    if request.param == "sqlite":
        return request.getfixturevalue("lite").at("ledger")
    request.getfixturevalue("server")
    return request.getfixturevalue("at")("ledger")


@pytest.fixture
def content(rows, table):
    """The ids and names in the ledger."""
    return lambda location: sorted(rows(location, table(id="integer", name="string")))


def staging_tables(server):
    found = server.execute("SELECT relname FROM pg_class WHERE relname ~ '^tallybook_[0-9a-f]{32}' AND relkind = 'r'")
    return [name for (name,) in found]


def test_a_new_table_has_exact_types_and_values(publish, ledger, rows, table):
    written = publish(ledger)
    assert (written.rows, written.columns) == (2, ("id", "amount", "paid", "day", "at", "name"))
    declared = table(id="integer", amount="decimal(12,2)", paid="boolean", day="date", at="timestamp", name="string")
    first, second = sorted(rows(ledger, declared))
    assert (*first[:4], first[4].astimezone(UTC), first[5]) == ROWS[0]
    assert second == ROWS[1]


def test_the_types_of_a_new_table_in_postgresql(publish, server, at):
    publish(at("ledger"))
    found = server.execute("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'ledger'")
    types = ["bigint", "numeric", "boolean", "date", "timestamp with time zone", "text"]
    assert dict(found.fetchall()) == dict(zip(["id", "amount", "paid", "day", "at", "name"], types, strict=True))
    assert staging_tables(server) == []


def test_overwrite_append_and_error(publish, refused_write, ledger, content):
    columns = "id bigint, name string"
    publish(ledger, [(1, "a"), (2, "b")], columns)
    publish(ledger, [(3, "c")], columns, run="run-2", mode="append")
    assert content(ledger) == [(1, "a"), (2, "b"), (3, "c")]
    assert refused_write(ledger, [(4, "d")], columns, run="run-3", mode="error").message.endswith("already exists")
    assert publish(ledger, [], columns, run="run-4").rows == 0
    assert content(ledger) == []


def test_a_retry_writes_nothing_twice(spark, publish, ledger, content, run_id):
    columns = "id bigint, name string"
    for _ in range(2):
        assert publish(ledger, [(1, "a")], columns, mode="append").rows == 1
    assert content(ledger) == [(1, "a")]
    assert [has_written(ledger, run_id("run-1"), seq) for seq in (10, 20)] == [True, False]
    assert has_written(ledger, run_id("run-2"), 10) is False


def test_the_rows_of_a_period_are_replaced(publish, refused_write, ledger, rows, table):
    columns = "id bigint, _period string"
    months = {"month": ("2026-01", "2026-02", "2026-03")}
    january, quarter = ReplacedPeriods("2026-01"), ReplacedPeriods("2026-Q1", months)
    publish(ledger, [(1, "2026-01"), (2, "2026-02"), (3, "2026-Q1")], columns)
    again = {"mode": "replace_period", "periods": january}
    for _ in range(2):
        assert publish(ledger, [(4, "2026-01"), (5, "2026-01")], columns, run="run-2", **again).periods == ("2026-01",)
    declared = table("period", id="integer")
    assert sorted(rows(ledger, declared)) == [(2, "2026-02"), (3, "2026-Q1"), (4, "2026-01"), (5, "2026-01")]
    assert (
        "rows of the period '2026-02'" in refused_write(ledger, [(6, "2026-02")], columns, run="run-3", **again).message
    )
    publish(ledger, [(7, "2026-03")], columns, run="run-4", mode="replace_period", periods=quarter)
    assert sorted(rows(ledger, declared)) == [(7, "2026-03")]


def test_rows_of_another_system_in_the_period_are_not_deleted(publish, refused_write, server, at):
    server.execute("CREATE TABLE ledger (id int, _period text)")
    server.execute("INSERT INTO ledger VALUES (1, '2026-01'), (2, '2026-02')")
    options = {"columns": "id bigint, _period string", "mode": "replace_period"}
    problem = refused_write(at("ledger"), [(3, "2026-01")], periods=ReplacedPeriods("2026-01"), **options)
    assert "has 1 row of 2026-01 that this product did not write" in problem.message
    for run in ("run-2", "run-3"):
        publish(at("ledger"), [(3, "2026-03")], run=run, periods=ReplacedPeriods("2026-03"), **options)
    found = server.execute("SELECT id, _period FROM ledger ORDER BY id").fetchall()
    assert found == [(1, "2026-01"), (2, "2026-02"), (3, "2026-03")]


def test_two_outputs_of_a_run_to_one_table(publish, ledger, content):
    columns = "id bigint, name string"
    publish(ledger, [(1, "a")], columns)
    publish(ledger, [(2, "b")], columns, seq=20, mode="append")
    assert content(ledger) == [(1, "a"), (2, "b")]


def test_a_run_that_was_declared_dead_writes_nothing(publish, refused_write, ledger, content, run_id):
    columns = "id bigint, name string"
    publish(ledger, [(2, "new")], columns, run="run-2", claim=2)
    assert refused_write(ledger, [(1, "old")], columns, claim=1).type == "RunSuperseded"
    rival = refused_write(ledger, [(3, "c")], columns, run="run-3", claim=3, mode="append", rivals=(run_id("run-2"),))
    assert rival.type == "AlreadyAppended"
    assert content(ledger) == [(2, "new")]


def test_a_refused_guard_leaves_the_old_rows(publish, refused_write, ledger, content):
    columns = "id bigint, name string"
    publish(ledger, [(1, "a")], columns)

    def closed():
        raise fail("PeriodNotOpen", "the period is closed")

    assert refused_write(ledger, [(2, "b")], columns, run="run-2", check=closed).type == "PeriodNotOpen"
    assert content(ledger) == [(1, "a")]


def test_rows_of_others_are_not_deleted(publish, refused_write, ledger, content, run_id, request):
    statements = "CREATE TABLE ledger (id bigint PRIMARY KEY, name text)", "INSERT INTO ledger VALUES (1, 'theirs')"
    execute = (
        request.getfixturevalue("server").execute
        if "postgresql" in ledger.source.options.url
        else (request.getfixturevalue("lite"))
    )
    for statement in statements:
        execute(statement)
    columns = "id bigint, name string"
    problem = refused_write(ledger, [(2, "ours")], columns)
    assert problem.message == (
        "database ledger has 1 row that this product did not write, and the output would delete it"
    )
    with pytest.raises(RunError):
        check_destination(ledger, mode="overwrite", run_id=run_id("run-1"), seq=10)
    publish(ledger, [(2, "ours")], columns, mode="append")
    assert refused_write(ledger, [(3, "ours")], columns, run="run-2").type == "WriteFailed"
    assert content(ledger) == [(1, "theirs"), (2, "ours")]


def test_keys_types_and_grants_of_a_table_are_kept(publish, refused_write, server, at, content):
    server.execute(
        "CREATE TABLE ledger (name varchar(5) NOT NULL, id int PRIMARY KEY, amount numeric(9,2), note text DEFAULT 'x')"
    )
    server.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader; GRANT SELECT ON ledger TO reader")
    columns = "id bigint, amount decimal(20,4), name string"
    for amount in ("1.2500", "2.0000"):
        publish(at("ledger"), [(1, Decimal(amount), "a")], columns, run=f"run-{amount[0]}")
    assert server.execute("SELECT id, amount::text, name, note FROM ledger").fetchall() == [(1, "2.00", "a", "x")]
    assert server.execute("SELECT has_table_privilege('reader', 'ledger', 'SELECT')").fetchone() == (True,)
    inexact = refused_write(at("ledger"), [(1, Decimal("1.0050"), "a")], columns, run="run-3")
    assert "column 'amount' has the value 1.0050, which cannot be stored exactly as numeric(9,2)" in inexact.message
    for row, reason in [
        ((2**40, Decimal(1), "a"), "integer out of range"),
        ((1, Decimal(1), "too long"), "value too long for type character varying(5)"),
        ((1, Decimal(1), None), 'null value in column "name"'),
        ((1, Decimal(1), "a\0b"), "invalid byte sequence"),
    ]:
        assert reason in refused_write(at("ledger"), [row], columns, run="run-4").message
    twice = [(1, Decimal(1), "a"), (1, Decimal(1), "b")]
    assert "duplicate key" in refused_write(at("ledger"), twice, columns, run="run-5").message
    other = refused_write(at("ledger"), [(1, "a")], "id bigint, nam string", run="run-6")
    assert (other.message, other.hint) == (
        "database ledger has no column 'nam', which the output writes",
        "did you mean 'name'?",
    )
    assert server.execute("SELECT amount::text FROM ledger").fetchall() == [("2.00",)]
    assert staging_tables(server) == []
    server.execute("DROP OWNED BY reader; DROP ROLE reader")


def test_a_view_is_not_written(refused_write, server, at):
    server.execute("CREATE VIEW seen AS SELECT 1 AS id")
    assert refused_write(at("seen"), [(1,)], "id bigint").message == "database seen is a view, which cannot be written"


def test_hostile_names(publish, server, at, rows, table):
    hostile = 'x"; DROP TABLE y; --.ü'
    server.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(psycopg.sql.Identifier(hostile)))
    location = at(hostile, schema=hostile)
    for run in ("run-1", "run-2"):
        publish(location, [(7,)], f"`{hostile}` bigint", run=run)
    assert rows(location, table(value=f"integer {hostile}")) == [(7,)]


def test_a_failed_computation_leaves_nothing(spark, publish, server, at):
    failing = spark.range(1000).selectExpr("CASE WHEN id = 990 THEN raise_error('bad row') ELSE id END AS x")
    with pytest.raises(Exception, match="bad row"):
        publish(at("ledger"), failing)
    assert staging_tables(server) == []
    assert server.execute("SELECT to_regclass('ledger')").fetchone() == (None,)


def test_staging_tables_of_killed_attempts_are_dropped(publish, server, at, url):
    dead, alive = (f"tallybook_{'0' * 31}{digit}_10_00000000" for digit in (1, 2))
    for name in (dead, alive):
        server.execute(f"CREATE TABLE {name} (id int)")
    server.execute("CREATE TABLE tallybook_of_a_user (id int)")
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(f"SELECT pg_advisory_lock(hashtextextended('{alive}', 0))")
        publish(at("ledger"), [(1,)], "id bigint")
        assert staging_tables(server) == [alive]
    assert server.execute("SELECT to_regclass('tallybook_of_a_user') IS NOT NULL").fetchone() == (True,)


def test_rows_that_a_repeated_task_copied_twice_count_once(spark, publish, server, at, monkeypatch):
    from tallybook.storage.formats import database_write_postgresql as module

    def copy_twice(spark, frame, publishing):
        server.execute(f"INSERT INTO {publishing.staged_sql} VALUES (1)")
        original(spark, frame, publishing)

    original = module._copy
    monkeypatch.setattr(module, "_copy", copy_twice)
    assert publish(at("ledger"), [(1,), (2,)], "id bigint").rows == 2
    assert server.execute("SELECT id FROM ledger ORDER BY id").fetchall() == [(1,), (2,)]


def test_a_decimal_that_sqlite_would_round_is_refused(publish, refused_write, lite, rows, table):
    long = [(Decimal("1234567890123456.78"),)]
    problem = refused_write(lite.at("ledger"), long, "amount decimal(20,2)")
    assert "has the value 1234567890123456.78, which cannot be stored exactly as DECIMAL(20,2)" in problem.message
    lite("CREATE TABLE ledger (amount TEXT)")
    publish(lite.at("ledger"), long, "amount decimal(20,2)", run="run-2")
    assert rows(lite.at("ledger"), table(amount="decimal(20,2)")) == long


def test_times_are_utc_whatever_the_time_zone_of_the_server(publish, server, at, rows, table):
    name = server.info.dbname
    server.execute(
        f"ALTER DATABASE {name} SET timezone TO 'Asia/Tokyo'; ALTER DATABASE {name} SET datestyle TO 'German'"
    )
    server.execute("CREATE TABLE ledger (at timestamp, day date, note text)")
    noon, midnight = NOON.replace(microsecond=0), NOON.replace(hour=0, microsecond=0)
    publish(at("ledger"), [(noon, midnight, noon)], "at timestamp, day timestamp, note timestamp")
    server.execute(f"ALTER DATABASE {name} RESET timezone; ALTER DATABASE {name} RESET datestyle")
    written = server.execute("SELECT at, day, note FROM ledger").fetchall()
    assert written == [(noon.replace(tzinfo=None), midnight.date(), "2026-01-31 12:00:00+00")]


@pytest.mark.parametrize(
    ("type", "value", "columns", "reason"),
    [
        ("numeric(9,2)", "1.005", "odd string", "the value 1.005, which cannot be stored exactly as numeric(9,2)"),
        ("date", "2026-01-31 12:00", "odd string", "cannot be stored exactly as date"),
        ("date", "01/02/2026", "odd string", "the value 01/02/2026, which cannot be stored exactly as date"),
        ("time", NOON, "odd timestamp", "is time without time zone, and the output writes values of type timestamp"),
        ("money", Decimal("1.005"), "odd decimal(9,3)", "the value 1.005, which cannot be stored exactly as money"),
    ],
)
def test_a_value_that_a_cast_would_change_is_refused(refused_write, server, at, type, value, columns, reason):
    server.execute(f"CREATE TABLE ledger (odd {type})")
    assert reason in refused_write(at("ledger"), [(value,)], columns).message
    assert server.execute("SELECT count(*) FROM ledger").fetchone() == (0,)


def test_text_and_money_in_columns_that_can_hold_them(publish, server, at):
    server.execute("CREATE TYPE colour AS ENUM ('red')")
    server.execute(
        "CREATE TABLE ledger (paint colour, document jsonb, key uuid, price money, net numeric(9,2), day date)"
    )
    key = "d9bbdfad-61bf-4ad4-b6fd-f74c72277587"
    columns = "paint string, document string, key string, price decimal(9,3), net string, day string"
    publish(at("ledger"), [("red", "{}", key, Decimal("1.500"), "2.5", "2026-01-31"), (None,) * 6], columns)
    assert server.execute(
        "SELECT key::text, price::numeric, net, day FROM ledger WHERE key IS NOT NULL"
    ).fetchall() == [(key, Decimal("1.50"), Decimal("2.50"), date(2026, 1, 31))]


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL"])
def test_rows_of_other_tables_are_not_deleted_or_changed(publish, refused_write, server, at, run_id, action):
    columns = "id bigint, name string"
    server.execute("CREATE TABLE ledger (id bigint PRIMARY KEY, name text)")
    publish(at("ledger"), [(1, "a")], columns)
    server.execute(f"CREATE TABLE notes (of bigint REFERENCES ledger ON DELETE {action})")
    server.execute("INSERT INTO notes VALUES (1)")
    problem = refused_write(at("ledger"), [(1, "b")], columns, run="run-2")
    assert "would change rows of notes, whose foreign key notes_of_fkey says so (ON DELETE)" in problem.message
    with pytest.raises(RunError, match="foreign key notes_of_fkey"):
        check_destination(at("ledger"), mode="overwrite", run_id=run_id("run-2"), seq=10)
    publish(at("ledger"), [(2, "b")], columns, run="run-3", mode="append")
    assert server.execute("SELECT count(*), count(of) FROM notes").fetchone() == (1, 1)


@pytest.mark.parametrize("event", ["INSERT", "DELETE"])
def test_a_trigger_that_drops_rows_fails_the_output(publish, refused_write, ledger, content, request, event):
    columns = "id bigint, name string"
    publish(ledger, [(1, "a"), (2, "b")], columns)
    if ledger.source.options.url.startswith("sqlite"):
        request.getfixturevalue("lite")(
            f"CREATE TRIGGER lazy BEFORE {event} ON ledger WHEN {'NEW' if event == 'INSERT' else 'OLD'}.id = 2 "
            "BEGIN SELECT RAISE(IGNORE); END"
        )
    else:
        request.getfixturevalue("server").execute(
            "CREATE FUNCTION lazy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF {'NEW' if event == 'INSERT' else 'OLD'}.id = 2 THEN RETURN NULL; END IF;"
            f" RETURN {'NEW' if event == 'INSERT' else 'OLD'}; END $$;"
            f"CREATE TRIGGER lazy BEFORE {event} ON ledger FOR EACH ROW EXECUTE FUNCTION lazy()"
        )
    problem = refused_write(ledger, [(1, "c"), (2, "d")], columns, run="run-2")
    does = "inserts 1 of the 2 rows of the output" if event == "INSERT" else "keeps 1 row that the output replaces"
    assert problem.message == f"database ledger could not be written: a trigger or rule of the table {does}"
    assert content(ledger) == [(1, "a"), (2, "b")]


def test_rows_of_a_task_that_spark_has_given_up_are_waited_for(publish, server, at, url, monkeypatch):
    from tallybook.storage.formats import database_write_postgresql as module

    with psycopg.connect(url) as lost:

        def copy_late(spark, frame, publishing):
            original(spark, frame, publishing)
            lost.execute(f"INSERT INTO {publishing.staged_sql} VALUES (1)")
            Timer(0.5, lost.commit).start()

        original = module._copy
        monkeypatch.setattr(module, "_copy", copy_late)
        assert publish(at("ledger"), [(1,), (2,)], "id bigint").rows == 2
        assert server.execute("SELECT id FROM ledger ORDER BY id").fetchall() == [(1,), (2,)]


def test_two_outputs_are_the_first_in_a_schema_at_once(publish, server, at, monkeypatch):
    from tallybook.storage.formats.database_marks import Marks

    together, create = Barrier(2), Marks.create

    def create_together(marks):
        with suppress(BrokenBarrierError):
            together.wait(1)
        create(marks)

    monkeypatch.setattr(Marks, "create", create_together)
    with ThreadPoolExecutor() as pool:
        outputs = [pool.submit(publish, at(name), [(1,)], "id bigint") for name in ("ledger", "journal")]
        assert [output.result().rows for output in outputs] == [1, 1]
