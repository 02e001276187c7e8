"""Checks the environments of a workspace that are not the chosen one: `validate` reports the problems of them all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tallybook.errors import Problem
from tallybook.project.check_locations import check_datasources, check_resolvers
from tallybook.project.check_outputs import check_outputs
from tallybook.project.check_result import CheckResult
from tallybook.project.files import SETTINGS_FILE


def check_other_environments(checked: CheckResult) -> Iterator[Problem]:
    """Yields the problems that other environments have and the chosen one has not."""
    definitions = checked.definitions
    known = {_identity(problem) for problem in (*checked.problems, *_problems(checked))}
    for name, environment in definitions.environments.items():
        if name == definitions.environment:
            continue
        there = replace(checked, definitions=definitions.in_environment(name))
        for problem in (*environment.problems, *_problems(there)):
            if _identity(problem) not in known:
                yield _of_environment(problem, name)


def _problems(checked: CheckResult) -> Iterator[Problem]:
    """Yields the problems that datasources have, and those of resolvers and outputs that name them."""
    yield from check_datasources(checked)
    yield from check_resolvers(checked)
    for id, entry in checked.definitions.projects.items():
        if id in checked.bound:
            yield from check_outputs(checked.bound[id], entry, checked)


def _identity(problem: Problem) -> tuple[object, ...]:
    return problem.type, problem.message, problem.place


def _of_environment(problem: Problem, name: str | None) -> Problem:
    """Says in which environment a file is wrong. A problem in the settings has its position to tell."""
    if problem.place is not None and problem.place.file == SETTINGS_FILE:
        return problem
    where = "without an environment" if name is None else f"in environment '{name}'"
    return replace(problem, message=f"{where}: {problem.message}")
