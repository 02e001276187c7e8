"""Does a run of 50 million rows fit a driver of 4 GB on two cores?

The pipeline of the annotated example over 50 million orders, half of them in the period, Parquet to Parquet, once.
"""

from __future__ import annotations

from _kit import options, suite, timed
from _orders import generate, workspace
from _workspace import PERIOD

from tallybook.runs.runner import RunResult
from tallybook.workspace import Workspace


def main() -> None:
    given = options(__doc__, rows=[50_000_000], memory="4g")
    with suite("memory", __doc__, given) as running:
        for rows in given.rows:
            data = generate(running.session, running.data, rows)
            opened = Workspace.open(workspace(running.new_folder("workspace"), data, "parquet"))
            opened.activate("bench")
            results: list[RunResult] = []
            seconds = timed(lambda opened=opened, results=results: results.append(opened.run("bench", PERIOD)))
            written = results[0].outputs[0].rows_written
            running.add({"rows": rows, "heap": given.memory, "written": written, "engine_ms": seconds * 1000})


if __name__ == "__main__":
    main()
