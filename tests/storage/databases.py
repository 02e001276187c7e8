"""Fixtures of databases: tables of a PostgreSQL server and of a SQLite file."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg
import pytest

from tallybook.model.datasource import DatabaseOptions, DatabaseSource
from tallybook.model.location import Location


def source(url, schema=None, credential_ref=None):
    return DatabaseSource(
        id="books", type="database", options=DatabaseOptions(url=url, schema=schema), credential_ref=credential_ref
    )


@pytest.fixture(scope="module")
def url(new_database):
    """The url of an empty PostgreSQL database, as a datasource has it."""
    return new_database().set(drivername="postgresql").render_as_string()


@pytest.fixture
def server(url):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        yield connection


@pytest.fixture
def at(url):
    """`at("orders")`: the location of a table in PostgreSQL."""

    def locate(table, schema=None, **fields):
        books = source(url)
        return Location(books, books.table_name(schema, table), **fields)

    return locate


@pytest.fixture
def lite(tmp_path):
    """`lite("CREATE TABLE ...")` executes statements in a SQLite file; `lite.at("orders")` locates a table in it."""
    file = tmp_path / "books.db"

    class Lite:
        def __call__(self, *statements):
            with closing(sqlite3.connect(file)) as connection, connection:
                for statement in statements:
                    connection.execute(statement)

        def at(self, table, **fields):
            books = source(f"sqlite:///{file}")
            return Location(books, books.table_name(None, table), **fields)

    return Lite()
