"""Breaks the code in small ways and sees whether a test notices.

    python tests/mutants.py [--sample 200] [--seed 1] [--budget 60] [--jobs 2] [NAME ...]

mutmut writes the mutants of `rows/`, `operations/` and `expressions/`; it cannot run them, because its forks would
share one connection to Spark. Here one Spark runs, and every mutant is a fork with a session of its own.

First, all tests run once while mutmut's trampolines tell which functions each test reaches; what they told is kept in
`build/`, and a test file is asked again only when it or the code has changed. A mutant then runs the tests that reach
its function, until one fails or `--budget` seconds of them have passed: what outlives them is a survivor, though a
test further on might have noticed. The fork imports the package anew, so that a mutant is awake at import as well and
nothing computed without it is left in a cache.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from mutmut.mutation import trampoline
from mutmut.mutation.file_mutation import mutate_file_contents

ROOT = Path(__file__).parent.parent
REACHES = ROOT / "build" / "mutants.json"
TESTS = (
    *("tests/engine/test_failures.py", "tests/engine/test_frames.py", "tests/engine/test_pipeline.py"),
    *("tests/exactness", "tests/expressions", "tests/oracle/test_near_misses.py"),
    *("tests/project", "tests/rows", "tests/rules", "tests/runs/test_runner.py", "tests/storage/test_columnar.py"),
)
"""Those of `make test` that run rows or check projects in their own process; of them, the random ones take too long."""
IMPORTED = "import"
"""Stands for a test where functions are listed that run when the package is imported."""

Reached = dict[str, tuple[float, list[str]]]
"""For every test its seconds, and the functions it reaches."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="these mutants instead of a sample; `none` changes nothing")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=float, default=60, help="seconds of tests for a mutant")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    given = parser.parse_args()
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
        names = write_mutants(Path(folder) / "src")
        sys.path[:0] = [str(Path(folder) / "src"), str(ROOT)]
        chosen = given.names or random.Random(given.seed).sample(names, min(given.sample, len(names)))
        spark = started_spark(Path(folder))
        tests = learned(spark)
        print(f"{len(names):,} mutants, {len(chosen)} chosen with seed {given.seed}", flush=True)
        survivors = judge(spark, chosen, tests, given.budget, given.jobs)
        spark.stop()
    return 1 if survivors else 0


def write_mutants(target: Path) -> list[str]:
    """The package with every mutant in it, each asleep until it is named; the names."""
    shutil.copytree(ROOT / "src", target, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    names: list[str] = []
    for package in ("expressions", "operations", "rows"):
        for file in sorted((target / "tallybook" / package).rglob("*.py")):
            mutated = mutate_file_contents(str(file), file.read_text(encoding="utf-8"))
            file.write_text(mutated.code, encoding="utf-8")
            module = ".".join(file.relative_to(target).with_suffix("").parts)
            names += [f"{module}.{name}" for name in mutated.mutant_names]
    return names


def started_spark(folder: Path) -> Any:
    """The one Spark. The package that started it is forgotten: every fork imports its own."""
    trampoline.set_mutant_under_test("")
    from tests.conftest import TINY

    from tallybook.engine.session import get_session
    from tallybook.model.settings import SparkSettings

    spark = get_session(SparkSettings(master="local[2]", conf=TINY | {"spark.driver.memory": "2g"}), log_dir=folder)
    for module in [name for name in sys.modules if name.partition(".")[0] in ("tallybook", "tests")]:
        del sys.modules[module]
    return spark


class Learner:
    """A plugin that notes what each test reaches; what a shared fixture reaches counts for every test that uses it."""

    def __init__(self) -> None:
        self.now: set[str] = set()
        self.shared: dict[str, set[str]] = {}
        self.tests: Reached = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        before, self.now = self.now, set()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self.shared.setdefault(fixturedef.argname, set()).update(self.now)
            self.now |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self.now, begun = set(), time.monotonic()
        result = yield
        reached = self.now.union(*(self.shared.get(name, ()) for name in item.fixturenames))
        if item.nodeid not in self.failed:
            self.tests[item.nodeid] = (round(time.monotonic() - begun, 3), sorted(reached))
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def learned(spark: Any) -> Reached:
    """What every test reaches: as kept from last time, else by running it."""
    keys = fingerprints()
    kept = json.loads(REACHES.read_text(encoding="utf-8")) if REACHES.exists() else {}
    kept = {file: kept[file] for file, key in keys.items() if file in kept and kept[file]["key"] == key}
    new = [file for file in keys if file not in kept]
    if new:
        print(f"running the tests of {len(new)} files once", flush=True)
        found, failed = json.loads(Fork(lambda: json.dumps(learn(spark, new))).heard())
        kept |= {file: {"key": keys[file], "tests": {}} for file in new}
        for test, what in found.items():
            kept[test.partition("::")[0]]["tests"][test] = what
        for test in failed:
            print(f"of no use, because it fails as it is: {test}", flush=True)
            kept[test.partition("::")[0]]["key"] = None
        REACHES.parent.mkdir(exist_ok=True)
        REACHES.write_text(json.dumps(kept), encoding="utf-8")
    return {test: what for file in kept.values() for test, what in file["tests"].items()}


def fingerprints() -> dict[str, str]:
    """For every test file, what changes with it, with what the tests share or read, or with the code."""
    tests = {path for name in TESTS for path in [ROOT / name, *(ROOT / name).glob("test_*.py")] if path.is_file()}
    every = {path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py")}
    every |= {path for path in (ROOT / "tests" / "golden").rglob("*") if path.is_file()}
    shared = digest(*(path for path in every if not path.name.startswith("test_") and path != Path(__file__)))
    own = {str(path.relative_to(ROOT)): digest(path) for path in sorted(tests) if "_random_" not in path.name}
    return {IMPORTED: shared} | {name: shared + key for name, key in own.items()}


def digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()[:16]


def learn(spark: Any, files: list[str]) -> tuple[Reached, list[str]]:
    """In the fork: runs the tests and hears the trampolines; what they told, and the tests that fail."""
    learner = Learner()
    trampoline.record_trampoline_hit = lambda name, caller: learner.now.add(name)
    trampoline.set_mutant_under_test("stats")
    adopt(spark)
    from tallybook.expressions.registry import load_functions

    load_functions()
    learner.tests[IMPORTED] = (0.0, sorted(learner.now))
    pytest.main([file for file in files if file != IMPORTED] or ["--collect-only"], plugins=[learner])
    return learner.tests, sorted(learner.failed)


class Chosen:
    """A plugin that runs the tests it was given, in their order, and keeps the first that fails."""

    def __init__(self, tests: list[str]) -> None:
        self.tests = tests
        self.failed: str | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self.tests if test in found]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def chosen_tests(mutant: str, tests: Reached, budget: float) -> list[str]:
    """The tests that reach the function, or any where it runs at import, the quickest first; all tests with many cases
    get the same time, until the budget is spent."""
    function = mutant.partition("__mutmut_")[0]
    anywhere = function in tests[IMPORTED][1] or mutant == "none"
    seconds = {test: cost for test, (cost, reached) in tests.items() if anywhere or function in reached}
    given: defaultdict[str, float] = defaultdict(float)
    turns = []
    for test in sorted(seconds.keys() - {IMPORTED}, key=lambda test: (seconds[test], test)):
        given[test.partition("[")[0]] += seconds[test]
        turns.append((given[test.partition("[")[0]], test))
    order = [test for _, test in sorted(turns)]
    spent = accumulate(seconds[test] for test in order)
    return [test for test, total in zip(order, spent, strict=True) if total <= budget]


class Fork:
    """A process that says what became of its work, and nothing else."""

    def __init__(self, work: Callable[[], str], patience: float = 0) -> None:
        self.patience = patience
        self.begun = time.monotonic()
        self.ear, mouth = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
            try:
                with os.fdopen(mouth, "w", encoding="utf-8") as said:
                    said.write(work())
            finally:
                os._exit(0)
        os.close(mouth)

    def heard(self) -> str:
        """What it said at its end; nothing if it was killed."""
        with os.fdopen(self.ear, encoding="utf-8") as ear:
            said = ear.read()
        os.waitpid(self.pid, 0)
        return said


def judge(spark: Any, names: list[str], tests: Reached, budget: float, jobs: int) -> list[str]:
    """Runs each; prints what became of it, and of all."""
    begun = time.monotonic()
    survivors: list[str] = []
    waiting, running = names[::-1], dict[Fork, str]()
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop()
            chosen = chosen_tests(name, tests, budget)
            running[Fork(partial(outcome, spark, name, chosen), 60 + 4 * budget)] = name
        heard = select.select([fork.ear for fork in running], [], [], 1)[0]
        for fork, name in list(running.items()):
            fork.patience -= not heard
            if fork.patience < 0:
                os.kill(fork.pid, signal.SIGKILL)
            if fork.ear in heard or fork.patience < 0:
                del running[fork]
                said = fork.heard() or "killed: it never ended, or ended the process"
                assert not spark.sparkContext._jsc.sc().isStopped(), "a test failed because Spark is gone"
                survivors += [name] if said.startswith("survived") else []
                print(f"{time.monotonic() - fork.begun:5.0f} s  {name}  {said}", flush=True)
    killed = len(names) - len(survivors)
    print(f"{killed} of {len(names)} killed ({killed / len(names):.1%}), {time.monotonic() - begun:.0f} s")
    return survivors


def outcome(spark: Any, name: str, tests: list[str]) -> str:
    """In the fork: wakes the mutant and runs the tests."""
    trampoline.set_mutant_under_test(name)
    adopt(spark)
    plugin = Chosen(tests)
    files = sorted({test.partition("::")[0] for test in tests})
    code = pytest.main(["-x", *files], plugins=[plugin]) if files else pytest.ExitCode.OK
    gc.collect()
    while spark.sparkContext._gateway._gateway_client.finalizer_deque:  # what the tests leave in the JVM
        time.sleep(0.1)
    if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return f"survived {len(tests)} tests"
    return f"killed by {plugin.failed or 'the collection of tests'}"


def adopt(spark: Any) -> None:
    """In the fork: a connection, a session that outlives the tests, and a thread that tells the JVM what is garbage."""
    from pyspark.sql import SparkSession
    from tests.runs.forks import own_connection

    spark.parents = own_connection(spark)
    gateway = spark.sparkContext._gateway
    gateway._gateway_client.finalizer_deque = gateway._create_finalizer_worker()
    session = spark.newSession()
    SparkSession._instantiatedSession = session
    spark._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
    SparkSession.stop = lambda self: None  # type: ignore[method-assign]  # in this fork only


if __name__ == "__main__":
    sys.exit(main())
