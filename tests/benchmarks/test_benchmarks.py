"""The benchmarks run, and notice when their rivals write other rows. How fast they are is not tested."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))
WITHOUT_SESSION = ("report", "scenarios", "start", "validate")
IN_SESSION = [name for name in NAMES if name not in WITHOUT_SESSION]
"""These use the session of the tests."""
COUNTS = {"columns": "20"}


def run_benchmark(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")


@pytest.mark.long
@pytest.mark.parametrize("name", IN_SESSION)
def test_a_benchmark_runs_and_its_ways_agree(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results.json"
    size = ["--rows", "200", "--counts", COUNTS.get(name, "2"), "--rounds", "1"]
    run_benchmark(name, monkeypatch, *size, "--cache", str(tmp_path / "data"), "--json", str(results))
    document = json.loads(results.read_text(encoding="utf-8"))
    assert document["benchmark"] == name
    assert document["results"] and all(result["engine_ms"] > 0 for result in document["results"])


@pytest.mark.long
@pytest.mark.parametrize("name", ["scenarios", "start", "validate"])
def test_a_benchmark_that_starts_its_own_processes_runs(name: str, tmp_path: Path) -> None:
    """`--rows 1` is one scenario of each example."""
    results = tmp_path / "results.json"
    size = ["--rows", "1", "--counts", "20", "--rounds", "1"]
    command = [sys.executable, FOLDER / f"{name}.py", *size, "--json", results]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert all(result["engine_ms"] > 0 for result in json.loads(results.read_text(encoding="utf-8"))["results"])


def test_every_benchmark_has_a_target_and_a_place_in_make_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = ["bench", "bench-long", *(f"bench-{name}" for name in NAMES)]
    command = ["make", "--dry-run", "--old-file", ".venv/.installed", *targets]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "benchmarks/_all.py" in listed and "benchmarks/_all.py --long" in listed
    assert [name for name in NAMES if f"benchmarks/{name}.py" not in listed] == []
    order = runpy.run_path(str(FOLDER / "_all.py"))
    assert sorted([*order["ORDER"], *order["LONG_ONLY"], "report"]) == NAMES


def write_rows(path: Path, query: str) -> Path:
    import duckdb

    path.mkdir()
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({query}) TO '{path / 'rows.parquet'}' (FORMAT parquet)")
    return path


ROWS = "SELECT * FROM (VALUES (1::BIGINT, 'a', 1.50::DECIMAL(9,2), 'x'), (2, NULL, 2.50, 'y')) AS t(n, s, d, _row_id)"


@pytest.mark.parametrize(
    ("query", "agrees"),
    [
        (f"{ROWS} ORDER BY n DESC", True),
        (f"SELECT n, s, d::DECIMAL(12,4) AS d, 'other' AS _row_id FROM ({ROWS})", True),
        (f"{ROWS} LIMIT 1", False),
        (f"{ROWS} UNION ALL FROM ({ROWS})", False),
        (f"SELECT n, coalesce(s, '') AS s, d, _row_id FROM ({ROWS})", False),
        (f"SELECT n, s, d + 0.01 AS d, _row_id FROM ({ROWS})", False),
        (f"SELECT n, s, d::DOUBLE AS d, _row_id FROM ({ROWS})", False),
        (f"SELECT n, d, s, _row_id FROM ({ROWS})", False),
        (f"SELECT n, s, d FROM ({ROWS})", False),
    ],
    ids=["order", "digits and ids", "row less", "rows twice", "null", "value", "binary fraction", "columns", "no ids"],
)
def test_rows_are_compared_exactly(query: str, agrees: bool, tmp_path: Path) -> None:
    agree = runpy.run_path(str(FOLDER / "_agree.py"))
    outputs = {"engine": [write_rows(tmp_path / "a", ROWS)], "rival": [write_rows(tmp_path / "b", query)]}
    if agrees:
        agree["check_same_rows"](outputs)
        return
    with pytest.raises(agree["DisagreementError"]):
        agree["check_same_rows"](outputs)


def test_the_report_fills_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"benchmark": "joins", "question": "Why?", "date": "2026-01-31", "commit": "abc", "machine": "a box"}
    results = [{"rows": 1000, "engine_ms": 12.5, "ratio": 0.5, "turns_ms": {"engine": [12.5]}}]
    document = facts | {"versions": {"python": "3.11"}, "results": results}
    (tmp_path / "joins.json").write_text(json.dumps(document), encoding="utf-8")
    page = tmp_path / "page.md"
    sections = "### joins\n\nold\n\n### close\n\nWhen?\n\n| lines |\n|---:|\n| 5 |\n"
    page.write_text(f"before\n<!-- results -->\n\n{sections}\n<!-- end -->\nafter\n", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(SystemExit) as end:
            run_benchmark("report", monkeypatch, "--results", str(tmp_path), "--page", str(page))
        assert end.value.code == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith(
        "before\n<!-- results -->\n\n### joins\n\nWhy?\n\n2026-01-31, commit `abc`, a box; python 3.11."
    )
    assert "| rows | engine_ms | ratio |\n|---:|---:|---:|\n| 1 000 | 12.5 | 0.50 |" in text
    assert text.endswith("\n\n### close\n\nWhen?\n\n| lines |\n|---:|\n| 5 |\n\n<!-- end -->\nafter\n")
    assert "old" not in text
