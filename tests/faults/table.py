"""A pytest plugin that prints the fault table of docs/reliability.md; `make faults` loads it.

Every test with the marker `fault(name, outcome)` is one try. A test whose outcome depends on the moment of the fault
names it with `record_property("outcome", ...)`, after it has checked what the outcome says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

FAULTS = (
    "SIGKILL at a random moment of a run to Delta",
    "SIGKILL at a random moment of a run to plain files",
    "SIGKILL between commit and record",
    "SIGKILL at a chosen step of a run before its commit",
    "SIGKILL at a chosen step of a write",
    "SIGKILL of the command in the middle of a Spark job",
    "SIGSTOP for longer than the heartbeat allows, then SIGCONT",
    "an executor of a local cluster is killed",
    "the disk of a destination is full",
    "the one disk that holds everything is full",
    "a destination turns read-only",
    "an input file vanishes or changes between plan and read",
    "a truncated input file",
    "a corrupt input file",
    "the store is locked",
    "the store is gone",
    "the store is damaged",
    "the disk of the store is full",
    "two projects write one table at once",
)
"""The names that the marker may have, in the order of the table."""


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    for item in items:
        mark = item.get_closest_marker("fault")
        if mark is not None:
            name, outcome = mark.args
            if name not in FAULTS:
                raise pytest.UsageError(f"{item.nodeid}: the fault table has no fault '{name}'")
            item.user_properties += [("fault", name), ("outcome", outcome)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in table(tries(terminalreporter.stats)):
        terminalreporter.write_line(line)


def tries(stats: dict[str, list[object]]) -> Iterator[tuple[str, str]]:
    """The fault and outcome of every test that has ended."""
    for ending in ("passed", "failed", "error", "skipped"):
        for report in stats.get(ending, []):
            if isinstance(report, pytest.TestReport):
                properties = dict(report.user_properties)
                if "fault" in properties:
                    outcome = properties["outcome"] if ending == "passed" else f"**{ending}**"
                    yield str(properties["fault"]), str(outcome)


def table(tries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The lines of the table in Markdown; where the outcomes of a fault differ, each has its count."""
    outcomes: dict[str, Counter[str]] = {fault: Counter() for fault in FAULTS}
    for fault, outcome in tries:
        outcomes[fault][outcome] += 1
    yield from ("| fault | times tried | outcome |", "|---|---|---|")
    for fault, seen in outcomes.items():
        said = (outcome if len(seen) == 1 else f"{count} × {outcome}" for outcome, count in seen.most_common())
        yield f"| {fault} | {seen.total()} | {'<br>'.join(said)} |"
