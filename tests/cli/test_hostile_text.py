"""Nothing a user, a file or a table holds can command the terminal, forge a line of ours or break a report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tallybook.cli.main import main
from tallybook.errors import Problem
from tallybook.model.written import show
from tallybook.source import Place
from tallybook.text import padded, printable, width

GOLDEN = Path(__file__).parents[1] / "golden"
TALLYBOOK = str(Path(sys.executable).with_name("tallybook"))
HOSTILE = "\x1b]0;pwned\x07\r\b\x00\x9b31m\u202etxt\u2066x\u2028y\ufeff\nforged: line"
FRIENDLY = "Müller 漢字 👩\u200d💻 🇩🇪 naïve ‰ ½ नमस्ते [red]bold[/red] [link=x]"


def test_a_character_that_no_screen_shows_is_spelled() -> None:
    invisible = "\u200b\u200e\u202e\u2028\u2066\ufeff\udcff\uffff\U000e0041"
    for char in [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *invisible]:
        shown = printable(f"a{char}b")
        assert shown.startswith("a\\") and shown.endswith("b") and shown.isprintable(), ascii(char)


def test_what_people_write_stays_as_it_is() -> None:
    assert printable(FRIENDLY) == FRIENDLY


def test_an_escape_goes_through_twice_unchanged() -> None:
    once = printable(HOSTILE)
    assert printable(once) == once and once.isprintable()
    assert once.startswith("\\x1b]0;pwned\\x07\\r\\x08\\x00\\x9b31m\\u202etxt")


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("👩", 2), ("ｶﾞ", 2), ("नि", 2), ("", 0)]
)
def test_the_width_of_text_on_a_screen(text: str, columns: int) -> None:
    assert width(text) == columns
    assert width(padded(text, 6)) == 6


@pytest.mark.parametrize(
    ("line", "column", "caret"),
    [
        ("a: bad", 4, "   ^^^"),
        ("\ta: bad", 5, "    ^^^"),
        ("漢: bad", 4, "    ^^^"),
        ("a: 漢字 bad", 4, "   ^^^^^"),
        ("\x1b: bad", 4, "      ^^^"),
        ("a: \x1bad", 4, "   ^^^^^^"),
    ],
    ids=["plain", "tab", "wide before", "wide at it", "escaped before", "escaped at it"],
)
def test_the_caret_is_under_what_it_points_at(line: str, column: int, caret: str) -> None:
    shown, below = Place("f.yaml", 1, column, line, 3).excerpt().split("\n")
    assert shown == printable(line.expandtabs(1)) and below == caret


def test_a_problem_cannot_forge_lines() -> None:
    problem = Problem(
        "DataLoadError", f"bad {HOSTILE}", f"hint {HOSTILE}", Place(f"{HOSTILE}.yaml", 1, 1, f"k: {HOSTILE}")
    )
    lines = str(problem).split("\n")
    assert len(lines) == 5 and all(line.isprintable() for line in lines)
    assert problem.to_json()["message"] == f"bad {HOSTILE}"


def test_a_cell_of_a_difference_shows_what_cannot_be_seen_and_no_more() -> None:
    assert show("ü\x1b") == '"ü\\x1b"'
    assert show(" ü") == '" ü"'
    assert show("a\xa0b") == '"a\\xa0b"'
    assert show("👩\u200d💻") == "👩\u200d💻"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Hostile names everywhere a file may have them, as YAML and JSON spell them."""
    root = Path(shutil.copytree(GOLDEN / "workspace", tmp_path / "sound"))
    project = {
        "project": {
            "id": "hostile",
            "name": HOSTILE,
            "description": HOSTILE,
            "input_dataset_id": "orders",
            "operations": [{"seq": 1, "name": HOSTILE, "type": "delete", "selector": f'nothing = "{HOSTILE}"'}],
            HOSTILE: 1,
        }
    }
    (root / "hostile.yaml").write_text(json.dumps(project))
    (root / "tallybook.yaml").write_text(json.dumps({"name": HOSTILE}))
    return root


def check_lines(text: str) -> None:
    """No line holds anything a terminal could obey, and none was begun by a value."""
    assert all(line.isprintable() for line in text.split("\n")), ascii(text)
    assert "\nforged" not in text


COMMANDS = [
    ["validate"],
    ["validate", HOSTILE.replace("\x00", "")],
    ["expr", 'x + "\x1b[31m" + \x07'],
    ["expr", "1", "--dataset", "\x1b[31m"],
    ["expr", 'IF(amount > 0, "\x1b[31m", "[red]b[/red]")', "--dataset", "orders"],
    ["plan", "\x1b[31m", "--period", "\x1b[31m"],
    ["apply"],
    ["runs", "\x1b[31m"],
    ["runs", "--status", "\x1b[31m"],
    ["datasets", "\x1b[31m"],
    ["period", "\x1b[31m"],
    ["activate", "\x1b[31m"],
    ["replay", "\x1b[31m"],
    ["test", "\x1b[31m"],
    ["test", "-k", "\x1b[31m"],
    ["\x1b[31m"],
    ["--\x1b[31m"],
    ["validate", "--\x1b[31m"],
    ["run", "--as-of", "\x1b[31m"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: ascii(" ".join(command))[:40])
def test_no_command_lets_text_through(command: list[str], workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*command, "--workspace", str(workspace)])
    shown = capsys.readouterr()
    check_lines(shown.out)
    check_lines(shown.err)
    main([*command, "--workspace", str(workspace), "--json"])
    json.loads(capsys.readouterr().out)


def test_json_is_untouched_in_content(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["validate", "--workspace", str(workspace), "--json"])
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert any(f"'{HOSTILE}'" in problem["message"] for problem in json.loads(shown)["problems"])


def test_a_file_name_of_odd_bytes_is_spelled(workspace: Path) -> None:
    (workspace / os.fsdecode(b"odd\xff\x1b.yaml")).write_text("dataset: 1\n")
    for extra in ([], ["--json"]):
        done = subprocess.run([TALLYBOOK, "validate", "-w", workspace, *extra], capture_output=True, check=False)
        assert done.returncode == 1 and done.stderr == b""
        assert json.loads(done.stdout) if extra else b"odd\\udcff\\x1b.yaml:1:1" in done.stdout


def run(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("stream", ["", "--json"])
def test_a_reader_that_closes_the_pipe_is_no_error(stream: str, workspace: Path) -> None:
    problems = "\n---\n".join(["dataset: 1"] * 3000)
    (workspace / "many.yaml").write_text(problems)
    done = run(f"{TALLYBOOK} validate {stream} | head -1", workspace)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (1, "", 1)


def test_a_full_disk_behind_standard_output_is_an_error(workspace: Path) -> None:
    (workspace / "hostile.yaml").unlink()
    done = run(f"{TALLYBOOK} validate --json > /dev/full", workspace)
    assert (done.returncode, done.stderr) == (
        1,
        "error: standard output cannot be written: No space left on device\n",
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_crash_nothing(closed: str, workspace: Path) -> None:
    assert run(f"{TALLYBOOK} validate {closed}", workspace).returncode == 1


@pytest.mark.parametrize("encoding", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}])
def test_a_screen_of_few_characters_gets_the_others_spelled(encoding: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "tallybook.yaml").write_text("name: Müller 漢 👩\n", encoding="utf-8")
    command = [TALLYBOOK, "validate", "-w", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=False, env=os.environ | encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode(encoding.get("PYTHONIOENCODING", "utf-8"))
    assert "ller" in shown and ("漢" in shown or "\\u6f22" in shown)
