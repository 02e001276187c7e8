"""Fixtures that make locations and tables, read and write rows, and return the problem of a failed read."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.storage.databases import at, lite, server, url  # noqa: F401  # fixtures

from tallybook.errors import Problem, RunError
from tallybook.model.columns import ColumnDef, ColumnType
from tallybook.model.dataset import Table
from tallybook.model.datasource import FileOptions, FileSource, FormatOptions
from tallybook.model.location import Location
from tallybook.rows.ids import POSITION
from tallybook.rows.raising import parse_raised
from tallybook.storage import Written, diagnose, read_all, write
from tallybook.storage.diagnose import diagnose_file, failed_read
from tallybook.storage.failure import is_csv_fault


@pytest.fixture
def locate():
    """`locate("csv", path, delimiter=";", period="2026-01")`: a location with CSV options and location fields by
    name."""

    def make(format, target, **fields):
        options = {key: fields.pop(key) for key in FormatOptions.model_fields if key in fields}
        source = FileSource(id="files", type=format, options=FileOptions(path_prefix="/", **options))
        return Location(source, str(target), **fields)

    return make


@pytest.fixture(scope="session")
def run_id():
    """`run_id("run-2")`: a run id as the store makes them, because such ids identify the files of an output."""
    return lambda name: f"01a1de71-7cee-7fee-adb1-{int(name.removeprefix('run-')):012d}"


@pytest.fixture
def table():
    """`table(id="integer!", amount="decimal(10,2) Order Amount")`: `!` is not nullable, then the physical name."""

    def make(temporal_mode="none", **columns):
        defs = []
        for name, text in columns.items():
            type, _, source = text.partition(" ")
            nullable = not type.endswith("!")
            type = ColumnType.parse(type.rstrip("!"))
            defs.append(ColumnDef(name=name, type=type, nullable=nullable, source=source or None))
        return Table(name="orders", temporal_mode=temporal_mode, columns=tuple(defs))

    return make


@pytest.fixture
def rows(spark):
    """All rows in their order, as tuples without the position."""

    def collect(locations, table):
        frame = read_all(spark, locations if isinstance(locations, list) else [locations], table)
        return [tuple(row)[:-1] for row in frame.select(*_position_last(frame)).orderBy(POSITION).collect()]

    return collect


def _position_last(frame):
    return [name for name in frame.columns if name != POSITION] + [POSITION]


@pytest.fixture
def refused(spark, rows):
    """Returns the problem of reading a location."""

    def problem(location, table) -> Problem:
        with pytest.raises(Exception) as caught:
            rows(location, table)
        if isinstance(caught.value, RunError):
            return caught.value.problem
        if is_csv_fault(caught.value):
            _, path = failed_read(caught.value, [location])
            return diagnose_file(spark, path, [location])
        raised = parse_raised(caught.value)
        assert raised is not None, caught.value
        return diagnose(spark, raised, [(location, table)])

    return problem


@pytest.fixture
def save(spark, run_id):
    """`save(rows, location, mode="append", run="run-2")`: writes rows as an output of a run."""

    def write_rows(rows, location, mode="overwrite", run="run-1", seq=5, schema="id bigint", **options) -> Written:
        frame = spark.createDataFrame(rows, schema)
        return write(spark, frame, location, mode=mode, run_id=run_id(run), seq=seq, **options)

    return write_rows


@pytest.fixture
def derby(spark):
    """The database that comes with Spark, as `jdbc:derby:memory:NAME;create=true`."""
    if (spark.conf.get("spark.master", "") or "").startswith("local-cluster"):
        pytest.skip("Derby in memory is in the JVM of the driver, and the executors of a cluster have their own")


@pytest.fixture
def text(tmp_path):
    """`text("a.csv", "id,n", "1,x")`: a file of lines, written as UTF-8."""

    def make(name, *lines) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return make
