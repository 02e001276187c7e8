"""What does it cost to replace one of 24 periods in a table, beside writing that period alone?

A run with `mode: replace_period` replaces its month in a table with 24 months: a Delta table, one that is partitioned
by period, and a table of PostgreSQL with an index on its period. The rival is the same project with `mode: overwrite`
and a table that has only this month.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from _data import LINES, lines, made
from _data import write as write_data
from _kit import ENGINE, Case, Suite, Way, options, suite
from _postgresql import postgresql
from _workspace import PERIOD, dataset, engine_way, output, write_workspace
from deltalake import DeltaTable

from tallybook.workspace import Workspace

ALONE = "alone"
BAR = 1.3
PERIODS = tuple(f"{year}-{month:02}" for year in (2025, 2026) for month in range(1, 13))
KINDS = ("delta", "partitioned", "database")
TABLES = {ENGINE: "periods", ALONE: "period"}


def generate(suite: Suite, rows: int) -> Path:
    """Returns a folder with the same lines for every month."""

    def make(folder: Path) -> None:
        write_data(lines(suite.session, rows // len(PERIODS)), folder / "lines" / PERIOD)
        for period in PERIODS:
            if period != PERIOD:
                (folder / "lines" / period).symlink_to(PERIOD)

    return made(suite.data, f"periods-{rows}", make)


def workspaces(suite: Suite, data: Path, kind: str, url: str) -> dict[str, Path]:
    """Returns the workspace of each way. The table of the engine has all periods."""
    warehouse = url if kind == "database" else "delta"
    replaces = {"mode": "replace_period"} | ({"partition_by": ["_period"]} if kind == "partitioned" else {})
    projects = {
        ENGINE: output(TABLES[ENGINE], **replaces),
        ALONE: output(TABLES[ALONE]),
    }
    folders = {
        name: write_workspace(
            suite.new_folder(f"{kind}-{name}"),
            data,
            [dataset("lines", LINES, monthly=True)],
            [written],
            warehouse=warehouse,
        )
        for name, written in projects.items()
    }
    opened = Workspace.open(folders[ENGINE])
    opened.activate("bench")
    for period in PERIODS:
        opened.run("bench", period)
    return folders


def prepare(url: str) -> None:
    """Gives the table of the engine an index, as its owner would."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE INDEX ON {TABLES[ENGINE]} (_period)")
        connection.execute(f"VACUUM ANALYZE {TABLES[ENGINE]}")


def rows_by_period(folder: Path, table: str, kind: str, url: str) -> dict[str, int]:
    """Returns the number of rows of each period of a table."""
    if kind == "database":
        with psycopg.connect(url) as connection:
            return dict(connection.execute(f"SELECT _period, count(*) FROM {table} GROUP BY 1").fetchall())
    periods = DeltaTable(str(folder / "warehouse" / table)).to_pyarrow_table(columns=["_period"])
    return {row["values"]: row["counts"] for row in periods["_period"].value_counts().to_pylist()}


def check_counts(suite: Suite, folders: dict[str, Path], kind: str, url: str, rows: int) -> None:
    """Fails unless both tables have every row of their periods once."""
    expected = {ENGINE: PERIODS, ALONE: (PERIOD,)}
    for name in suite.given.ways or expected:
        found = rows_by_period(folders[name], TABLES[name], kind, url)
        assert found == dict.fromkeys(expected[name], rows // len(PERIODS)), (kind, name, found)


@contextmanager
def case(suite: Suite, kind: str, url: str, rows: int) -> Iterator[Case]:
    folders = workspaces(suite, generate(suite, rows), kind, url)
    if kind == "database":
        prepare(url)
    ways = {name: Way(engine_way(folder, []).run) for name, folder in folders.items()}
    yield Case({"rows": rows, "periods": len(PERIODS), "table": kind}, ways, BAR, rival=ALONE)
    check_counts(suite, folders, kind, url, rows)


def main() -> None:
    given = options(__doc__, rows=[12_000_000], long_rows=[])
    with suite("periods", __doc__, given) as running:
        for rows in given.rows:
            with postgresql() as url:
                for kind in KINDS:
                    with case(running, kind, url, rows) as one:
                        running.measure(one)


if __name__ == "__main__":
    main()
