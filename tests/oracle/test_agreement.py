"""Engine and oracle on projects nobody thought of: the same cells, or the same refusal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from .campaign import campaign
from .case import Case, load, save
from .compare import judged
from .engine import ON, WITHOUT
from .generate.projects import case as generated
from .sabotage import SABOTAGES, projects_until_caught
from .shrink import shrunk

FOUND = sorted((Path(__file__).parent / "found").glob("*.yaml"))


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(random=st.randoms(use_true_random=False))
def test_generated_projects(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory, random: Random) -> None:
    case, optimisations = generated(random), random.choice((ON, ON, *WITHOUT))

    def wrong(case: Case) -> Sequence[str]:
        return judged(case, quick, optimisations).differences

    if wrong(case):
        small = shrunk(case, lambda smaller: bool(wrong(smaller)))
        path = tmp_path_factory.mktemp("oracle") / "disagreement.yaml"
        differences = wrong(small)
        save(small, path, differences[0][:200])
        pytest.fail(f"kept as {path}:\n" + "\n".join(differences))


@pytest.mark.long
def test_a_thousand_generated_projects(quick: SparkSession) -> None:
    report = campaign(quick, projects=1000, seed=1)
    assert not report.disagreements, f"{report}\n" + "\n".join(str(each[2]) for each in report.disagreements)


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_before(quick: SparkSession, path: Path) -> None:
    """Every disagreement ever found, whoever was wrong."""
    assert not judged(load(path), quick).differences


def test_generated_code_computes_a_selector_on_no_deleted_row(spark: SparkSession) -> None:
    """The other cases are interpreted. Generated code would compute what two expressions have in common first."""
    case = load(Path(__file__).parent / "found" / "selector-on-deleted-rows.yaml")
    assert not judged(case, spark).differences


@pytest.mark.long
@pytest.mark.parametrize("name", SABOTAGES)
def test_a_broken_engine_is_caught(quick: SparkSession, name: str) -> None:
    assert projects_until_caught(quick, name, projects=400, seed=1) is not None
