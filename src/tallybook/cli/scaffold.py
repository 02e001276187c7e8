"""The files `tallybook init` writes."""

from __future__ import annotations

import json
from pathlib import Path

from tallybook.documents.schema import yaml_schema
from tallybook.errors import UsageError
from tallybook.project.load import find_root
from tallybook.project.schema import settings_schema

_SCHEMA, _SETTINGS_SCHEMA = "schema/tallybook.schema.json", "schema/settings.schema.json"
_KINDS = ("datasets", "places", "projects", "scenarios")

_SETTINGS = """\
# The settings of this workspace. Everything but the name has a default.
name: {name}
"""

_DATASETS = """\
# What the rows look like. Where the rows of a month lie is the resolver's business.
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

_PLACES = """\
# How to reach the files.
datasource:
  id: files
  type: csv
  options:
    path_prefix: data
---
# Where the sales of a month lie: data/sales/2026-01.csv. A quarter reads its three months.
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

  # Named once, used as {{counted}} in any selector below.
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
# What Tallybook keeps for itself, and what it wrote.
.tallybook/
out/
"""


def make_workspace(folder: Path) -> list[str]:
    """Writes every file, or none: one that exists already is a reason to stop."""
    files = _files(folder.absolute().name)
    _refuse_inside(folder)
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise UsageError(
            f"nothing was made: there is already {', '.join(there)} in '{folder}'", "choose another folder"
        )
    for name, text in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(f"'{path}' cannot be made: {error.strerror}") from None
    return list(files)


def _refuse_inside(folder: Path) -> None:
    """The files of a workspace inside another would belong to neither for sure."""
    try:
        outer = find_root(folder.absolute().parent)
    except UsageError:
        return
    raise UsageError(f"'{folder}' lies inside the workspace '{outer}'", "choose a folder outside it")


def _files(name: str) -> dict[str, str]:
    return {
        "tallybook.yaml": _bound(_SETTINGS.format(name=json.dumps(name or "workspace")), _SETTINGS_SCHEMA),
        "datasets/sales.yaml": _bound(_DATASETS, f"../{_SCHEMA}"),
        "places/files.yaml": _bound(_PLACES, f"../{_SCHEMA}"),
        "projects/sales-close.yaml": _bound(_PROJECT, f"../{_SCHEMA}"),
        "scenarios/commission.yaml": _bound(_SCENARIO, f"../{_SCHEMA}"),
        "data/sales/2026-01.csv": _DATA,
        ".gitignore": _IGNORE,
        ".vscode/settings.json": _json({"yaml.schemas": _bindings()}),
        _SCHEMA: _json(yaml_schema()),
        _SETTINGS_SCHEMA: _json(settings_schema()),
    }


def _bindings() -> dict[str, list[str]]:
    return {_SCHEMA: [f"{kind}/**/*.yaml" for kind in _KINDS], _SETTINGS_SCHEMA: ["tallybook.yaml"]}


def _bound(text: str, schema: str) -> str:
    """With the line that tells an editor which schema the file follows."""
    return f"# yaml-language-server: $schema={schema}\n{text}"


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
