"""Tables of PostgreSQL and SQLite are read exactly, in one snapshot, with the columns and periods that are needed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from psycopg import sql
from tests.storage.databases import source

from tallybook.errors import RunError
from tallybook.model.datasource import name_parts
from tallybook.model.location import Location
from tallybook.rows.ids import POSITION
from tallybook.storage.formats import format_of
from tallybook.storage.inputs import changed_files, fingerprint, held
from tallybook.storage.read import read_all
from tallybook.storage.scan import Part, fields_of
from tallybook.storage.write import check_destination

HOSTILE = 'sales"; DROP TABLE x; --.ü ${env:HOME} `q`'


EXACT = """
CREATE TABLE orders (
    id bigint PRIMARY KEY, small int2, whole int4, amount numeric(12,2), free numeric, paid bool, day date,
    at timestamp, zoned timestamptz, name text, code varchar(5), padded char(5), id2 uuid, doc jsonb
)
"""


def test_every_type_of_postgresql_is_exact(server, at, rows, table):
    server.execute(EXACT)
    server.execute(
        "INSERT INTO orders VALUES (1, 2, 3, 1234567890.12, 0.1, true, '2026-01-31', '2026-01-31 12:00:00.123456',"
        " '2026-01-31 12:00:00+02', 'Zoë ''quoted''', 'abc', 'ab', 'd9bbdfad-61bf-4ad4-b6fd-f74c72277587', '{}'),"
        " (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, NULL),"
        " (9223372036854775807, -32768, -2147483648, -0.01, -12345678901234567890.5, false, '0001-01-01',"
        " '9998-12-31 23:59:59.999999', '0002-01-01 00:00:00+00', 'x', '', '', NULL, '[1]')"
    )
    declared = table(
        id="integer!", small="integer", whole="integer", amount="decimal(12,2)", free="decimal(30,4)", paid="boolean",
        day="date", at="timestamp", zoned="timestamp", name="string", code="string", padded="string", id2="string",
        doc="string",
    )  # fmt: skip
    first, second, third = rows(at("orders"), declared)
    noon = datetime(2026, 1, 31, 12, 0, 0, 123456, UTC)
    assert first[:7] == (1, 2, 3, Decimal("1234567890.12"), Decimal("0.1000"), True, date(2026, 1, 31))
    assert [value.astimezone(UTC) for value in first[7:9]] == [noon, datetime(2026, 1, 31, 10, tzinfo=UTC)]
    assert first[9:] == ("Zoë 'quoted'", "abc", "ab", "d9bbdfad-61bf-4ad4-b6fd-f74c72277587", "{}")
    assert second == (2, *[None] * 8, "", *[None] * 4)
    assert third[:5] == (2**63 - 1, -32768, -(2**31), Decimal("-0.01"), Decimal("-12345678901234567890.5000"))


@pytest.mark.parametrize(
    ("type", "value", "declared", "shown"),
    [
        ("numeric(12,2)", "'NaN'", "decimal(12,2)", "'NaN'"),
        ("numeric", "'NaN'", "decimal(12,2)", "'NaN'"),
        ("numeric", "'Infinity'", "decimal(12,2)", "'Infinity'"),
        ("numeric", "1.005", "decimal(12,2)", "'1.005'"),
        ("numeric", "10000000000", "decimal(12,2)", "'10000000000'"),
        ("date", "'infinity'", "date", "'infinity'"),
        ("date", "'4713-01-01 BC'", "date", "'4713-01-01 BC'"),
        ("date", "'10000-01-01'", "date", "'10000-01-01'"),
        ("timestamp", "'-infinity'", "timestamp", "'-infinity'"),
        ("timestamptz", "'infinity'", "timestamp", "'infinity'"),
    ],
)
def test_a_value_that_cannot_be_held_is_named(server, at, refused, table, type, value, declared, shown):
    server.execute(f"CREATE TABLE orders (id int, odd {type})")
    server.execute(f"INSERT INTO orders VALUES (1, {value}), (2, NULL)")
    problem = refused(at("orders"), table(id="integer", odd=declared))
    assert problem.type == "DataLoadError"
    assert problem.message == (f"column 'odd' of table 'orders' is {declared} and cannot hold database orders: {shown}")


@pytest.mark.parametrize(
    ("type", "declared", "found", "hint"),
    [
        ("numeric", "string", "numeric, whose values have any number of digits", "such as decimal(38,10)"),
        ("numeric", "integer", "numeric, whose values have any number of digits", "such as decimal(38,10)"),
        ("numeric(12,4)", "decimal(12,2)", "decimal(12,4)", "declare the type"),
        ("float8", "decimal(12,2)", "double", "declare the type"),
        ("bytea", "string", "bytea", "cast the column in a view"),
        ("int[]", "string", "integer[]", "cast the column in a view"),
        ("text", "integer", "string", "declare the type"),
    ],
)
def test_a_type_that_does_not_fit_is_refused(server, at, refused, table, type, declared, found, hint):
    server.execute(f"CREATE TABLE orders (odd {type})")
    problem = refused(at("orders"), table(odd=declared))
    assert problem.type == "SchemaMismatch"
    assert problem.message == f"column 'odd' of database orders is {found}; table 'orders' declares {declared}"
    assert hint in problem.hint


def test_a_missing_table_or_column_is_named(server, at, refused, table):
    assert refused(at("none"), table(id="integer")).type == "DataNotFound"
    server.execute("CREATE TABLE orders (id int, amount numeric(9,2))")
    problem = refused(at("orders"), table(id="integer", amont="decimal(9,2)"))
    assert (problem.type, problem.hint) == ("SchemaMismatch", "did you mean 'amount'?")
    assert problem.message == "database orders has no column 'amont' of table 'orders'"


def test_missing_data_can_be_empty(server, at, rows, table):
    assert rows(at("none", on_missing="empty"), table(id="integer")) == []


def test_names_are_quoted(server, at, rows, table):
    name = sql.Identifier(HOSTILE)
    server.execute(sql.SQL("CREATE SCHEMA {0}; CREATE TABLE {0}.{0} ({0} int)").format(name))
    server.execute(sql.SQL("INSERT INTO {0}.{0} VALUES (7)").format(name))
    location = at(HOSTILE, schema=HOSTILE)
    assert name_parts(location.target) == [HOSTILE, HOSTILE]
    assert rows(location, table(value=f"integer {HOSTILE}")) == [(7,)]


def test_a_name_that_postgresql_would_cut_is_refused(server, at, refused, table):
    server.execute(f"CREATE TABLE {'x' * 63} (id int)")
    problem = refused(at("x" * 64), table(id="integer"))
    assert problem.type == "SchemaMismatch"
    assert "which has at most 63 bytes" in problem.message


def test_views_and_wide_tables_without_rows(server, at, rows, table):
    wide = {f"c{index}": "integer" for index in range(200)}
    server.execute(f"CREATE TABLE wide ({', '.join(f'{name} int' for name in wide)})")
    server.execute("CREATE VIEW seen AS SELECT c0, c1 + 1 AS c1 FROM wide")
    assert rows(at("wide"), table(**wide)) == []
    server.execute("INSERT INTO wide (c0, c1) VALUES (1, 1)")
    assert rows(at("seen"), table(c0="integer", c1="integer")) == [(1, 2)]


def test_domains_partitions_and_generated_columns(server, at, lite, rows, table):
    server.execute("CREATE DOMAIN euros AS numeric(9,2); CREATE DOMAIN gains AS euros CHECK (value > 0)")
    server.execute("CREATE TABLE wins (gain gains, twice numeric(9,2) GENERATED ALWAYS AS (gain * 2) STORED)")
    server.execute("INSERT INTO wins VALUES (1.5)")
    declared = table(gain="decimal(9,2)", twice="decimal(9,2)")
    assert rows(at("wins"), declared) == [(Decimal("1.50"), Decimal("3.00"))]
    lite("CREATE TABLE wins (gain, twice GENERATED ALWAYS AS (gain * 2))", "INSERT INTO wins VALUES (1.5)")
    assert rows(lite.at("wins"), declared) == [(Decimal("1.50"), Decimal("3.00"))]
    server.execute("CREATE TABLE parts (id int, _period text) PARTITION BY LIST (_period)")
    server.execute("CREATE TABLE january PARTITION OF parts FOR VALUES IN ('2026-01')")
    server.execute("INSERT INTO parts VALUES (1, '2026-01')")
    assert rows(at("parts"), table("period", id="integer")) == [(1, "2026-01")]


def test_only_wanted_columns_and_periods_are_read(spark, server, at, table):
    server.execute("CREATE TABLE orders (id int, secret text, _period text, broken numeric)")
    server.execute("INSERT INTO orders VALUES (1, 'a', '2026-01', 1), (2, 'b', '2026-02', 2), (3, 'c', NULL, 3)")
    location = at("orders")
    fields = fields_of(table("period", id="integer"), Part(periods=("2026-01",)))
    (scan,) = format_of(location).scan(spark, location, fields, 0)
    assert sorted(scan.types) == ["_period", "id"]
    assert [row.asDict() for row in scan.frame.select("id", "_period").collect()] == [{"id": 1, "_period": "2026-01"}]


@pytest.mark.parametrize("type", ["date", "timestamp", "timestamptz"])
def test_rows_of_another_day_are_not_read(spark, server, at, table, type):
    server.execute(f"CREATE TABLE rates (id int, _valid_from {type}, _valid_to {type})")
    server.execute(
        "INSERT INTO rates VALUES (1, '2025-01-01', '2026-01-01'), (2, '2026-01-01', NULL),"
        " (3, '2026-01-02', NULL), (4, '2020-01-01', '2026-01-02')"
    )
    rates = table("bitemporal", id="integer")
    location = at("rates")
    fields = fields_of(rates, Part(as_of=date(2026, 1, 1)))
    (scan,) = format_of(location).scan(spark, location, fields, 0)
    assert sorted(row.id for row in scan.frame.select("id").collect()) == [2, 4]


def test_ranges_of_a_key_are_read_in_the_snapshot_that_the_run_holds(spark, server, at, table):
    server.execute("CREATE TABLE orders (id bigint, key int)")
    server.execute(
        "INSERT INTO orders SELECT g, CASE WHEN g % 7 = 0 THEN NULL ELSE g END FROM generate_series(1, 100) g"
    )
    declared = table(id="integer")
    location = at("orders", partition_column="key", partitions=4)
    with held([location]) as instead:
        before = fingerprint(spark, instead[location])
        server.execute("DELETE FROM orders WHERE id > 50")
        server.execute("INSERT INTO orders SELECT g, g FROM generate_series(1000, 2000) g")
        frame = read_all(spark, [instead[location]], declared)
        assert sorted(row.id for row in frame.collect()) == list(range(1, 101))
        assert len({row[POSITION] >> 40 for row in frame.collect()}) == 4
        assert fingerprint(spark, instead[location]) == before
    now = fingerprint(spark, location)
    assert (before[0]["rows"], now[0]["rows"]) == (100, 1051)
    assert changed_files(before, now) == ["orders was changed"]


def test_a_changed_row_changes_the_fingerprint(spark, server, at):
    server.execute("CREATE TABLE orders (id int, amount numeric)")
    server.execute("INSERT INTO orders VALUES (1, 1)")
    before = fingerprint(spark, at("orders"))
    server.execute("UPDATE orders SET amount = 2")
    assert changed_files(before, fingerprint(spark, at("orders"))) == ["orders was changed"]
    assert fingerprint(spark, at("none")) == []


@pytest.mark.parametrize(("column", "message"), [("nme", "has no column 'nme'"), ("name", "is text, and cannot be")])
def test_a_partition_column_must_be_a_whole_number(spark, server, at, table, column, message):
    server.execute("CREATE TABLE orders (id int, name text)")
    location = at("orders", partition_column=column, rule="all")
    with held([location]) as instead, pytest.raises(RunError, match=message):
        read_all(spark, [instead[location]], table(id="integer"))


def test_every_value_of_sqlite_is_exact(lite, rows, table):
    lite(
        "CREATE TABLE orders (id INTEGER, amount DECIMAL(12,2), long TEXT, paid BOOLEAN, day DATE, at, name TEXT)",
        "INSERT INTO orders VALUES"
        " (1, 10.10, '12345678901234567890.12', 1, '2026-01-31', '2026-01-31 12:00:00', 'Zoë')",
        "INSERT INTO orders VALUES (2, NULL, NULL, 0, NULL, NULL, '')",
    )
    declared = table(
        id="integer", amount="decimal(12,2)", long="decimal(30,2)", paid="boolean", day="date", at="timestamp",
        name="string",
    )  # fmt: skip
    first, second = rows(lite.at("orders"), declared)
    assert first[:5] == (1, Decimal("10.10"), Decimal("12345678901234567890.12"), True, date(2026, 1, 31))
    assert (first[5].astimezone(UTC), first[6]) == (datetime(2026, 1, 31, 12, tzinfo=UTC), "Zoë")
    assert second == (2, None, None, False, None, None, "")


def test_nulls_before_the_first_value_of_sqlite(lite, rows, table):
    lite(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, name TEXT)",
        "INSERT INTO orders WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
        " SELECT i, CASE WHEN i = 5000 THEN 'last' END FROM n",
    )
    assert rows(lite.at("orders"), table(id="integer", name="string"))[-2:] == [(4999, None), (5000, "last")]


@pytest.mark.parametrize(
    ("value", "declared", "shown"),
    [
        ("0.1 + 0.2", "decimal(12,2)", "0.30000000000000004"),
        ("'12,5'", "decimal(12,2)", "12,5"),
        ("x'00ff'", "string", "\ufffd"),
        ("2", "boolean", "2"),
        ("'yesterday'", "date", "yesterday"),
    ],
)
def test_a_value_of_sqlite_of_another_type_is_named(lite, refused, table, value, declared, shown):
    lite("CREATE TABLE orders (odd)", f"INSERT INTO orders VALUES (NULL), ({value})")
    problem = refused(lite.at("orders"), table(odd=declared))
    assert problem.message == f"column 'odd' of table 'orders' is {declared} and cannot hold database orders: '{shown}'"


def test_missing_tables_and_changes_of_sqlite(spark, lite, refused, table, tmp_path):
    assert refused(lite.at("orders"), table(id="integer")).message.endswith(
        f"no SQLite database {tmp_path / 'books.db'}"
    )
    lite("CREATE TABLE orders (id)", "INSERT INTO orders VALUES (1)")
    assert refused(lite.at("none"), table(id="integer")).type == "DataNotFound"
    before = fingerprint(spark, lite.at("orders"))
    lite("UPDATE orders SET id = 2")
    assert changed_files(before, fingerprint(spark, lite.at("orders"))) == ["orders was changed"]


def test_a_database_that_does_not_answer(refused, table, tmp_path):
    books = source(f"postgresql://someone@/books?host={tmp_path}")
    problem = refused(Location(books, "orders"), table(id="integer"))
    assert problem.type == "DataLoadError"
    assert problem.message.startswith("database orders could not be read: Failed to connect: connection to server on")


def test_another_kind_of_database_is_refused(refused, table):
    problem = refused(Location(source("mysql://db/books"), "orders"), table(id="integer"))
    assert "a url that begins with 'mysql:'" in problem.message


def test_the_tables_of_a_database_are_listed(server, at, lite):
    server.execute(
        "CREATE SCHEMA other; CREATE TABLE b (id int); CREATE VIEW a AS SELECT 1 AS x; CREATE TABLE other.c ()"
    )
    assert format_of(at("x")).probe(at("x")) == ["a", "b"]
    books = source(at("x").source.options.url, schema="other")
    assert format_of(at("x")).probe(Location(books, "x")) == ["c"]
    lite("CREATE TABLE t (id)")
    assert format_of(lite.at("x")).probe(lite.at("x")) == ["t"]


def test_a_password_is_in_no_plan_and_no_message(spark, server, at, table, refused, monkeypatch, capsys, tmp_path):
    password = "hunter2&x=y;'z"
    monkeypatch.setenv("BOOKS_PASSWORD", password)
    server.execute("CREATE TABLE orders (id int)")
    books = source(at("x").source.options.url, credential_ref="env:BOOKS_PASSWORD")
    frame = read_all(spark, [Location(books, "orders")], table(id="integer"))
    assert frame.count() == 0
    frame.explain("formatted")
    frame.explain("extended")
    gone = source(f"postgresql://someone@/books?host={tmp_path}", credential_ref="env:BOOKS_PASSWORD")
    problem = refused(Location(gone, "orders"), table(id="integer"))
    assert "hunter2" not in f"{problem}{capsys.readouterr().out}{frame.schema}"
    assert "hunter2" not in repr(books.model_dump())


def test_another_database_is_read_with_a_driver_of_the_user(spark, derby, rows, refused, table):
    books = source("jdbc:derby:memory:books;create=true")
    spark.createDataFrame([(1, "a")], "id int, name string").write.format("jdbc").options(
        url=books.options.url, dbtable='"Orders"'
    ).save()
    assert rows(Location(books, "Orders"), table(id="integer", name="string")) == [(1, "a")]
    assert "Table/View 'none' does not exist" in refused(Location(books, "none"), table(id="integer")).message
    missing = refused(Location(source("jdbc:oracle:thin:@db/books"), "orders"), table(id="integer"))
    assert missing.message == "database orders cannot be read: Spark has no driver for jdbc:oracle:"
    assert "spark.jars" in missing.hint
    with pytest.raises(RunError, match="cannot replace rows in one transaction"):
        check_destination(Location(books, "Orders"), mode="overwrite", run_id="run", seq=1)


def test_a_user_who_is_not_let_in_is_told_what_to_check(url, refused, table):
    stranger = source(url.replace("postgres@", "stranger@"), credential_ref="env:BOOKS_PASSWORD")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOOKS_PASSWORD", "hunter2")
        problem = refused(Location(stranger, "orders"), table(id="integer"))
    assert problem.message.endswith('FATAL: role "stranger" does not exist')
    assert problem.hint == "check the url of datasource 'books', and its secret: env:BOOKS_PASSWORD"
    assert problem.cause is None and "hunter2" not in str(problem)


def test_a_url_without_a_host(url, server, rows, table):
    server.execute("CREATE TABLE orders (id int)")
    database, options = url.partition("://")[2].partition("@")[2].split("?")
    books = source(f"postgresql:///{database.strip('/')}?user=postgres&{options}")
    assert rows(Location(books, "orders"), table(id="integer")) == []
