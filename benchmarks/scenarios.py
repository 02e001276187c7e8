"""How long does a scenario of the examples take in a warm session?

All scenarios of examples/month_close and examples/orders, one at a time, in the session that `tallybook test` starts.
The first round does not count. `suite_ms` is the time of all of them as `tallybook test` runs them, several at a time.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

from _kit import ROOT, judge, options, suite, timed

from tallybook.engine.local import LocalEngine
from tallybook.scenarios.load import Case
from tallybook.scenarios.suite import judge_all, start_engine
from tallybook.workspace import Workspace

BAR_MS = 500.0
EXAMPLES = ("month_close", "orders")


def seconds_of_each(cases: list[Case], engine: LocalEngine) -> list[float]:
    """Runs scenarios one at a time. All must pass."""
    outcomes = list(judge_all(cases, engine, 1))
    wrong = [outcome.case.name for outcome in outcomes if outcome.status != "passed"]
    if wrong:
        raise SystemExit(f"scenarios that do not pass: {', '.join(wrong)}")
    return [outcome.seconds for outcome in outcomes]


def measure(example: Path, engine: LocalEngine, rounds: int, limit: int | None) -> dict[str, Any]:
    opened = Workspace.open(example)
    cases = opened.scenarios()[:limit]
    first = seconds_of_each(cases, engine)
    each = [second for _ in range(rounds) for second in seconds_of_each(cases, engine)]
    together = statistics.median(timed(lambda: list(opened.test(cases))) for _ in range(rounds))
    result = {
        "example": example.name,
        "scenarios": len(cases),
        "first_round_ms": statistics.median(first) * 1000,
        "engine_ms": statistics.median(each) * 1000,
        "slowest_ms": max(each) * 1000,
        "suite_ms": together * 1000,
    }
    judge(result, "engine_ms", BAR_MS)
    return result


def main() -> None:
    given = options(__doc__, rounds=1)
    limit = given.rows[0] if given.rows else None
    with suite("scenarios", __doc__, given, session=False) as running:
        engine = start_engine(None)
        for name in EXAMPLES:
            print(f"scenarios: {name} …", file=sys.stderr, flush=True)
            running.add(measure(ROOT / "examples" / name, engine, given.rounds, limit))


if __name__ == "__main__":
    main()
