"""Timing two ways of doing the same thing in one process, turn about: only their ratio means anything."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def timed(work: Callable[[], object]) -> float:
    """Seconds it takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def alternate(ways: Mapping[str, Callable[[], object]], rounds: int, warmups: int = 1) -> dict[str, list[float]]:
    """The seconds of each way, measured in turns after a few that do not count."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(warmups + rounds):
        for name, work in ways.items():
            seconds = timed(work)
            if number >= warmups:
                taken[name].append(seconds)
    return taken


def median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds)


def report(title: str, rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """A table for people, or JSON for programs."""
    if as_json:
        print(json.dumps({"benchmark": title, "results": list(rows)}, indent=2))
        return
    print(title)
    header = list(rows[0])
    cells = [
        [f"{row[name]:.3f}" if isinstance(row[name], float) else str(row[name]) for name in header] for row in rows
    ]
    widths = [max(len(line[i]) for line in (header, *cells)) for i in range(len(header))]
    for line in (header, *cells):
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
