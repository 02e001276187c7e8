"""The machine, the versions and the commit of a measurement."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("pyspark", "duckdb", "polars")


def describe_machine() -> dict[str, Any]:
    """Returns what a reader needs to judge a time: when, on which commit, machine and versions."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": _commit(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory_gib()} GiB, {platform.system()}",
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        "load": round(os.getloadavg()[0], 2),
    }


def _commit() -> str:
    """Returns the commit, with a plus if files differ from it."""
    try:
        commit = _git("rev-parse", "--short=10", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--", "src", "benchmarks", "examples") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gib() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
