"""What does the month close of examples/month_close cost at a million lines, and does its second half cost more?

The whole project `month-close`, with its two Delta tables and its CSV file, and the same project cut after its first
output. The second half of the operations costs what is left: it should not be more than the first. By hand: the same
close in PySpark. `--against SRC` runs an older source tree first (its folder `src`) and compares the whole runs.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from _close_by_hand import by_spark
from _data import made
from _kit import ENGINE, ROOT, SPARK, Case, Suite, Way, judge, options, suite
from _workspace import PERIOD, engine_way
from ruamel.yaml import YAML

EXAMPLE = ROOT / "examples" / "month_close"
FIRST_HALF = "first_half"
LAST_OF_FIRST_HALF = 90
TABLES = ("audit_trail", "closed_ledger")
HALVES_BAR, AGAINST_BAR = 1.0, 0.4


def generate(suite: Suite, lines: int) -> Path:
    """Returns a data folder of the example with that many lines in one month."""
    spec = importlib.util.spec_from_file_location("month_close_generate", EXAMPLE / "generate.py")
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = example
    spec.loader.exec_module(example)

    def make(folder: Path) -> None:
        for name in ("reference", "budgets"):
            shutil.copytree(EXAMPLE / "data" / name, folder / name)
        journal = example.journal(suite.session, PERIOD, lines, example.SEED)
        journal.write.parquet(str(folder / f"journal_{PERIOD.replace('-', '_')}"))

    return made(suite.data, f"close-{lines}", make)


def workspace(folder: Path, data: Path, *, half: bool = False) -> Path:
    """Copies the example, reads `data`, and leaves the operations of the second half out if asked to."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("data", "scenarios", "warehouse", ".tallybook"))
    sources = folder / "datasources.yaml"
    text = sources.read_text(encoding="utf-8")
    sources.write_text(text.replace("path_prefix: data", f"path_prefix: {data}"), encoding="utf-8")
    if half:
        path = folder / "projects" / "month-close.yaml"
        document = YAML(typ="safe").load(path)
        operations = document["project"]["operations"]
        document["project"]["operations"] = [step for step in operations if step["seq"] <= LAST_OF_FIRST_HALF]
        path.write_text(json.dumps(document), encoding="utf-8")
        (folder / "projects" / "management-report.yaml").unlink()
    return folder


def case(suite: Suite, lines: int) -> Case:
    spark, data = suite.session, generate(suite, lines)
    targets = tuple(suite.folder / "by-hand" / table for table in TABLES)
    report = suite.folder / "by-hand" / "budget_against_actual"
    whole = workspace(suite.folder / f"whole-{lines}", data)
    half = workspace(suite.folder / f"half-{lines}", data, half=True)
    ways = {
        ENGINE: engine_way(whole, TABLES, "month-close"),
        SPARK: Way(lambda: by_spark(spark, data, *targets, report), targets),
        FIRST_HALF: Way(engine_way(half, (), "month-close").run),
    }
    return Case({"lines": lines}, ways)


def earlier_engine_ms(given: Namespace, folder: Path) -> dict[int, float]:
    """Measures the whole run with the source tree of `--against`, in a process of its own."""
    results = folder / "against.json"
    rows = [str(lines) for lines in given.rows]
    arguments = ["--ways", ENGINE, "--rounds", str(given.rounds), "--cache", str(given.cache), "--json", str(results)]
    command = [sys.executable, __file__, "--rows", *rows, *arguments]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": str(given.against)}, check=True)
    document = json.loads(results.read_text(encoding="utf-8"))
    return {result["lines"]: result["engine_ms"] for result in document["results"]}


def more(parser: ArgumentParser) -> None:
    parser.add_argument("--against", type=Path, metavar="SRC", help="the folder `src` of an older tree")


def main() -> None:
    given = options(__doc__, rows=[1_000_000], long_rows=[10_000_000], more=more)
    with suite("close", __doc__, given) as running:
        earlier = earlier_engine_ms(given, running.folder) if given.against else {}
        for lines in given.rows:
            result = running.measure(case(running, lines))
            if {"engine_ms", "first_half_ms"} <= result.keys():
                result["second_half_ms"] = round(result["engine_ms"] - result["first_half_ms"], 1)
                result["halves"] = round(result["second_half_ms"] / result["first_half_ms"], 3)
                judge(result, "halves", HALVES_BAR)
            if lines in earlier:
                result["earlier_ms"] = earlier[lines]
                result["to_earlier"] = round(result["engine_ms"] / earlier[lines], 3)
                judge(result, "to_earlier", AGAINST_BAR)


if __name__ == "__main__":
    main()
