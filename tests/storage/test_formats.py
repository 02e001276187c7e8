"""The registry of formats and the datasources of the model agree, and a format refuses what it cannot do."""

from __future__ import annotations

from typing import get_args

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tallybook.errors import RunError
from tallybook.model.datasource import (
    FILE_FORMATS,
    CatalogSource,
    DatabaseOptions,
    DatabaseSource,
    DataSource,
    FileOptions,
    FileSource,
)
from tallybook.model.location import Location
from tallybook.storage.formats import FORMATS, Ability, Format, format_of
from tallybook.storage.formats.base import register
from tallybook.storage.inputs import are_small, current_version, fingerprint, local_size
from tallybook.storage.output import Output
from tallybook.storage.read import read
from tallybook.storage.write import check_destination

SOURCES = [
    *(FileSource(id="files", type=type, options=FileOptions(path_prefix="/data")) for type in FILE_FORMATS),
    CatalogSource(id="session", type="spark_catalog"),
    DatabaseSource(id="books", type="database", options=DatabaseOptions(url="postgresql://db/books")),
]
OUTPUT = Output("run", 1)
USES = {
    Ability.SCAN: {"scan": lambda format, at: format.scan(None, at, [], 0)},
    Ability.WRITE: {
        "check_destination": lambda format, at: format.check_destination(at, OUTPUT),
        "write": lambda format, at: format.write(None, None, at, OUTPUT),
        "written_by": lambda format, at: format.written_by(at, OUTPUT),
        "has_written": lambda format, at: format.has_written(at, OUTPUT),
    },
    Ability.FINGERPRINT: {"fingerprint": lambda format, at: format.fingerprint(None, at)},
    Ability.VERSIONS: {"current_version": lambda format, at: format.current_version(at)},
}
"""The methods of each ability, and a call of each."""

by_type = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.type)


def test_every_type_of_a_datasource_is_a_format():
    classes = get_args(get_args(DataSource)[0])
    types = [type for source in classes for type in get_args(source.model_fields["type"].annotation)]
    assert sorted(types) == sorted(FORMATS) == sorted(source.type for source in SOURCES)
    assert all(format.type == type for type, format in FORMATS.items())


def test_a_format_is_registered_once():
    with pytest.raises(ValueError, match="delta is already registered"):
        register(FORMATS["delta"])


@by_type
def test_the_datasource_says_whether_its_format_keeps_versions(source):
    assert source.keeps_versions == (Ability.VERSIONS in FORMATS[source.type].can)


@by_type
@pytest.mark.parametrize("ability", Ability, ids=lambda ability: ability.name)
def test_a_format_has_the_methods_of_an_ability_or_refuses_them(source, ability):
    format, location = FORMATS[source.type], Location(source, "orders")
    for method, use in USES[ability].items():
        has_it = getattr(type(format), method) is not getattr(Format, method)
        assert has_it == (ability in format.can), method
        if not has_it:
            with pytest.raises(RunError) as caught:
                use(format, location)
            assert caught.value.problem.type == ability.value.problem
            assert f"'{source.id}' is of type {source.type}, which {ability.value.message}" in str(caught.value)


@pytest.mark.parametrize("source", SOURCES[-2:], ids=lambda source: source.type)
def test_tables_cannot_be_written(source):
    with pytest.raises(RunError) as caught:
        check_destination(Location(source, "orders"), mode="overwrite", run_id="run", seq=1)
    problem = caught.value.problem
    assert problem.type == "WriteFailed"
    assert problem.message == f"datasource '{source.id}' is of type {source.type}, which cannot be written yet"
    assert problem.hint == "write to a datasource of type delta; Spark and databases can read it from there"


def test_a_database_cannot_be_read(table):
    with pytest.raises(RunError) as caught:
        read(None, Location(SOURCES[-1], "orders"), table(id="integer"))
    problem = caught.value.problem
    assert (problem.type, problem.message) == (
        "DataLoadError",
        "datasource 'books' is of type database, which cannot be read yet",
    )
    assert problem.hint == "use files, a Delta table or a spark_catalog table"


@pytest.mark.parametrize("source", SOURCES[-2:], ids=lambda source: source.type)
def test_what_a_snapshot_records_of_tables(source):
    location = Location(source, "orders")
    assert (fingerprint(None, location), local_size(location), current_version(location)) == ([], None, None)
    assert list(format_of(location).areas_read(location)) == []


def test_the_size_of_local_files_and_delta_tables_is_known(tmp_path):
    files = FileSource(id="files", type="csv", options=FileOptions(path_prefix="."))
    (tmp_path / "one.csv").write_text("id\n1\n")
    assert local_size(Location(files, str(tmp_path / "one.csv"))) == 5
    table = tmp_path / "table"
    write_deltalake(table, pa.table({"id": [1, 2]}))
    write_deltalake(table, pa.table({"id": [3]}), mode="overwrite")
    delta = FileSource(id="lake", type="delta", options=FileOptions(path_prefix="."))
    sizes = [local_size(Location(delta, str(table), version=version)) for version in (0, 1)]
    assert sorted(sizes) == sorted(file.stat().st_size for file in table.glob("*.parquet"))
    assert local_size(Location(delta, str(tmp_path / "none"))) is None
    assert are_small([Location(files, str(tmp_path / "one.csv")), Location(delta, str(table))])
    assert not are_small([Location(delta, "s3://bucket/table")])
