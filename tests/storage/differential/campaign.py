"""Reads many generated locations with the product and with the strict readers, and reports where they differ.

python tests/storage/differential/campaign.py --cases 2000 --seed 2
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))

from differential.case import Case
from differential.generate.arrow import arrow_cases, delta_cases
from differential.generate.csv import csv_cases
from differential.generate.json import json_cases
from differential.product import judge
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from pyspark.sql import SparkSession

from oracle.campaign import CODEGEN, CODEGEN_EVERY, QUICK
from tallybook.engine.session import get_session
from tallybook.model.settings import SparkSettings

CASES = [csv_cases(), json_cases(), arrow_cases("parquet"), csv_cases(), arrow_cases("orc"), delta_cases()]
"""The formats in turn: CSV comes twice, because it has the most ways to write the same rows."""


@dataclass
class Report:
    """What a campaign has seen: locations read, locations refused by both readers and why, and disagreements."""

    seconds: float = 0.0
    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    disagreements: list[tuple[int, Case, list[str]]] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return self.read.total() + self.refused.total() + len(self.disagreements)

    def __str__(self) -> str:
        formats = sorted({*self.read, *self.refused})
        lines = [f"{self.cases:,} cases in {self.seconds:.0f} s, {len(self.disagreements)} disagreements", ""]
        lines += [f"{name:<8} read {self.read[name]:5,}   refused {self.refused[name]:5,}" for name in formats]
        return "\n".join([*lines, "", *(f"{count:5,}  {reason}" for reason, count in self.reasons.most_common())])


def campaign(spark: SparkSession, cases: int, seed: int, start: int = 0) -> Report:
    """Judges the cases of a seed with these numbers."""
    report = Report()
    begun = time.monotonic()
    before = str(spark.conf.get(CODEGEN))
    for number in range(start, start + cases):
        spark.conf.set(CODEGEN, "FALLBACK" if number % CODEGEN_EVERY == 0 else "NO_CODEGEN")
        case = generated(seed, number)
        with new_folder() as folder:
            judgement = judge(case, spark, folder)
        if judgement.differences:
            report.disagreements.append((number, case, list(judgement.differences)))
        elif judgement.refused:
            report.refused[case.format] += 1
            report.reasons[judgement.refused] += 1
        else:
            report.read[case.format] += 1
    spark.conf.set(CODEGEN, before)
    report.seconds = time.monotonic() - begun
    return report


def generated(seed: int, number: int) -> Case:
    """One case of a seed."""
    cases: list[Case] = []
    _hand_over(seed, number, cases.append, [Phase.generate])
    return cases[-1]


def shrunk(spark: SparkSession, seed: int, number: int) -> None:
    """Judges one case of a seed; where the readers disagree, Hypothesis fails with the smallest case that shows it."""

    def check(case: Case) -> None:
        with new_folder() as folder:
            differences = judge(case, spark, folder).differences
        assert not differences, "\n".join(differences)

    _hand_over(seed, number, check, [Phase.generate, Phase.shrink])


def _hand_over(seed: int, number: int, check: Callable[[Case], None], phases: list[Phase]) -> None:
    """Hands a case to `check`, after the simplest one, with which Hypothesis begins.

    Each case has a seed of its own: it can be made without those before it, and is no variation of one of them, as
    most of the later examples of one seed are.
    """

    @seeded(seed * 1_000_000 + number)
    @settings(max_examples=2, deadline=None, database=None, phases=phases, suppress_health_check=list(HealthCheck))
    @given(case=CASES[number % len(CASES)])
    def judged(case: Case) -> None:
        check(case)

    judged()


@contextmanager
def new_folder() -> Iterator[Path]:
    """A folder for the files of a case."""
    with TemporaryDirectory(prefix="differential-", ignore_cleanup_errors=True) as folder:
        yield Path(folder) / "place"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="number of the first case")
    parser.add_argument("--shrink", type=int, help="make the disagreement of this case small, and do nothing else")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="differential-") as log:
        spark = get_session(SparkSettings(master="local[2]", conf=QUICK), log_dir=Path(log))
        if options.shrink is not None:
            shrunk(spark, options.seed, options.shrink)
            return 0
        report = campaign(spark, options.cases, options.seed, options.start)
        for number, case, differences in report.disagreements:
            print(f"--- case {number} of seed {options.seed}", case, *differences[:4], "", sep="\n")
        print(report)
        spark.stop()
    return 1 if report.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
