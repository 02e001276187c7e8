"""A file that has changed is recognised, also if it has its old time again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tallybook.model.state import Json
from tallybook.storage.fingerprints import SMALL, file_state, is_same
from tallybook.storage.inputs import changed_files


def state(file: Path) -> Json:
    found = file_state(file)
    assert found is not None
    return found


def edited(file: Path, position: int, text: bytes = b"X") -> None:
    """Changes bytes of a file and gives it the time that it had."""
    before = file.stat()
    with file.open("r+b") as opened:
        opened.seek(position)
        opened.write(text)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(("size", "hashed"), [(3, "content"), (SMALL, "content"), (SMALL + 1, "end")])
def test_a_restored_time_does_not_hide_an_edit(tmp_path: Path, size: int, hashed: str) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"a" * size)
    before = state(file)
    assert before["hashed"] == hashed
    edited(file, size - 1)
    assert state(file)["modified"] == before["modified"]
    assert changed_files([before], [state(file)]) == [f"{file} was changed"]


def test_a_touched_small_file_has_not_changed(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"a")
    large.write_bytes(b"a" * (SMALL + 1))
    before = state(small), state(large)
    for file in (small, large):
        os.utime(file, (1, 1))
    assert is_same(before[0], state(small)) and not is_same(before[1], state(large))
    small.unlink()
    small.write_bytes(b"a")
    assert is_same(before[0], state(small)), "copied back"


def test_a_large_file_that_was_replaced_has_changed(tmp_path: Path) -> None:
    """Its first bytes are not hashed, but another file has another inode."""
    file, other = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"a" * (SMALL + 1))
    other.write_bytes(b"b" + b"a" * SMALL)
    before = state(file)
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.replace(file)
    assert not is_same(before, state(file))


def test_states_without_a_hash_are_compared_by_size_and_time(tmp_path: Path) -> None:
    """Those in snapshots of earlier versions."""
    file = tmp_path / "a.csv"
    file.write_bytes(b"a")
    now = state(file)
    old = {key: now[key] for key in ("file", "size", "modified")}
    assert is_same(old, now) and not is_same(old | {"size": 2}, now)


def test_a_file_that_was_removed(tmp_path: Path) -> None:
    assert file_state(tmp_path / "gone") is None


def test_states_of_tables_are_compared_by_all_that_they_say() -> None:
    now = {"file": "orders", "rows": 2, "checksum": "1"}
    assert is_same(now, dict(now))
    assert not is_same(now, now | {"rows": 3}) and not is_same(now, now | {"checksum": "2"})
    assert not is_same({"file": "orders", "rows": 3}, now)
