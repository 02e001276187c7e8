"""Proof that the oracle finds bugs: breaks the engine in one place after the other and counts projects until it shows.

python tests/oracle/sabotage.py --projects 300 --seed 1
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from oracle.campaign import QUICK, campaign
from oracle.compare import judged
from tallybook.engine.session import get_session
from tallybook.expressions.registry import FUNCTIONS, load_functions
from tallybook.model.dataset import Table
from tallybook.model.settings import SparkSettings
from tallybook.operations import grouping
from tallybook.operations.base import BuildContext
from tallybook.operations.sources import SourceRows
from tallybook.rows import system

Sabotage = Callable[[], Any]


def _null_selects(condition: Column | None) -> Column:
    active = system.is_active()
    return active if condition is None else active & F.coalesce(condition, F.lit(True))


def _ended_today_counts(frame: DataFrame, table: Table, periods: Sequence[str], as_of: date | None) -> DataFrame:
    if table.temporal_mode == "period":
        return frame.filter(F.col("_period").isin(*periods))
    if table.temporal_mode == "none" or as_of is None:
        return frame
    not_ended = F.col("_valid_to").isNull() | (F.col("_valid_to") >= F.lit(as_of))
    return frame.filter((F.col("_valid_from") <= F.lit(as_of)) & not_ended)


_grouped = grouping.grouped
_frame = SourceRows.frame


def _without_null_groups(*args: Any) -> DataFrame:
    summary = _grouped(*args)
    return summary.dropna(subset=[key.column for key in args[1].keys])


@contextmanager
def _function(name: str, build: Callable[..., Column]) -> Iterator[None]:
    load_functions()
    with patch.dict(FUNCTIONS, {name: replace(FUNCTIONS[name], build=build)}):
        yield


def _half_even(c: Any, x: Column, digits: Column | None = None) -> Column:
    literal = c.args[1].literal if digits is not None else 0
    rounded: Column = c.cast(F.bround(x, literal), c.result)
    return rounded


def _least(_c: Any, *values: Column) -> Column:
    return F.least(*values) if len(values) > 1 else values[0]


def _without_condition(rows: SourceRows, build: BuildContext, types: Any = None) -> DataFrame:
    return _frame(replace(rows, condition=None), build, types)


SABOTAGES: dict[str, Sabotage] = {
    "a selector that is NULL selects": lambda: patch("tallybook.rows.system.is_selected", _null_selects),
    "ROUND rounds halves to even": lambda: _function("ROUND", _half_even),
    "MIN passes over NULLs": lambda: _function("MIN", _least),
    "aggregate drops the groups of NULL": lambda: patch("tallybook.operations.aggregate.grouped", _without_null_groups),
    "a join takes one of two matches": lambda: patch("tallybook.rows.joins.raising", lambda *_, **__: F.lit("true")),
    "a row is still valid on the day it ends": lambda: patch(
        "tallybook.engine.pipeline.rows_of_period", _ended_today_counts
    ),
    "a check passes where its condition is NULL": lambda: patch(
        "tallybook.operations.check._holds", lambda condition: F.coalesce(condition, F.lit(True))
    ),
    "a source is read for the run's own period": lambda: patch(
        "tallybook.model.relative_period.RunPeriod.relative", lambda self, _relative: (self.period,)
    ),
    "the selector of a source selects everything": lambda: patch(
        "tallybook.operations.sources.SourceRows.frame", _without_condition
    ),
    "deleted rows are seen by operations": lambda: patch("tallybook.rows.system.is_active", lambda: F.lit(True)),
}


def projects_until_caught(spark: SparkSession, name: str, projects: int, seed: int) -> int | None:
    """After how many projects the engine, broken in that way, disagrees with the oracle; None when it never does.

    A project on which the sound engine disagrees as well proves nothing about the sabotage, and does not count.
    """
    start = 0
    while start < projects:
        with SABOTAGES[name]():
            report = campaign(spark, projects, seed, stop_at=1, start=start)
        if not report.disagreements:
            return None
        number, case, _ = report.disagreements[0]
        if not judged(case, spark).differences:
            return number + 1
        start = number + 1
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--projects", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="part of the name of a sabotage")
    options = parser.parse_args()
    spark = get_session(SparkSettings(master="local[2]", conf=QUICK), log_dir=Path(tempfile.mkdtemp(prefix="oracle-")))
    missed = 0
    for name in (name for name in SABOTAGES if options.only in name):
        number = projects_until_caught(spark, name, options.projects, options.seed)
        print(f"{name:45}", "not caught" if number is None else f"caught by project {number}", flush=True)
        missed += number is None
    spark.stop()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
