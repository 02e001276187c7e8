"""The frame of the command line: exit codes, JSON, colour, and what `validate` does not load."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.kit.terminal import on_terminal

from tallybook.cli.app import app
from tallybook.cli.main import main
from tallybook.workspace import Workspace

GOLDEN = Path(__file__).parents[1] / "golden"
TALLYBOOK = str(Path(sys.executable).with_name("tallybook"))


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "workspace", tmp_path / "sound"))


@pytest.fixture
def wrong(sound: Path) -> Path:
    shutil.copytree(GOLDEN / "problems" / "ColumnNotFound", sound, dirs_exist_ok=True)
    return sound


def test_a_valid_workspace(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--workspace", str(sound)]) == 0
    shown = capsys.readouterr()
    assert shown.out == "workspace 'golden' is valid: 4 datasets, 1 resolver, 1 datasource\n"
    assert shown.err == ""


def test_problems_in_the_documented_json_form(wrong: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", "--workspace", str(wrong), "--json"]) == 1
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert shown.err == ""
    assert document["count"] == len(document["problems"]) == 6
    assert document["problems"][0] == {
        "type": "ColumnNotFound",
        "message": "'orders' has no column 'amont'",
        "hint": "did you mean 'amount'?",
        "file": "project.yaml",
        "line": 16,
        "column": 25,
        "project": "order-close",
        "seq": 1,
        "operation": "Set columns",
        "path": "project.operations[0].arguments.assignments[0].expression",
    }
    assert document["problems"][4]["code"] == "APPEND_006"


@pytest.mark.parametrize("order", ["before", "after", "between"])
def test_the_common_options_stand_before_or_after_the_command(
    order: str, sound: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--json", "--workspace", str(sound)]
    given = {
        "before": [*options, "validate"],
        "after": ["validate", *options],
        "between": ["--json", "validate", *options[1:]],
    }
    assert main(given[order]) == 0
    assert json.loads(capsys.readouterr().out) == {"problems": [], "count": 0}


def test_the_nearest_workspace_upwards_is_meant(
    sound: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (sound / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(sound / "deep" / "er")
    assert main(["validate"]) == 0
    assert "workspace 'golden' is valid" in capsys.readouterr().out


def test_a_workspace_has_one_root_however_it_is_named(sound: Path, tmp_path: Path) -> None:
    """The store compares locations by their paths: another spelling would be another location."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "link").symlink_to(sound)
    roundabout = tmp_path / "beside" / ".." / "link"
    assert Workspace.open(roundabout).root == Workspace.open(sound).root == sound.resolve()


WRONG_USAGE = {
    "no such command": ["frobnicate"],
    "no such option": ["validate", "--frobnicate"],
    "a missing argument": ["expr"],
    "an option without its value": ["validate", "--workspace"],
    "no workspace there": ["validate", "--workspace", "/nowhere"],
    "two folders": ["init", "--workspace", "/nowhere", "/elsewhere"],
}


@pytest.mark.parametrize("case", WRONG_USAGE)
def test_wrong_usage_is_exit_code_2(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(WRONG_USAGE[case]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert "\n  hint: " in shown.err


WRONG_VALUES = {
    "--as-of soon": "Invalid value for '--as-of': 'soon' is not a date; write it as 2026-01-31",
    "--show many": "Invalid value for '--show': it must be a whole number",
    "--parallel 0": "Invalid value for '--parallel': it must be at least 1",
}


@pytest.mark.parametrize("option", WRONG_VALUES)
def test_the_value_of_an_option_is_refused_in_plain_words(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "close", "--period", "2026-01", *option.split()]) == 2
    assert capsys.readouterr().err.splitlines()[0] == f"error: {WRONG_VALUES[option]}"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("activate order close", "error: unexpected argument: close\n"),
        ("run a --perod 2026-01", "error: there is no option --perod; did you mean --period?\n"),
        ("validate --nope", "error: there is no option --nope\n"),
    ],
)
def test_an_unknown_argument_or_option_is_refused_in_plain_words(
    case: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(case.split()) == 2
    assert capsys.readouterr().err.startswith(words)


def test_a_folder_inside_a_workspace_names_the_workspace(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (sound / "inside").mkdir()
    for folder, reason in (("inside", "it has no tallybook.yaml"), ("nowhere", "there is no such folder")):
        assert main(["validate", "--workspace", str(sound / folder)]) == 2
        shown = capsys.readouterr().err
        assert shown == f"error: '{sound / folder}' is not a workspace: {reason}\n  hint: the workspace is '{sound}'\n"


@pytest.mark.parametrize("case", WRONG_USAGE)
def test_wrong_usage_is_json_too(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", *WRONG_USAGE[case]]) == 2
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert (document["problems"], document["error"]["type"], shown.err) == ([], "UsageError", "")


def test_no_workspace_upwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["validate"]) == 2
    assert "create a workspace with `tallybook init`" in capsys.readouterr().err


@pytest.mark.parametrize("as_json", [False, True])
def test_a_bug_is_exit_code_3_and_its_traceback_is_in_a_file(
    as_json: bool, sound: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(self: Workspace, projects: object) -> None:
        raise KeyError("surprise")

    monkeypatch.setattr(Workspace, "validate", broken)
    assert main(["validate", "--workspace", str(sound), *(["--json"] if as_json else [])]) == 3
    shown = capsys.readouterr()
    said = json.loads(shown.out)["error"]["hint"] if as_json else shown.err
    assert "Traceback" not in shown.out + shown.err
    log = Path(said.split("the traceback is in ")[1].strip())
    text = log.read_text()
    log.unlink()
    assert "Traceback" in text
    assert "KeyError: 'surprise'" in text


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        assert main(arguments) == 0
        assert "validate" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("tallybook ")


def commands(group: Any, name: str = "tallybook") -> Iterator[tuple[str, Any]]:
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


@pytest.mark.parametrize(("name", "command"), list(commands(typer.main.get_command(app))))
def test_every_command_takes_the_common_options_and_explains_itself(name: str, command: Any) -> None:
    assert {"json", "workspace"} <= {parameter.name for parameter in command.params}, name
    assert command.help, name
    unexplained = [p.name for p in command.params if not getattr(p, "help", None)]
    assert unexplained == [], name


@pytest.mark.parametrize(("name", "command"), list(commands(typer.main.get_command(app))))
def test_help_has_no_types_of_python(name: str, command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split()[1:], "--help"]) == 0
    shown = capsys.readouterr().out
    assert "<" not in shown and "[x" not in shown


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("tallybook pl", "plan"),
        ("tallybook plan o", "order-close"),
        ("tallybook run order-close --period 2025-1", "2025-12"),
        ("tallybook deactivate ", "order-close"),
        ("tallybook runs ", ""),
    ],
)
def test_a_shell_is_offered_what_fits(tmp_path: Path, words: str, offered: str) -> None:
    environment = {"_TALLYBOOK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    example = Path(__file__).parents[2] / "examples/orders"  # `make demo` has runs there
    orders = shutil.copytree(example, tmp_path / "orders", ignore=shutil.ignore_patterns(".tallybook", "warehouse"))
    completed = subprocess.run(
        [TALLYBOOK], env={**os.environ, **environment}, cwd=orders, capture_output=True, text=True, check=False
    )
    assert offered in completed.stdout.splitlines() or (offered, completed.stdout) == ("", "")
    assert completed.stderr == ""


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TALLYBOOK, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_validate_starts_no_java(sound: Path, tmp_path: Path) -> None:
    """With JAVA_HOME pointing nowhere and a `java` on the path that would tell."""
    bin, told = tmp_path / "bin", tmp_path / "java-was-started"
    bin.mkdir()
    (bin / "java").write_text(f"#!/bin/sh\ntouch {told}\n")
    (bin / "java").chmod(0o755)
    path = f"{bin}{os.pathsep}{os.environ['PATH']}"

    done = run("validate", "--workspace", str(sound), JAVA_HOME="/nowhere", PATH=path)

    assert (done.returncode, done.stderr) == (0, "")
    assert not told.exists()


@pytest.mark.parametrize("command", [["validate"], ["expr", "1 + 1"], ["schema"]])
def test_checking_loads_neither_spark_nor_a_database(command: list[str], tmp_path: Path) -> None:
    """Also where there are scenarios to check."""
    assert main(["init", str(tmp_path)]) == 0
    program = (
        "import sys\nfrom tallybook.cli.main import main\ncode = main(sys.argv[1:])\n"
        "heavy = [name for name in ('pyspark', 'sqlalchemy', 'alembic', 'deltalake', 'pandas', 'rich') "
        "if name in sys.modules]\n"
        "sys.exit(f'loaded: {heavy}' if heavy else code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command, "--workspace", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_colour_is_for_terminals_whose_user_wants_it(wrong: Path) -> None:
    arguments = ("validate", "--workspace", str(wrong))
    coloured = on_terminal(TALLYBOOK, *arguments)
    plain = on_terminal(TALLYBOOK, *arguments, NO_COLOR="1")
    assert "\x1b[31m\x1b[1mColumnNotFound\x1b[0m" in coloured
    assert not re.search(r"\x1b\[[0-9;]*m", plain)
    assert "\x1b" not in run(*arguments).stdout
    assert "\x1b" not in on_terminal(TALLYBOOK, *arguments, "--json")


def test_what_a_function_means_goes_on_below_its_meaning() -> None:
    shown = on_terminal(TALLYBOOK, "expr", "ROUND(1.25, 1)", NO_COLOR="1").splitlines()
    before = "functions   ROUND(number, digits)  "
    assert shown[-3].startswith(before) and shown[-2].startswith(" " * len(before) + "Without digits")


def test_control_characters_of_files_do_not_reach_the_terminal(sound: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (sound / "odd.yaml").write_text('dataset: {id: "\\e]0;pwned\\a", name: x}\n')
    assert main(["validate", "--workspace", str(sound)]) == 1
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\\x1b]0;pwned\\x07" in shown


def test_a_terminal_that_cannot_show_a_character_gets_it_spelled(wrong: Path) -> None:
    done = run("validate", "--workspace", str(wrong), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 1
    project = wrong / "project.yaml"
    project.write_text(project.read_text().replace("order-close", "order-close-é"), encoding="utf-8")
    assert run("validate", "--workspace", str(wrong), PYTHONIOENCODING="ascii", PYTHONUTF8="0").returncode == 1
