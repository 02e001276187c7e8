"""Breaks the code in small ways and sees whether a test notices.

    python tests/mutants.py [--sample 200] [--seed 1] [--seconds N] [NAME ...]

mutmut writes the mutants of `rows/`, `operations/` and `expressions/`; it cannot run them, because its forks would
share one connection to Spark. Here each mutant is a fork with a connection of its own to one running Spark. It runs
the tests of its package, those of `make test`, until one fails.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = {
    "expressions": ["tests/expressions", "tests/rules"],
    "operations": ["tests/rules", "tests/engine/test_pipeline.py", "tests/project", "tests/engine/test_failures.py"],
    "rows": ["tests/rows", "tests/rules", "tests/engine/test_pipeline.py", "tests/storage/test_read_columnar.py"],
}
SLOW = ["tests/expressions/test_random_text.py", "tests/project/test_random_files.py", "tests/rules/test_coverage.py"]
"""What would find nothing that the others do not, and takes long."""
SECONDS = 200


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="these mutants instead of a sample")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no mutant after so many")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = write_mutants(Path(folder) / "src")
        sys.path[:0] = [str(Path(folder) / "src"), str(ROOT)]
        os.chdir(ROOT)
        chosen = given.names or random.Random(given.seed).sample(names, min(given.sample, len(names)))
        print(f"{len(names):,} mutants, {len(chosen)} chosen with seed {given.seed}", flush=True)
        survivors = judge(chosen, given.seconds)
    return 1 if survivors else 0


def write_mutants(target: Path) -> list[str]:
    """The package with every mutant in it, each asleep until it is named; the names."""
    from mutmut.mutation.file_mutation import mutate_file_contents

    shutil.copytree(ROOT / "src", target, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    names: list[str] = []
    for package in TESTS:
        for file in sorted((target / "tallybook" / package).rglob("*.py")):
            mutated = mutate_file_contents(str(file), file.read_text(encoding="utf-8"))
            file.write_text(mutated.code, encoding="utf-8")
            module = ".".join(file.relative_to(target).with_suffix("").parts)
            names += [f"{module}.{name}" for name in mutated.mutant_names]
    return names


def judge(names: list[str], seconds: float) -> list[str]:
    """Runs each; prints what became of it, and of all."""
    os.environ["MUTANT_UNDER_TEST"] = ""
    from tests.conftest import TINY

    from tallybook.engine.session import get_session
    from tallybook.model.settings import SparkSettings

    spark = get_session(SparkSettings(master="local[2]", conf=TINY), log_dir=Path(tempfile.mkdtemp()))
    begun = time.monotonic()
    survivors: list[str] = []
    tried = 0
    for name in names:
        if time.monotonic() - begun > seconds:
            break
        started = time.monotonic()
        outcome = run_mutant(spark, name)
        tried += 1
        survivors += [name] if outcome == "survived" else []
        print(f"{tried:4} {outcome:9} {time.monotonic() - started:5.0f} s  {name}", flush=True)
    killed = tried - len(survivors)
    print(f"{killed} of {tried} killed ({killed / max(tried, 1):.0%}), {time.monotonic() - begun:.0f} s")
    spark.stop()
    return survivors


def run_mutant(spark: object, name: str) -> str:
    """`killed`, `survived`, or `too long`, which counts as killed: it never ended."""
    package = name.split(".")[1] if "." in name else "rows"
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reads)
        code = 1
        try:
            code = tests_of(spark, name, [*named_after(name), *TESTS[package]])
        finally:
            os._exit(code)
    os.close(writes)
    done = select.select([reads], [], [], SECONDS)[0]
    os.close(reads)
    if not done:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not done:
        return "too long"
    return "survived" if os.waitstatus_to_exitcode(status) == 0 else "killed"


def named_after(mutant: str) -> list[str]:
    """The tests whose file says that they are about the module: they kill soonest."""
    module = mutant.split(".")[-2] if "." in mutant else "?"
    found = sorted(ROOT.glob(f"tests/*/test_*{module.rstrip('s')}*.py"))
    return [str(path.relative_to(ROOT)) for path in found if path.parent.name in ("expressions", "rules", "rows")]


def tests_of(spark: object, name: str, paths: list[str]) -> int:
    """In the fork: wakes the mutant and runs the tests, without a word."""
    import pytest
    from mutmut.mutation.trampoline import set_mutant_under_test
    from tests.runs.forks import own_connection

    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    kept = own_connection(spark)
    type(spark).stop = lambda self: None  # type: ignore[attr-defined]  # it belongs to the parent
    if name != "none":
        set_mutant_under_test(name)
    code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *paths, *(f"--ignore={path}" for path in SLOW)]))
    del kept
    return code


if __name__ == "__main__":
    sys.exit(main())
