"""A small workspace to put scenarios into."""

from __future__ import annotations

from pathlib import Path

from tallybook.project.check import check
from tallybook.project.load import load_definitions
from tallybook.scenarios.check import read_cases
from tallybook.scenarios.load import Case

WORKSPACE = {
    "tallybook.yaml": "name: sales\n",
    "places.yaml": """
datasource: {id: files, type: csv, options: {path_prefix: data}}
---
resolver:
  id: by-month
  is_default: true
  rules:
    - name: monthly
      data_level: month
      strategy: {type: path, datasource_id: files, path: '{{table_name}}/{{YYYY}}-{{MM}}.csv'}
""",
    "sales.yaml": """
dataset:
  id: sales
  name: Sales
  natural_key_columns: [id]
  main_table:
    name: sales
    temporal_mode: period
    columns:
      - {name: id, type: string, nullable: false}
      - {name: day, type: date}
      - {name: sold_at, type: timestamp}
      - {name: pieces, type: integer}
      - {name: amount, type: 'decimal(10,2)'}
      - {name: paid, type: boolean}
---
dataset:
  id: rates
  name: Rates
  main_table:
    name: rates
    temporal_mode: bitemporal
    columns:
      - {name: code, type: string}
      - {name: rate, type: 'decimal(8,4)'}
""",
    "project.yaml": """
project:
  id: close
  name: Close
  input_dataset_id: sales
  operations:
    - seq: 10
      name: Take tax off
      type: update
      selector: paid
      arguments:
        assignments:
          - {column: net, expression: 'ROUND(amount / 1.25, 2)'}
    - seq: 20
      name: Set free ones aside
      type: delete
      selector: amount = 0
    - seq: 30
      name: Write
      type: output
      arguments:
        destination: {datasource_id: files, table: out}
        columns: [id, amount, net]
    - seq: 40
      name: Total
      type: aggregate
      arguments:
        group_by: [paid]
        aggregations:
          - {column: amount, expression: SUM(amount)}
""",
}

HEAD = "scenario:\n  name: One\n  project: close\n  period: 2026-01\n"


def workspace(folder: Path, scenario: str = "", **files: str) -> Path:
    """Writes the workspace, its scenarios in one file."""
    for name, text in (WORKSPACE | {"scenarios/one.yaml": scenario} | files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text:
            path.write_text(text, encoding="utf-8")
    return folder


def cases(folder: Path, scenario: str = "", **files: str) -> list[Case]:
    """The scenarios of a workspace made of these texts."""
    return read_cases(check(load_definitions(workspace(folder, scenario, **files))))


def rows(*lines: str, expect: str = "  expect: {row_count: 0}\n", head: str = HEAD) -> str:
    """A scenario that gives rows of `sales`."""
    given = "".join(f"        - {{{line}}}\n" for line in lines)
    return f"{head}  data:\n    sales:\n      sales:{' []' if not lines else ''}\n{given}{expect}"
