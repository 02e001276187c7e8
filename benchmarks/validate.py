"""How long does `tallybook validate` take from the shell, on 200 operations over a dataset of 100 columns?

Every round is a new process, as a user or an editor would start it. The bar is one second.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from _kit import judge, options, suite

BAR_MS = 1000.0
COLUMNS = 100


def main() -> None:
    given = options(__doc__, counts=[200], rounds=7)
    with suite("validate", __doc__, given, session=False) as running:
        for operations in given.counts:
            folder = running.new_folder("workspace")
            write_workspace(folder, operations, COLUMNS)
            measured = [measure(folder) for _ in range(given.rounds)]
            wall, processor = zip(*measured, strict=True)
            result = {
                "operations": operations,
                "columns": COLUMNS,
                "engine_ms": statistics.median(wall) * 1000,
                "slowest_ms": max(wall) * 1000,
                "processor_ms": statistics.median(processor) * 1000,
            }
            judge(result, "engine_ms", BAR_MS)
            running.add(result)


def measure(workspace: Path) -> tuple[float, float]:
    """Returns wall and processor seconds of one validation in a process of its own."""
    command = Path(sys.executable).with_name("tallybook")
    before = os.times()
    start = time.perf_counter()
    subprocess.run([command, "validate", "--workspace", workspace], check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


def write_workspace(folder: Path, operations: int, columns: int) -> None:
    """A workspace with one project, valid in every part."""
    types = ("string", "integer", "decimal(18,2)", "date", "boolean")
    listed = "\n".join(f"      - {{name: c{i}, type: '{types[i % 5]}'}}" for i in range(columns))
    (folder / "tallybook.yaml").write_text("name: benchmark\n")
    (folder / "dataset.yaml").write_text(
        "dataset:\n  id: wide\n  name: Wide\n  main_table:\n    name: wide\n    temporal_mode: period\n"
        f"    columns:\n{listed}\n"
    )
    (folder / "places.yaml").write_text(
        "datasource: {id: files, type: parquet, options: {path_prefix: data}}\n---\n"
        "resolver:\n  id: files\n  is_default: true\n  rules:\n    - name: monthly\n      data_level: month\n"
        "      strategy: {type: path, datasource_id: files, path: 'wide/{{YYYY}}-{{MM}}'}\n"
    )
    (folder / "project.yaml").write_text(
        "project:\n  id: big\n  name: Big\n  input_dataset_id: wide\n"
        '  selectors:\n    large: c2 > 1000 AND c0 <> "none"\n  operations:\n'
        + "".join(operation_text(seq, columns) for seq in range(1, operations + 1))
    )


def operation_text(seq: int, columns: int) -> str:
    """An operation such as people write: mostly updates with a few assignments, now and then another kind."""
    head = f"    - seq: {seq}\n      name: Step {seq}\n"
    if seq % 20 == 0:
        return head + (
            f"      type: output\n      selector: '{{{{large}}}}'\n      arguments:\n"
            f"        destination: {{location: 'out/{seq}.parquet'}}\n"
        )
    if seq % 10 == 0:
        return head + (
            "      type: aggregate\n      arguments:\n        group_by: [wide.c0, wide.c5]\n        aggregations:\n"
            f"          - {{column: total_{seq}, expression: 'SUM(c2 * 2) / COUNT(*)'}}\n"
        )
    lines = "".join(
        f"          - {{column: {name}, expression: '{text}'}}\n" for name, text in assignments(seq, columns)
    )
    return head + (
        f"      type: update\n      selector: '{{{{large}}}} AND c1 >= {seq}'\n      arguments:\n"
        f"        assignments:\n{lines}"
    )


def assignments(seq: int, columns: int) -> Iterator[tuple[str, str]]:
    number, text = 2 + 5 * (seq % (columns // 5)), 5 * (seq % (columns // 5))
    yield f"c{number}", f'IF(c{text} IN ("a", "b", "c"), ROUND(c{number} * 1.075, 2), c{number} - {seq})'
    yield f"new_{seq}", f'CONCAT(UPPER(c{text}), "-", TO_STRING(YEAR(c3)))'
    yield "_labels", f'CONCAT(_labels, "{{step:{seq}}}")'


if __name__ == "__main__":
    main()
