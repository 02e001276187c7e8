"""How long does a run of 12 rows take from the shell, cold and with a warm session?

Every turn is a new process. Cold: `tallybook run`, beside a bare Spark session that reads the same 12 rows and answers
one query. Warm: the same command while `tallybook session start` keeps a session.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from _kit import ENGINE, SPARK, Case, Suite, Way, judge, options, suite

from tallybook.engine.java import find_java

COLD_BAR, WARM_BAR = 1.5, 0.2
ROWS = 12
TALLYBOOK = Path(sys.executable).with_name("tallybook")
BARE = """
import sys
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[*]").getOrCreate()
rows = spark.read.schema("id string, region string, amount decimal(18,2)").csv(sys.argv[1], header=True)
print(rows.groupBy("region").agg(F.sum("amount")).collect())
"""
DEFINITIONS = """
datasource: {id: data, type: csv, options: {path_prefix: data}}
---
resolver:
  id: all
  is_default: true
  rules: [{name: all, data_level: any, strategy: {type: path, datasource_id: data, path: "{{table_name}}.csv"}}]
---
dataset:
  id: sales
  name: Sales
  main_table:
    name: sales
    columns: [{name: id, type: string}, {name: region, type: string}, {name: amount, type: "decimal(18,2)"}]
---
project:
  id: totals
  name: Totals
  input_dataset_id: sales
  operations:
    - seq: 1
      name: By region
      type: aggregate
      arguments: {group_by: [region], aggregations: [{column: total, expression: SUM(amount)}]}
    - seq: 2
      name: Write
      type: output
      selector: total IS NOT NULL
      arguments: {destination: {location: out/totals.csv}, columns: [region, total]}
"""


def workspace(folder: Path) -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "tallybook.yaml").write_text("name: start\n", encoding="utf-8")
    (folder / "all.yaml").write_text(DEFINITIONS, encoding="utf-8")
    rows = [f"{number},{('EMEA', 'APAC')[number % 2]},{number}.50" for number in range(ROWS)]
    (folder / "data" / "sales.csv").write_text("\n".join(["id,region,amount", *rows, ""]), encoding="utf-8")
    return folder


def shell(*command: object) -> subprocess.CompletedProcess[str]:
    """Runs a command with the Java that Tallybook would find, so that the bare session has the same."""
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | {"JAVA_HOME": str(find_java())},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done


def has_sessions() -> bool:
    done = subprocess.run([TALLYBOOK, "session", "--help"], capture_output=True, check=False)
    return done.returncode == 0


def run(folder: Path) -> None:
    shell(TALLYBOOK, "run", "totals", "--period", "2026-01", "--workspace", folder)


def warm(running: Suite, folder: Path, cold_ms: float) -> None:
    session: Sequence[object] = ("--workspace", folder)
    shell(TALLYBOOK, "session", "start", *session)
    try:
        result = running.measure(Case({"session": "warm", "rows": ROWS}, {ENGINE: Way(lambda: run(folder))}))
    finally:
        shell(TALLYBOOK, "session", "stop", *session)
    result["to_cold"] = round(result["engine_ms"] / cold_ms, 3)
    judge(result, "to_cold", WARM_BAR)


def main() -> None:
    given = options(__doc__)
    with suite("start", __doc__, given, session=False) as running:
        folder = workspace(running.folder / "workspace")
        bare = ("-c", BARE, folder / "data" / "sales.csv")
        ways = {
            ENGINE: Way(lambda: run(folder)),
            SPARK: Way(lambda: shell(sys.executable, *bare)),
        }
        cold = running.measure(Case({"session": "cold", "rows": ROWS}, ways, COLD_BAR))
        if not has_sessions():
            print("start: warm sessions are not measured: there is no command `tallybook session`", file=sys.stderr)
        elif ENGINE + "_ms" in cold:
            warm(running, folder, cold["engine_ms"])


if __name__ == "__main__":
    main()
