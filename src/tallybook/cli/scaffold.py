"""The files `tallybook init` writes."""

from __future__ import annotations

import json
from pathlib import Path

from tallybook.documents.schema import yaml_schema
from tallybook.errors import UsageError
from tallybook.project.load import find_root
from tallybook.project.schema import settings_schema

_SCHEMA, _SETTINGS_SCHEMA = "schema/tallybook.schema.json", "schema/settings.schema.json"
_FOLDERS = ("datasets", "locations", "projects", "scenarios")

_SETTINGS = """\
# The settings of this workspace. Everything but the name has a default.
name: {name}
"""

_DATASETS = """\
# The columns of a sale. The resolver in locations/files.yaml finds the file of a month.
dataset:
  id: sales
  name: Sales
  resolver_id: monthly-files
  natural_key_columns: [sale_id]
  main_table:
    name: sales
    temporal_mode: period          # a run for 2026-01 sees the sales of 2026-01 and no others
    columns:
      - {name: sale_id, type: string, nullable: false}
      - {name: region, type: string}
      - {name: amount, type: "decimal(18,2)"}
      - {name: sold_on, type: date}
"""

_LOCATIONS = """\
# How to reach the files.
datasource:
  id: files
  type: csv
  options:
    path_prefix: data
---
# Finds the file of a month: data/sales/2026-01.csv. A run for a quarter reads its three months.
resolver:
  id: monthly-files
  rules:
    - name: one file a month
      data_level: month
      strategy:
        type: path
        datasource_id: files
        path: "{{table_name}}/{{YYYY}}-{{MM}}.csv"
"""

_PROJECT = """\
# The recipe. `tallybook validate` checks it, `tallybook run sales-close --period 2026-01` runs it.
project:
  id: sales-close
  name: Close the sales of a month
  input_dataset_id: sales

  # A name for a condition. Any selector below can use it as {{counted}}.
  selectors:
    counted: amount IS NOT NULL AND amount <> 0

  operations:
    - seq: 10
      name: Charge commission
      type: update
      selector: "{{counted}}"
      arguments:
        assignments:
          - column: commission
            expression: ROUND(amount * IF(region = "EMEA", 0.10, 0.08), 2)

    - seq: 20
      name: Remove what does not count
      type: delete
      selector: NOT {{counted}}

    - seq: 30
      name: Totals by region
      type: aggregate
      arguments:
        group_by: [_period, region]
        aggregations:
          - {column: total_amount, expression: SUM(amount)}
          - {column: total_commission, expression: SUM(commission)}

    - seq: 40
      name: Write the totals
      type: output
      selector: total_amount IS NOT NULL
      arguments:
        destination:
          location: "out/totals-{{period}}.csv"
        columns: [_period, region, total_amount, total_commission]
"""

_SCENARIO = """\
# An example that is also a test: `tallybook test` runs it and shows every cell that differs.
scenario:
  name: EMEA pays ten percent commission, the others eight
  project: sales-close
  period: 2026-01
  data:
    sales:
      sales:
        - {sale_id: S1, region: EMEA, amount: 100, sold_on: 2026-01-05}
        - {sale_id: S2, region: AMER, amount: 50, sold_on: 2026-01-06}
        - {sale_id: S3, region: AMER, amount: 0, sold_on: 2026-01-07}
  expect:
    rows:
      - {_period: 2026-01, region: EMEA, total_amount: 100, total_commission: 10}
      - {_period: 2026-01, region: AMER, total_amount: 50, total_commission: 4}
"""

_DATA = """\
sale_id,region,amount,sold_on
S-1,EMEA,1250.00,2026-01-05
S-2,AMER,480.50,2026-01-07
S-3,EMEA,99.90,2026-01-12
S-4,APAC,0.00,2026-01-15
S-5,,310.00,2026-01-21
S-6,AMER,,2026-01-30
"""

_IGNORE = """\
# The files that Tallybook keeps for itself, and the outputs.
.tallybook/
out/
"""


def make_workspace(folder: Path) -> list[str]:
    """Writes the files and returns their names. Writes nothing if one of them exists."""
    files = _files(folder.absolute().name)
    _refuse_inside(folder)
    existing = [name for name in files if (folder / name).exists()]
    if existing:
        raise UsageError(
            f"nothing was created: '{folder}' already contains {', '.join(existing)}", "choose another folder"
        )
    for name, text in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(f"'{path}' cannot be created: {error.strerror}") from None
    return list(files)


def _refuse_inside(folder: Path) -> None:
    """Refuses a folder inside another workspace: that one would read the new files as its own."""
    try:
        outer = find_root(folder.absolute().parent)
    except UsageError:
        return
    raise UsageError(f"'{folder}' is inside the workspace '{outer}'", "choose a folder outside it")


def _files(name: str) -> dict[str, str]:
    return {
        "tallybook.yaml": _bound(_SETTINGS.format(name=json.dumps(name or "workspace")), _SETTINGS_SCHEMA),
        "datasets/sales.yaml": _bound(_DATASETS, f"../{_SCHEMA}"),
        "locations/files.yaml": _bound(_LOCATIONS, f"../{_SCHEMA}"),
        "projects/sales-close.yaml": _bound(_PROJECT, f"../{_SCHEMA}"),
        "scenarios/commission.yaml": _bound(_SCENARIO, f"../{_SCHEMA}"),
        "data/sales/2026-01.csv": _DATA,
        ".gitignore": _IGNORE,
        ".vscode/settings.json": _json({"yaml.schemas": _bindings()}),
        _SCHEMA: _json(yaml_schema()),
        _SETTINGS_SCHEMA: _json(settings_schema()),
    }


def _bindings() -> dict[str, list[str]]:
    return {_SCHEMA: [f"{folder}/**/*.yaml" for folder in _FOLDERS], _SETTINGS_SCHEMA: ["tallybook.yaml"]}


def _bound(text: str, schema: str) -> str:
    """Returns the text of a YAML file with a first line that names its schema for editors."""
    return f"# yaml-language-server: $schema={schema}\n{text}"


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
