"""Many generated projects on both engines, and a report: how many, what they used, where the two disagree.

python tests/oracle/campaign.py --projects 5000 --seed 1
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import SparkSession

from oracle.case import Case, save
from oracle.compare import judged
from oracle.engine import WITHOUT
from oracle.generate.projects import case as generated
from oracle.shrink import shrunk
from tallybook.engine.session import get_session
from tallybook.model.settings import SparkSettings

QUICK = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:NewRatio=1 "
    "-XX:ReservedCodeCacheSize=256m",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""Tiny frames: compiling and scheduling cost more than computing."""
CODEGEN = "spark.sql.codegen.factoryMode"
CODEGEN_EVERY = 5
"""One project in so many runs on generated code, as real runs do; the others are interpreted, which is quicker."""
WORD = re.compile(r"\b([A-Z_]{2,})(?=\()|\b(LIKE|BETWEEN|IN|OVER|IS NULL|IS NOT NULL)\b|\s([-+*/%])\s")


@dataclass
class Report:
    """What a campaign has seen."""

    projects: int = 0
    seconds: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    disagreements: list[tuple[int, Case, list[str]]] = field(default_factory=list)

    def note(self, case: Case) -> None:
        self.projects += 1
        self.operations.update(operation["type"] for operation in case.project["operations"])
        self.functions.update("".join(found) for found in WORD.findall(str(case.project)))

    def __str__(self) -> str:
        def histogram(counter: Counter[str]) -> str:
            return ", ".join(f"{name} {count:,}" for name, count in counter.most_common())

        return "\n".join(
            [
                f"projects       {self.projects:,} in {self.seconds:.0f} s",
                f"disagreements  {len(self.disagreements)}",
                f"outcomes       {histogram(self.outcomes)}",
                f"operations     {histogram(self.operations)}",
                f"functions      {histogram(self.functions)}",
            ]
        )


def campaign(
    spark: SparkSession, projects: int, seed: int, stop_at: int = 20, most: float = 1e9, start: int = 0
) -> Report:
    """Judges the cases of a seed from `start` on, each with all optimisations and again without some of them. Stops
    early after `stop_at` disagreements or `most` seconds."""
    report = Report()
    begun = time.monotonic()
    before = str(spark.conf.get(CODEGEN))
    for number in range(start, projects):
        case = generated(Random(f"{seed}/{number}"))
        spark.conf.set(CODEGEN, "FALLBACK" if number % CODEGEN_EVERY == 0 else "NO_CODEGEN")
        verdict, slow = judged(case, spark), judged(case, spark, WITHOUT[number % len(WITHOUT)])
        report.note(case)
        report.outcomes[verdict.outcome] += 1
        if verdict.differences or slow.differences:
            report.disagreements.append((number, case, [*verdict.differences, *slow.differences]))
        report.seconds = time.monotonic() - begun
        if len(report.disagreements) >= stop_at or report.seconds > most:
            break
        if number % 100 == 99:
            print(f"{number + 1:,} projects, {report.seconds:.0f} s", file=sys.stderr)
    spark.conf.set(CODEGEN, before)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projects", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for the disagreements, made small")
    parser.add_argument("--stop-at", type=int, default=20, help="disagreements after which to stop")
    parser.add_argument("--seconds", type=float, default=1e9, help="time after which to stop")
    options = parser.parse_args()
    log = Path(tempfile.mkdtemp(prefix="oracle-"))
    spark = get_session(SparkSettings(master="local[2]", conf=QUICK), log_dir=log)
    report = campaign(spark, options.projects, options.seed, options.stop_at, options.seconds)
    print(report)
    for number, case, differences in report.disagreements:
        print(f"\n--- project {number} of seed {options.seed}", *differences[:6], sep="\n")
        if options.keep:
            small = shrunk(case, lambda smaller: bool(judged(smaller, spark).differences))
            wrong = judged(small, spark).differences
            options.keep.mkdir(parents=True, exist_ok=True)
            save(small, options.keep / f"seed{options.seed}-{number}.yaml", wrong[0][:200])
            print("made small:", *wrong[:6], sep="\n")
    spark.stop()
    return 1 if report.disagreements else 0


if __name__ == "__main__":
    sys.exit(main())
