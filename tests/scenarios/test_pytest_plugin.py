"""pytest collects scenarios where a workspace is, and notices nothing elsewhere."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.scenarios.kit import workspace
from tests.scenarios.test_command import BAD, GOOD

pytest_plugins = ["pytester"]


@pytest.mark.usefixtures("spark")
def test_scenarios_are_items(pytester: pytest.Pytester) -> None:
    workspace(pytester.path, f"{GOOD}---\n{BAD}")
    result = pytester.runpytest_inprocess("-v", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*one.yaml::Good PASSED*", "*one.yaml::Bad FAILED*"])
    result.stdout.fnmatch_lines(["*net is 8, not 9; last set by operation 10 'Take tax off' (project.yaml:*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_file_that_cannot_be_read_is_an_error(pytester: pytest.Pytester) -> None:
    workspace(pytester.path, "scenario:\n  name: [\n")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(errors=1)


def test_other_yaml_is_left_alone(pytester: pytest.Pytester) -> None:
    (pytester.path / "values.yaml").write_text("scenario:\n  name: not ours\n", encoding="utf-8")
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, tallybook.scenarios.pytest_plugin\n"
        "print([name for name in ('pyspark', 'pydantic', 'ruamel', 'lark') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
