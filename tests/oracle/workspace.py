"""A case as the files of a workspace, for the checker that reads files."""

from __future__ import annotations

from pathlib import Path

from ruamel.yaml import YAML

from tallybook.project.check import check
from tallybook.project.load import load_definitions

from .case import Case

PLACES = """
datasource: {id: files, type: parquet, options: {path_prefix: data}}
---
resolver:
  id: by-name
  is_default: true
  rules: [{name: all, data_level: any, strategy: {type: path, datasource_id: files, path: "{{table_name}}"}}]
"""


def write_workspace(case: Case, folder: Path) -> None:
    yaml = YAML(typ="safe")
    yaml.allow_unicode = True
    (folder / "tallybook.yaml").write_text("name: oracle\n", encoding="utf-8")
    (folder / "places.yaml").write_text(PLACES, encoding="utf-8")
    yaml.dump({"project": case.project}, folder / "project.yaml")
    with (folder / "datasets.yaml").open("w", encoding="utf-8") as file:
        yaml.dump_all([{"dataset": body} for body in case.datasets], file)


def checked(case: Case, folder: Path) -> list[str]:
    """The types of all problems the checker finds."""
    write_workspace(case, folder)
    return [problem.type for problem in check(load_definitions(folder)).problems]
