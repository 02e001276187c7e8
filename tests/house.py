"""Counts how far a run travels through the code before it reads a row, and how often code asks what class a thing is.

    python tests/house.py            a table
    python tests/house.py --json     the same as JSON

The path is measured, not guessed: a run of examples/orders is traced until Spark opens the first file. Functions count
when they are entered for the first time, so loops and repeated helpers do not; bodies of classes and modules do not
count. Reading and checking the files, making a
new store and starting Spark are paths of their own and do not count.
"""

from __future__ import annotations

import ast
import inspect
import json
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "tallybook"
READERS = ("readwriter.py",)
"""The PySpark modules whose `load`, `csv`, `parquet` … open files."""
CHECKING = {"load_definitions", "check", "bind_project"}
"""Functions of `project` that read and check the files."""


@dataclass(frozen=True)
class Counts:
    """What the table shows."""

    modules_before_the_first_row: int
    package_changes_before_the_first_row: int
    class_tests_on_steps: int
    branches_on_formats: int
    modules: int
    modules_of_at_most_60_lines: int


def path_of_a_run() -> list[str]:
    """The modules of the functions a run enters before Spark opens a file, each function once, in order."""
    from tallybook import Workspace

    entered: list[str] = []
    seen: set[tuple[str, int]] = set()
    opened = False
    checking: FrameType | None = None

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal opened, checking
        if event == "return" and frame is checking:
            checking = None
        code = frame.f_code
        if event != "call" or opened or checking is not None or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        path, key = Path(code.co_filename), (code.co_filename, code.co_firstlineno)
        if path.name in READERS and code.co_name in ("load", "csv", "parquet", "json", "orc", "text"):
            opened = True
        elif code.co_name in CHECKING and path.is_relative_to(PACKAGE / "project"):
            checking = frame
        elif path.is_relative_to(PACKAGE) and key not in seen:
            seen.add(key)
            entered.append(".".join(path.relative_to(PACKAGE).with_suffix("").parts))

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "orders"
        shutil.copytree(ROOT / "examples" / "orders", copy, ignore=shutil.ignore_patterns(".tallybook"))
        workspace = Workspace.open(copy)
        assert not workspace.checked.problems
        workspace.store().close()
        workspace.session.range(1).count()
        threading.setprofile(watch)  # files are opened by threads
        sys.setprofile(watch)
        try:
            workspace.run("order-close", "2026-01")
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # as documented
        workspace.session.stop()
    return entered


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8"))


def class_tests_on_steps() -> int:
    """`isinstance(…, …Step)` outside `operations/`."""
    return sum(
        1
        for name, tree in trees()
        if not name.startswith("operations/")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "isinstance"
        and any(isinstance(each, ast.Name) and each.id.endswith("Step") for each in ast.walk(node.args[1]))
    )


def branches_on_formats() -> int:
    """Choices by the name of a format or the class of a datasource, as the architecture test finds them."""
    import test_architecture  # next to this script

    return sum(1 for module in test_architecture.MODULES for _ in test_architecture.branches_on_formats(module))


def counts() -> Counts:
    path = path_of_a_run()
    packages = [module.partition(".")[0] for module in path]
    sizes = [len(file.read_text(encoding="utf-8").splitlines()) for file in PACKAGE.rglob("*.py")]
    return Counts(
        modules_before_the_first_row=len(set(path)),
        package_changes_before_the_first_row=sum(a != b for a, b in pairwise(packages)),
        class_tests_on_steps=class_tests_on_steps(),
        branches_on_formats=branches_on_formats(),
        modules=len(sizes),
        modules_of_at_most_60_lines=sum(size <= 60 for size in sizes),
    )


if __name__ == "__main__":
    numbers = asdict(counts())
    if "--json" in sys.argv:
        print(json.dumps(numbers))
    else:
        for what, number in numbers.items():
            print(f"{number:>6}  {what.replace('_', ' ')}")
