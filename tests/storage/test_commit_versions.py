"""Which version of a Delta table an output made, however many others commit meanwhile."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from tallybook.model.datasource import FileOptions, FileSource
from tallybook.model.location import Location
from tallybook.storage.formats import delta_commit
from tallybook.storage.formats.delta_log import ADDED_ROWS


def committed_by(path: Path, run_id: str, seq: int = 5) -> None:
    facts = {delta_commit._RUN: run_id, delta_commit._OPERATION: seq, ADDED_ROWS: 1}
    properties = CommitProperties(custom_metadata=facts, app_transactions=[Transaction(run_id, seq)])
    write_deltalake(path, pa.table({"id": [run_id]}), mode="overwrite", commit_properties=properties)


@pytest.mark.parametrize("mine", [0, 1, 4])
@pytest.mark.parametrize("later", [0, 3])
def test_commits_of_others_do_not_shift_the_version(tmp_path: Path, mine: int, later: int) -> None:
    path = tmp_path / "t"
    for number in range(mine):
        committed_by(path, f"before-{number}")
    committed_by(path, "mine", seq=5)
    for number in range(later):
        committed_by(path, f"between-{number}")
    loaded = DeltaTable(path)
    for number in range(4):
        committed_by(path, f"after-{number}")
    location = Location(FileSource(id="w", type="delta", options=FileOptions(path_prefix=".")), str(path))
    written = delta_commit._committed(location, loaded, ("id",), "mine", 5)
    assert written is not None and written.version == mine
    assert DeltaTable(path, version=written.version).to_pyarrow_table().to_pylist() == [{"id": "mine"}]
    assert delta_commit._committed(location, loaded, ("id",), "mine", 6) is None
