"""What the product keeps for itself is readable by its owner only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.workspaces import Books


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("left_open", [False, True])
def test_the_folder_of_a_workspace(tmp_path: Path, left_open: bool) -> None:
    books = Books.at(tmp_path)
    if left_open:
        (tmp_path / ".tallybook").mkdir(mode=0o755)
    books.open().apply()
    assert stat.S_IMODE((tmp_path / ".tallybook").stat().st_mode) == 0o700
    files = [path for path in (tmp_path / ".tallybook").rglob("*") if path.is_file()]
    assert files
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
