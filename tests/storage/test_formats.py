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
    Ability.REPLACE_PERIOD: {},
    Ability.FINGERPRINT: {"fingerprint": lambda format, at: format.fingerprint(None, at)},
    Ability.VERSIONS: {"current_version": lambda format, at: format.current_version(at)},
}
"""The methods of each ability, and a call of each. `replace_period` is a mode of `write`."""

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
def test_the_datasource_says_what_its_format_can_do(source):
    abilities = FORMATS[source.type].can
    assert source.keeps_versions == (Ability.VERSIONS in abilities)
    assert source.replaces_periods == (Ability.REPLACE_PERIOD in abilities)


@by_type
def test_a_format_that_cannot_replace_a_period_refuses_it(source):
    format = FORMATS[source.type]
    if Ability.REPLACE_PERIOD not in format.can:
        with pytest.raises(RunError) as caught:
            format.require(Ability.REPLACE_PERIOD, Location(source, "orders"))
        assert "cannot replace the rows of one period in one step" in caught.value.problem.message


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


def test_what_a_snapshot_records_of_catalog_tables():
    location = Location(SOURCES[-2], "orders")
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
