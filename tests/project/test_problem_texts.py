"""For every problem type of the checker: the exact text a user sees.

`tests/golden/problems/<Type>/` holds files that are wrong in that way only; they are laid over the sound workspace in
`tests/golden/workspace/`. `expected.txt` is what `tallybook validate` prints.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tallybook.cli.main import main
from tallybook.errors import PROBLEM_TYPES, ProblemError
from tallybook.workspace import Workspace

GOLDEN = Path(__file__).parents[1] / "golden"
TYPES = [type.name for type in PROBLEM_TYPES.values() if type.when == "check"]


def workspace(type: str, folder: Path) -> tuple[Path, list[str]]:
    """The workspace that is wrong in one way, and the projects to name on the command line."""
    case = GOLDEN / "problems" / type
    assert case.is_dir(), f"there is no golden file for {type}: add files that are wrong in that way to {case}"
    shutil.copytree(GOLDEN / "workspace", folder, dirs_exist_ok=True)
    shutil.copytree(case, folder, dirs_exist_ok=True)
    arguments = folder / "arguments.txt"
    return folder, arguments.read_text().split() if arguments.exists() else []


@pytest.mark.parametrize("type", TYPES)
def test_the_text_a_user_sees(
    type: str, tmp_path: Path, golden: Callable[[Path, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, projects = workspace(type, tmp_path)

    assert main(["validate", "--workspace", str(folder), *projects]) == 1

    shown = capsys.readouterr()
    golden(Path("problems") / type / "expected.txt", shown.out + shown.err)


@pytest.mark.parametrize("type", TYPES)
def test_nothing_else_is_wrong_and_every_problem_has_its_place(type: str, tmp_path: Path) -> None:
    folder, projects = workspace(type, tmp_path)
    try:
        problems = Workspace.open(folder).validate(projects)
    except ProblemError as error:
        problems = list(error.problems)

    assert {problem.type for problem in problems} == {type}
    if type != "ProjectNotFound":
        assert all(problem.place is not None and problem.path is not None for problem in problems)


def test_the_sound_workspace_is_sound(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "workspace", tmp_path, dirs_exist_ok=True)
    assert Workspace.open(tmp_path).validate() == []
