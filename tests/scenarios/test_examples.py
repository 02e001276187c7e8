"""The scenarios of the example workspaces hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tallybook.engine.local import LocalEngine
from tallybook.project.check import check
from tallybook.project.load import load_definitions
from tallybook.scenarios.check import read_cases
from tallybook.scenarios.load import Case
from tallybook.scenarios.report import failure_text
from tallybook.scenarios.suite import judge

EXAMPLES = Path(__file__).parents[2] / "examples"
MINIMUM = {"orders": 6, "month_close": 15, "allocation": 9, "exposure": 9}
"""By example, how many scenarios it has at least."""


@cache
def scenarios(example: str) -> list[Case]:
    return read_cases(check(load_definitions(EXAMPLES / example)))


def parameters(example: str) -> Iterator[object]:
    """The scenarios of an example. Two thirds of those of the largest one wait for the long tests."""
    for number, case in enumerate(scenarios(example)):
        waits = example == "month_close" and number % 3
        yield pytest.param(case, id=case.name, marks=[pytest.mark.long] if waits else [])


@pytest.mark.parametrize("case", list(chain.from_iterable(map(parameters, MINIMUM))))
def test_a_scenario_holds(case: Case, engine: LocalEngine) -> None:
    outcome = judge(case, engine)
    assert outcome.status == "passed", failure_text(outcome)


def test_there_are_enough_of_them() -> None:
    assert sorted(MINIMUM) == sorted(path.parent.name for path in EXAMPLES.glob("*/tallybook.yaml"))
    assert [example for example, least in MINIMUM.items() if len(scenarios(example)) < least] == []
