"""What does the month close of examples/month_close cost at a million lines, and does its second half cost more?

The whole project `month-close`, with its two Delta tables and its CSV file, and the same project cut after its first
output. The second half of the operations costs what is left: it should not be more than the first. By hand: the same
close in PySpark, whole and up to the same output; `by_hand_halves` says what its second half costs. `--against TREE`
takes an older source tree and runs its example on its engine and on this one.
"""

from __future__ import annotations

import hashlib
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
from _workspace import engine_way
from ruamel.yaml import YAML

EXAMPLE_FOLDER = Path("examples") / "month_close"
EXAMPLE = ROOT / EXAMPLE_FOLDER
PROJECT = "month-close"
MONTHS = 3
"""The months whose lines the script of the example makes as Parquet files."""
FIRST_HALF, HALF_BY_HAND = "first_half", "half_by_hand"
LAST_OF_FIRST_HALF = 90
TABLES = ("audit_trail", "closed_ledger")
HALVES_BAR, AGAINST_BAR = 1.0, 0.4


def generate(suite: Suite, example: Path, lines: int) -> Path:
    """Returns a data folder of an example with that many lines in each month."""
    script = example / "generate.py"
    spec = importlib.util.spec_from_file_location("month_close_generate", script)
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = generator
    spec.loader.exec_module(generator)

    def make(folder: Path) -> None:
        generator.generate(suite.session, folder, lines * MONTHS)

    version = hashlib.sha256(script.read_bytes()).hexdigest()[:8]
    return made(suite.data, f"close-{lines}-{version}", make)


def workspace(folder: Path, example: Path, data: Path, *, half: bool = False) -> Path:
    """Copies an example, reads `data`, and leaves the operations of the second half out if asked to."""
    shutil.copytree(example, folder, ignore=shutil.ignore_patterns("data", "scenarios", "warehouse", ".tallybook"))
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
    spark, data = suite.session, generate(suite, EXAMPLE, lines)
    targets = tuple(suite.folder / "by-hand" / table for table in TABLES)
    report = suite.folder / "by-hand" / "budget_against_actual"
    half_targets = [suite.folder / "half-by-hand" / path.name for path in (*targets, report)]
    whole = workspace(suite.folder / f"whole-{lines}", EXAMPLE, data)
    half = workspace(suite.folder / f"half-{lines}", EXAMPLE, data, half=True)
    ways = {
        ENGINE: engine_way(whole, TABLES, PROJECT),
        SPARK: Way(lambda: by_spark(spark, data, *targets, report), targets),
        FIRST_HALF: Way(engine_way(half, (), PROJECT).run),
        HALF_BY_HAND: Way(lambda: by_spark(spark, data, *half_targets, half=True)),
    }
    return Case({"example": "current", "lines": lines}, ways)


def case_of_example(suite: Suite, example: Path, lines: int) -> Case:
    """Returns the close of an older example, on the engine of this process."""
    data = generate(suite, example, lines)
    folder = workspace(suite.folder / f"older-{lines}", example, data)
    return Case({"example": "older", "lines": lines}, {ENGINE: Way(engine_way(folder, (), PROJECT).run)})


def older_engine_ms(given: Namespace, folder: Path) -> dict[int, float]:
    """Measures the example of `--against` on its own engine, in a process of its own."""
    results = folder / "against.json"
    rows = [str(lines) for lines in given.rows]
    example = ["--example", str(given.against / EXAMPLE_FOLDER)]
    arguments = ["--rounds", str(given.rounds), "--cache", str(given.cache), "--json", str(results)]
    command = [sys.executable, __file__, "--rows", *rows, *example, *arguments]
    subprocess.run(command, env=os.environ | {"PYTHONPATH": str(given.against / "src")}, check=True)
    document = json.loads(results.read_text(encoding="utf-8"))
    return {result["lines"]: result["engine_ms"] for result in document["results"]}


def measure_halves(running: Suite, lines: int) -> None:
    """Measures the current example, and compares the halves of its operations."""
    result = running.measure(case(running, lines))
    if {"engine_ms", "first_half_ms"} <= result.keys():
        result["second_half_ms"] = round(result["engine_ms"] - result["first_half_ms"], 1)
        result["halves"] = round(result["second_half_ms"] / result["first_half_ms"], 3)
        judge(result, "halves", HALVES_BAR)
    if {"spark_ms", f"{HALF_BY_HAND}_ms"} <= result.keys():
        first = result[f"{HALF_BY_HAND}_ms"]
        result["by_hand_halves"] = round((result["spark_ms"] - first) / first, 3)


def more(parser: ArgumentParser) -> None:
    parser.add_argument("--against", type=Path, metavar="TREE", help="an older source tree")
    parser.add_argument("--example", type=Path, metavar="DIR", help="only the whole close of this copy of the example")


def main() -> None:
    given = options(__doc__, rows=[1_000_000], long_rows=[10_000_000], more=more)
    with suite("close", __doc__, given) as running:
        older = older_engine_ms(given, running.folder) if given.against else {}
        for lines in given.rows:
            if given.example:
                running.measure(case_of_example(running, given.example, lines))
                continue
            measure_halves(running, lines)
            if lines in older:
                result = running.measure(case_of_example(running, given.against / EXAMPLE_FOLDER, lines))
                result["older_engine_ms"] = older[lines]
                result["to_older"] = round(result["engine_ms"] / older[lines], 3)
                judge(result, "to_older", AGAINST_BAR)


if __name__ == "__main__":
    main()
