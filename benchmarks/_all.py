"""Runs all benchmarks, each in a process of its own, and says at the end how they went.

python benchmarks/_all.py [--long] [OPTIONS OF THE BENCHMARKS]
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ORDER = (
    "pipeline",
    "aggregates",
    "nested",
    "outputs",
    "joins",
    "columns",
    "rules",
    "operations",
    "language",
    "append",
    "close",
    "tpch",
    "start",
    "scenarios",
    "validate",
)
LONG_ONLY = ("database", "periods", "memory")


def main() -> int:
    arguments = sys.argv[1:]
    names = [*ORDER, *(LONG_ONLY if "--long" in arguments else ())]
    begun = time.perf_counter()
    failed = [name for name in names if subprocess.call([sys.executable, HERE / f"{name}.py", *arguments]) != 0]
    print(f"\n{len(names)} benchmarks in {(time.perf_counter() - begun) / 60:.1f} minutes", end="")
    print(f"; failed: {', '.join(failed)}" if failed else "; `make bench-report` writes docs/performance.md")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
