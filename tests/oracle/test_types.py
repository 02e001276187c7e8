"""What the checker promises without data: the columns and types after every operation, as the oracle infers them."""

from __future__ import annotations

from random import Random

import pytest

from .case import Case
from .engine import bind
from .generate.projects import case as generated
from .values import FailedError, RefusedError


def _disagreement(case: Case) -> str | None:
    bound = bind(case.without_rows())
    problems = [problem.type for problem in bound.problems]
    try:
        working = case.without_rows().interpreted().working
    except RefusedError as error:
        return None if str(error) in problems else f"oracle refuses with {error}, the checker finds {problems}"
    except FailedError as error:
        if str(error) == "CheckFailed":  # of a group without rows
            return None
        return f"oracle fails with {error} on no rows at all"
    if problems:
        return f"oracle finds nothing wrong, the checker {problems}"
    promised = bound.steps[-1].after
    if list(promised.columns.items()) != list(working.columns.items()):
        return f"checker: {dict(promised.columns)}; oracle: {working.columns}"
    return None


def _disagreements(seed: str, count: int) -> list[str]:
    found = {number: _disagreement(generated(Random(f"{seed}/{number}"))) for number in range(count)}
    return [f"{seed}/{number}: {text}" for number, text in found.items() if text is not None]


def test_types_of_generated_projects() -> None:
    wrong = _disagreements("types", 200)
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_types_of_many_generated_projects() -> None:
    wrong = _disagreements("types-long", 10_000)
    assert not wrong, "\n".join(wrong)
