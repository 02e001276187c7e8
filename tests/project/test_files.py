"""Odd files with the name of a YAML file: each is read in bounded time, or reported as a problem."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tallybook.cli.main import main
from tallybook.project.files import MAX_BYTES, UnreadableError, read_bytes
from tallybook.project.load import load_definitions

TALLYBOOK = str(Path(sys.executable).with_name("tallybook"))
NOBODY = 65534
DATASET = "dataset: {{id: {id}, name: D, main_table: {{name: t, columns: [{{name: a, type: string}}]}}}}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "tallybook.yaml").write_text("name: odd\n")
    (root / "good.yaml").write_text(DATASET.format(id="good"))
    return root


def validate(root: Path) -> dict[str, Any]:
    """In a process of its own, because a command that waits for ever would never come back."""
    command = [TALLYBOOK, "validate", "--json", "-w", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def said(document: dict[str, Any]) -> dict[str, str]:
    return {problem["file"]: problem["message"] for problem in document["problems"]}


def test_what_is_no_file_is_named_and_not_waited_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "fifo.yaml")
    (root / "device.yaml").symlink_to("/dev/zero")
    (root / "terminal.yml").symlink_to("/dev/tty")
    (root / "gone.yaml").symlink_to(root / "nowhere.yaml")
    (root / "circle.yaml").symlink_to("circle.yaml")
    (root / "folder.yaml").symlink_to("/")
    (root / "inside.yaml").mkdir()
    (root / "inside.yaml" / "other.yaml").write_text(DATASET.format(id="other"))
    (root / "linked.yaml").symlink_to(root.parent / "elsewhere.yaml")
    (root.parent / "elsewhere.yaml").write_text(DATASET.format(id="linked"))
    with (root / "huge.yaml").open("wb") as file:
        file.truncate(10**12)
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(root)  # the path of a socket must be short
        listening.bind("socket.yaml")
        document = validate(root)
    assert said(document) == {
        "circle.yaml": "the file cannot be read: Too many levels of symbolic links",
        "device.yaml": "this is a device, not a regular file",
        "fifo.yaml": "this is a pipe, not a regular file",
        "gone.yaml": "the file cannot be read: No such file or directory",
        "huge.yaml": "the file has 1000000.0 MB; the maximum is 2 MB",
        "socket.yaml": "this is a socket, not a regular file",
        "terminal.yml": "this is a device, not a regular file",
    }
    assert [warning["file"] for warning in document["warnings"]] == ["folder.yaml"]
    assert set(load_definitions(root).datasets) == {"good", "linked", "other"}


def test_links_to_folders_are_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "around").symlink_to(root)
    (root / ".hidden").symlink_to(root)
    (root / "deep").mkdir()
    (root / "deep" / "up").symlink_to("..")
    assert main(["validate", "-w", str(root)]) == 0
    warning = "a link to a folder is not followed; if it holds definitions, link the files"
    assert capsys.readouterr().out == (
        f"workspace 'odd' is valid: 1 dataset\nwarning: around: {warning}\nwarning: deep/up: {warning}\n"
    )


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_settings_that_are_no_file(root: Path, make: Callable[[Path], None]) -> None:
    (root / "tallybook.yaml").unlink()
    make(root / "tallybook.yaml")
    assert list(said(validate(root))) == ["tallybook.yaml"]


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """A folder that the user of the test may read: the superuser, who reads everything, becomes somebody else."""
    folder = Path(tempfile.mkdtemp(prefix="tallybook-test-"))
    folder.chmod(0o755)
    before = os.geteuid()
    yield folder
    os.seteuid(before)
    for inner in folder.iterdir():
        inner.chmod(0o700)
    shutil.rmtree(folder)


def test_a_folder_that_cannot_be_read_is_a_problem(unprivileged: Path) -> None:
    (unprivileged / "tallybook.yaml").write_text("name: odd\n")
    for name in ("closed", ".hidden"):
        (unprivileged / name).mkdir()
        (unprivileged / name).chmod(0)
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
    (problem,) = load_definitions(unprivileged).problems
    assert (problem.type, str(problem.place)) == ("InvalidYaml", "closed:1:1")
    assert problem.message == "the folder cannot be read: Permission denied"
    assert problem.hint == "make it readable, or begin its name with a dot so that it is ignored"


def test_a_file_that_goes_or_grows_while_it_is_read(root: Path) -> None:
    with pytest.raises(UnreadableError, match="No such file"):
        read_bytes(root / "gone.yaml")
    grown = root / "grown.yaml"
    grown.write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(UnreadableError, match=r"2\.0 MB"):
        read_bytes(grown)
    assert read_bytes(Path("/proc/self/environ")), "files whose size the system does not know are read to the limit"


HOSTILE = {
    "blank lines": "dataset: [\n" + "\n" * 20_000,
    "lines of spaces": "dataset: [\n" + "   \n" * 20_000,
    "brackets": "dataset: " + "[" * 200_000,
    "brackets that close": "dataset: " + "[" * 100_000 + "]" * 100_000,
    "nested lists": "- " * 100_000,
    "many small bombs": f"a: &a [{'x,' * 9}]\nb: &b [{'*a,' * 9}]\nc: [{'*b,' * 9}]\n---\n" * 2000,
    "a long key": f"dataset: {{{'a' * 1_000_000}: 1}}\n",
    "a long folded text": "resolver:\n  id: >\n" + "    " + "a b " * 200_000 + "\n    c\n",
    "two long names": f"dataset: {{id: {'a' * 99_999}b, name: x}}\n---\nproject: {{id: p, name: P, "
    f"input_dataset_id: {'a' * 99_999}c, operations: [{{seq: 1, name: x, type: delete}}]}}\n",
    "documents": "dataset: 1\n---\n" * 2000,
    "open braces in a template": "resolver: {id: r, rules: [{name: a, data_level: any, strategy: {type: path, "
    + f'datasource_id: d, path: "{{{{{" " * 100_000}x"}}}}]}}\n',
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_text_takes_no_time(case: str, root: Path) -> None:
    (root / "hostile.yaml").write_text(HOSTILE[case])
    assert validate(root)["count"] >= 1
