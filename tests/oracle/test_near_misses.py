"""The checker finds the one thing that is wrong, names it right, and says nothing about a sound project."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from .case import Case
from .generate.defects import DEFECTS, planted
from .generate.projects import case as generated
from .values import FailedError, RefusedError
from .workspace import checked

UNREADABLE = {"InvalidSeq", "InvalidArguments", "UnknownKey"}
"""Defects that make an operation unreadable: there is nothing the oracle could say about them."""


def _refusal(case: Case) -> str | None:
    try:
        case.interpreted()
    except RefusedError as error:
        return str(error)
    except FailedError:
        return None
    return None


def _sound(seed: str) -> tuple[Random, Case]:
    """The first project of a seed that the oracle has nothing against."""
    random = Random(seed)
    while True:
        case = generated(random, operations=5)
        if _refusal(case) is None:
            return random, case


def _near_misses(folder: Path, seed: str, count: int) -> list[str]:
    wrong = []
    for number in range(count):
        random, case = _sound(f"{seed}/{number}")
        found = checked(case, folder)
        if found:
            wrong.append(f"{seed}/{number}: sound, but the checker reports {found}")
        type, broken = planted(random, case)
        found = checked(broken, folder)
        if set(found) != {type}:
            wrong.append(f"{seed}/{number}: {type} was planted, the checker reports {found}")
        if type not in UNREADABLE and _refusal(broken) != type:
            wrong.append(f"{seed}/{number}: {type} was planted, the oracle says {_refusal(broken)}")
    return wrong


def test_near_misses(tmp_path: Path) -> None:
    wrong = _near_misses(tmp_path, "near", 60)
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
def test_many_near_misses(tmp_path: Path) -> None:
    wrong = _near_misses(tmp_path, "near-long", 1000)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("type", sorted(DEFECTS))
def test_every_defect_on_its_own(type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that none depends on being drawn."""
    random, case = _sound(type)
    monkeypatch.setattr("oracle.generate.defects.DEFECTS", {type: DEFECTS[type]})
    assert set(checked(planted(random, case)[1], tmp_path)) == {type}
