"""Does a run of 50 million rows fit a driver of 4 GB on two cores?

The pipeline of the annotated example over 50 million orders, half of them in the period, Parquet to Parquet.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from _orders import PERIOD, generate, workspace
from _timing import report, timed

from tallybook.engine.session import get_session
from tallybook.model.settings import SparkSettings
from tallybook.workspace import Workspace


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=50_000_000)
    arguments.add_argument("--memory", default="4g")
    arguments.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "tallybook-benchmarks")
    arguments.add_argument("--json", action="store_true")
    given = arguments.parse_args()
    spark = get_session(SparkSettings(master="local[2]", conf={"spark.driver.memory": given.memory}))
    data = generate(spark, given.cache, given.rows)
    with tempfile.TemporaryDirectory() as folder:
        opened = Workspace.open(workspace(Path(folder) / "ws", data, "parquet"))
        opened.activate("order-close")
        results = []
        seconds = timed(lambda: results.append(opened.run("order-close", PERIOD)))
        written = results[0].outputs[0].rows_written
    facts = {"rows": given.rows, "heap": given.memory, "written": written, "status": results[0].run.status}
    report("memory: a large run in a small heap", [{**facts, "seconds": seconds}], given.json)


if __name__ == "__main__":
    main()
