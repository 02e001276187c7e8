"""How long does a scenario of ten rows take in a warm session, and how long does the session take to start?

    python benchmarks/scenarios.py [--scenarios N] [--threads N] [--json]

Scenarios of the annotated example, all in YAML, different rows in each. The bar is half a second for the median, one at
a time, on two idle cores. A round before is not counted: the first scenarios of a suite warm the JVM up.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from _timing import report

from tallybook.engine.local import LocalEngine
from tallybook.project.check import check
from tallybook.project.load import load_definitions
from tallybook.scenarios.check import read_cases
from tallybook.scenarios.load import Case
from tallybook.scenarios.suite import judge_all, start_engine

BAR_SECONDS = 0.5
EXAMPLE = Path(__file__).parent.parent / "examples" / "orders"
WARMUPS = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, default=100)
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true", help="print JSON only")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        cases = made(Path(folder) / "orders", given.scenarios, given.rows)
        read = time.perf_counter() - begun
        begun = time.perf_counter()
        engine = start_engine(None)
        start = time.perf_counter() - begun
        first = run(cases[:1], engine, 1)
        run(cases[:WARMUPS], engine, 1)
        alone = run(cases, engine, 1)
        together = run(cases, engine, given.threads)
    median = statistics.median(alone[1])
    rows = [
        {"what": "read and check all", "seconds": read},
        {"what": "session start", "seconds": start},
        {"what": "first scenario", "seconds": first[0]},
        {"what": "one of them, median", "seconds": median},
        {"what": "one of them, slowest", "seconds": max(alone[1])},
        {"what": f"all {given.scenarios}, one at a time", "seconds": alone[0]},
        {"what": f"all {given.scenarios}, {given.threads} at a time", "seconds": together[0]},
    ]
    report(f"{given.scenarios} scenarios of {given.rows} rows; the bar is {BAR_SECONDS} s a scenario", rows, given.json)
    return 0 if median <= BAR_SECONDS else 1


def run(cases: list[Case], engine: LocalEngine, threads: int) -> tuple[float, list[float]]:
    """Seconds for all, and for each."""
    begun = time.perf_counter()
    outcomes = list(judge_all(cases, engine, threads))
    wrong = [outcome for outcome in outcomes if outcome.status != "passed"]
    assert not wrong, wrong[0]
    return time.perf_counter() - begun, [outcome.seconds for outcome in outcomes]


def made(folder: Path, scenarios: int, rows: int) -> list[Case]:
    """The example with other scenarios: customers of two tiers, amounts of every size."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("scenarios", "warehouse", ".tallybook"))
    (folder / "scenarios").mkdir()
    texts = [scenario(number, rows) for number in range(scenarios)]
    (folder / "scenarios" / "many.yaml").write_text("---\n".join(texts), encoding="utf-8")
    return read_cases(check(load_definitions(folder)))


def scenario(number: int, rows: int) -> str:
    each = {"region": "EMEA", "status": "active"}
    orders = [{"order_id": f"O{i}", "customer_id": f"C{i % 3}", "amount": number + i + 1, **each} for i in range(rows)]
    customers = [{"id": f"C{i}", "tier": "gold" if i == 0 else "silver"} for i in range(3)]
    expected = [
        {"order_id": order["order_id"], "discounted_price": price(number + i + 1, i % 3 == 0)}
        for i, order in enumerate(orders)
    ]
    body = {
        "name": f"Scenario {number}",
        "project": "order-close",
        "period": "2026-01",
        "data": {
            "sales-orders": {"orders": orders},
            "d5e6f7g8-0000-0000-0000-000000000010": {"customers": customers},
        },
        "expect": {"rows": expected, "working": {"row_count": rows + 1}},
    }
    return json.dumps({"scenario": body}, indent=1) + "\n"


def price(amount: int, gold: bool) -> float:
    return amount * 9 / 10 if gold else amount


if __name__ == "__main__":
    sys.exit(main())
