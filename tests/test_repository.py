"""What is committed: no address of a package index, no path of somebody's machine, nothing large."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LARGEST = 1_000_000

FORBIDDEN = re.compile(
    rb"""
    \b(?:pypi|pythonhosted|anaconda|conda)\.(?:org|com)\b   # where packages come from is the reader's choice
    | \b(?:registry\.npmjs|repo\d?\.maven|repo\.maven\.apache)\.org\b
    | --(?:extra-)?index-ur[l] | --find-link[s] | --trusted-hos[t]
    | (?<![\w.~])/(?:home|Users|work)/\w                    # a folder on the machine of whoever committed it
    | (?<![\w.~])/roo[t]/
    | \b[A-Z]:\\Users\\
    """,
    re.VERBOSE | re.IGNORECASE,
)


def forbidden(content: bytes) -> list[str]:
    return [found.group().decode() for found in FORBIDDEN.finditer(content)]


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def test_no_tracked_file_names_a_package_index_or_a_machine() -> None:
    found = {str(path.relative_to(ROOT)): forbidden(path.read_bytes()) for path in tracked()}
    assert {name: what for name, what in found.items() if what} == {}


def test_no_tracked_file_is_large() -> None:
    assert [str(path.relative_to(ROOT)) for path in tracked() if path.stat().st_size > LARGEST] == []


@pytest.mark.parametrize(
    "parts",
    [
        ("https://files.python", "hosted.org/packages/a.whl"),
        ("https://py", "pi.org/simple"),
        ("--index", "-url https://mirror.example"),
        ("cd /ho", "me/alice/tallybook"),
        ("file:///wo", "rk/main"),
        ("/ro", "ot/.cache"),
        ("C:\\Us", "ers\\bob"),
    ],
)
def test_a_bad_line_is_found(parts: tuple[str, str]) -> None:
    """The lines are put together here, since this file is tracked too."""
    assert forbidden("".join(parts).encode())


@pytest.mark.parametrize("line", ["pip install tallybook", "/usr/lib/jvm", "data/work/rows.csv", "homework/alice"])
def test_a_good_line_passes(line: str) -> None:
    assert forbidden(line.encode()) == []


def test_the_lock_pins_everything_with_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    pinned = re.compile(r"[a-z0-9-]+==[\w.]+( ; [\w.,<>=!'* -]+?)?( +--hash=sha256:[0-9a-f]{64})+ *")
    assert lines
    assert [line for line in lines if not pinned.fullmatch(line)] == []


def test_the_installation_trusts_nothing_without_a_hash() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = re.findall(r"pip install (.*)", makefile)
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "--no-deps --no-build-isolation" in installs[1]


def test_every_test_that_the_threat_model_names_is_there() -> None:
    lines = (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ")][1:]
    named = {row: re.findall(r"`(tests/[^`]+)`", row) for row in rows}
    assert rows and all(named.values()), "each threat names a test"
    assert [test for tests in named.values() for test in tests if not _has_test(*test.partition("::")[::2])] == []


def _has_test(file: str, name: str) -> bool:
    path = ROOT / file
    return path.is_file() and f"def {name or 'test_'}" in path.read_text(encoding="utf-8")
