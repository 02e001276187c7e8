"""What does it cost to read and write a table of PostgreSQL?

Out: a table becomes Parquet files. In: Parquet files replace the rows of a table. By hand: psycopg's COPY in one
process, as CSV, parsed and written by PyArrow with the same types.
"""

from __future__ import annotations

import io
import uuid
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from _kit import ENGINE, Case, Suite, Way, options, suite
from _postgresql import postgresql

from tallybook.model.columns import ColumnDef, ColumnType
from tallybook.model.dataset import Table
from tallybook.model.datasource import DatabaseOptions, DatabaseSource
from tallybook.model.location import Location
from tallybook.storage.inputs import held
from tallybook.storage.read import read_all
from tallybook.storage.write import write

BY_HAND = "psycopg"
BAR = 1.5
COLUMNS = {
    "line_id": ("bigint", "integer", pa.int64()),
    "account": ("text", "string", pa.string()),
    "booked_on": ("date", "date", pa.date32()),
    "amount": ("numeric(18,2)", "decimal(18,2)", pa.decimal128(18, 2)),
    "tax": ("numeric(18,2)", "decimal(18,2)", pa.decimal128(18, 2)),
    "memo": ("text", "string", pa.string()),
}
"""The type of each column in PostgreSQL, in Tallybook and in Arrow."""
SCHEMA = pa.schema([(name, type) for name, (_, _, type) in COLUMNS.items()])
TABLE = Table(
    name="lines",
    columns=tuple(ColumnDef(name=name, type=ColumnType.parse(type)) for name, (_, type, _) in COLUMNS.items()),
)


def make_table(url: str, rows: int) -> None:
    """Fills the table `lines`, and creates the tables that are written."""
    columns = ", ".join(f"{name} {type}" for name, (type, _, _) in COLUMNS.items())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE lines ({columns}, PRIMARY KEY (line_id))")
        connection.execute(
            "INSERT INTO lines SELECT g, 'A' || (g * 7919 % 5000), date '2026-01-01' + (g * 31 % 365)::int,"
            " (g * 104729 % 10000000) / 100.0, (g * 1299709 % 1000000) / 100.0, 'Document ' || g"
            f" FROM generate_series(1, {rows}::bigint) g"
        )
        for name in ("by_engine", "by_hand"):
            connection.execute(f"CREATE TABLE {name} ({columns})")
        connection.execute("VACUUM ANALYZE")


def read_by_engine(suite: Suite, lines: Location, target: Path) -> None:
    with held([lines]) as instead:
        frame = read_all(suite.session, [instead[lines]], TABLE, numbered=False)
        frame.select(*COLUMNS).write.mode("overwrite").parquet(str(target))


def read_by_hand(url: str, target: Path) -> None:
    target.mkdir(exist_ok=True)
    text = io.BytesIO()
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        names = ", ".join(COLUMNS)
        with cursor.copy(f"COPY (SELECT {names} FROM lines) TO STDOUT (FORMAT csv)") as copy:
            for block in copy:
                text.write(block)
    text.seek(0)
    types = pc.ConvertOptions(column_types=SCHEMA, strings_can_be_null=True, quoted_strings_can_be_null=False)
    rows = pc.read_csv(text, read_options=pc.ReadOptions(column_names=list(COLUMNS)), convert_options=types)
    pq.write_table(rows, target / "lines.parquet")


def write_by_engine(suite: Suite, source: DatabaseSource, parquet: Path) -> None:
    frame = suite.session.read.parquet(str(parquet))
    write(suite.session, frame, Location(source, "by_engine"), mode="overwrite", run_id=str(uuid.uuid4()), seq=1)


def write_by_hand(url: str, parquet: Path) -> None:
    text = io.BytesIO()
    pc.write_csv(pq.read_table(parquet), text, pc.WriteOptions(include_header=False))
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM by_hand")
        with cursor.copy("COPY by_hand FROM STDIN (FORMAT csv)") as copy:
            copy.write(text.getbuffer())


def cases(suite: Suite, url: str, rows: int) -> list[Case]:
    source = DatabaseSource(id="bench", type="database", options=DatabaseOptions(url=url))
    lines = Location(source, "lines", partitions=2)
    by_engine, by_hand = suite.new_folder("by-engine"), suite.new_folder("by-hand")
    out = {
        ENGINE: Way(lambda: read_by_engine(suite, lines, by_engine), (by_engine,)),
        BY_HAND: Way(lambda: read_by_hand(url, by_hand), (by_hand,)),
    }
    into = {
        ENGINE: Way(lambda: write_by_engine(suite, source, by_hand)),
        BY_HAND: Way(lambda: write_by_hand(url, by_hand)),
    }
    return [
        Case({"direction": "out", "rows": rows}, out, BAR, rival=BY_HAND),
        Case({"direction": "in", "rows": rows}, into, BAR, rival=BY_HAND),
    ]


def check_written(url: str) -> None:
    """Fails if the written tables differ from the table that was read."""
    with psycopg.connect(url) as connection:
        for name in ("by_engine", "by_hand"):
            both = f"(TABLE lines EXCEPT ALL TABLE {name}) UNION ALL (TABLE {name} EXCEPT ALL TABLE lines)"
            assert connection.execute(f"SELECT count(*) FROM ({both}) AS differences").fetchone() == (0,), name


def main() -> None:
    given = options(__doc__, rows=[5_000_000], long_rows=[])
    with suite("database", __doc__, given) as running:
        for rows in given.rows:
            with postgresql() as url:
                make_table(url, rows)
                for case in cases(running, url, rows):
                    running.measure(case)
                if not given.ways:
                    check_written(url)


if __name__ == "__main__":
    main()
