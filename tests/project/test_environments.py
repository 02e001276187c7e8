"""Environments of `tallybook.yaml`: which settings and datasources they give, and what `validate` says about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallybook.cli.main import main
from tallybook.errors import Problem, UsageError
from tallybook.model.datasource import DatabaseSource, FileSource
from tallybook.model.settings import Settings
from tallybook.workspace import Workspace

DEFINITIONS = """\
datasource: {id: warehouse, type: delta, options: {path_prefix: warehouse}}
---
datasource: {id: files, type: csv, options: {path_prefix: data, delimiter: ";"}}
---
resolver:
  id: all
  is_default: true
  rules: [{name: all, strategy: {type: path, datasource_id: files, path: "{{table_name}}.csv"}}]
---
dataset: {id: sales, name: Sales, main_table: {name: sales, columns: [{name: amount, type: decimal}]}}
---
project:
  id: close
  name: Close
  input_dataset_id: sales
  operations:
    - seq: 1
      name: Ledger
      type: output
      arguments: {destination: {datasource_id: warehouse, table: ledger}, register_as_dataset: ledger}
"""
SETTINGS = """\
name: tiny
store: sqlite:///own.sqlite3
spark: {master: "local[1]", conf: {a: "1", b: "2"}}
environments:
"""


def workspace(folder: Path, environments: str) -> Path:
    (folder / "definitions.yaml").write_text(DEFINITIONS)
    (folder / "tallybook.yaml").write_text(SETTINGS + environments)
    return folder


def problems(folder: Path, environments: str, chosen: str | None = None) -> list[Problem]:
    return Workspace.open(workspace(folder, environments), environment=chosen).validate()


def settings_of(folder: Path, environment: str | None) -> Settings:
    settings = Workspace.open(folder, environment=environment).definitions.settings
    assert settings is not None
    return settings


PROD = """\
  dev: {}
  prod:
    datasources:
      files: {options: {path_prefix: /landing}}
      warehouse: {options: {path_prefix: /lake}}
    store: sqlite:///prod.sqlite3
    sandbox: trials
    spark: {remote: "sc://cluster", conf: {b: "3"}}
"""


def test_an_environment_replaces_settings_and_options(tmp_path: Path) -> None:
    workspace(tmp_path, PROD)

    prod = settings_of(tmp_path, "prod")
    files = Workspace.open(tmp_path, environment="prod").definitions.datasources["files"].entity

    assert (prod.store, prod.sandbox) == ("sqlite:///prod.sqlite3", "trials")
    assert (prod.spark.master, prod.spark.remote, prod.spark.conf) == (None, "sc://cluster", {"a": "1", "b": "3"})
    assert isinstance(files, FileSource)
    assert (files.options.path_prefix, files.options.delimiter) == ("/landing", ";")
    assert settings_of(tmp_path, "dev").spark == settings_of(tmp_path, None).spark
    assert Workspace.open(tmp_path).definitions.datasources["files"].entity.path_prefix == "data"


def test_variables_win_over_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace(tmp_path, PROD)
    monkeypatch.setenv("TALLYBOOK_ENV", "prod")
    monkeypatch.setenv("TALLYBOOK_SPARK_CONF", "b=4")
    monkeypatch.setenv("TALLYBOOK_SANDBOX", "elsewhere")

    opened = Workspace.open(tmp_path)

    assert opened.environment == "prod"
    assert opened.definitions.settings is not None
    assert opened.definitions.settings.spark.conf == {"a": "1", "b": "4"}
    assert opened.sandbox == tmp_path / "elsewhere" / "@prod"


def test_drafts_of_each_environment_write_to_a_folder_of_their_own(tmp_path: Path) -> None:
    workspace(tmp_path, PROD)
    folders = {Workspace.open(tmp_path, environment=name).sandbox for name in (None, "dev", "prod")}
    assert folders == {
        tmp_path / ".tallybook/sandbox",
        tmp_path / ".tallybook/sandbox/@dev",
        tmp_path / "trials/@prod",
    }


def test_another_type_takes_no_options_over(tmp_path: Path) -> None:
    database = "  prod: {datasources: {files: {type: database, options: {url: postgresql://host/books}}}}\n"
    source = Workspace.open(workspace(tmp_path, database), environment="prod").definitions.datasources["files"].entity
    assert isinstance(source, DatabaseSource)


@pytest.mark.parametrize(
    ("environments", "chosen", "hint"),
    [
        (PROD, "prd", "did you mean 'prod'? the environments are: dev, prod"),
        (PROD, "test", "the environments are: dev, prod"),
        ("  {}\n", "prod", "leave out --env and TALLYBOOK_ENV, or add `environments: {prod: …}`"),
    ],
    ids=["near", "far", "none"],
)
def test_an_unknown_environment_is_refused(environments: str, chosen: str, hint: str, tmp_path: Path) -> None:
    opened = Workspace.open(workspace(tmp_path, environments), environment=chosen)
    with pytest.raises(UsageError, match=f"there is no environment '{chosen}'") as raised:
        _ = opened.definitions
    assert raised.value.hint == hint


def test_the_command_line_takes_the_option_before_and_after_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(workspace(tmp_path, PROD))
    monkeypatch.setenv("TALLYBOOK_ENV", "dev")
    for args in (["--env", "prod", "apply", "--dry-run"], ["apply", "--dry-run", "--env", "prod"]):
        assert main(args) == 0
        assert capsys.readouterr().err == "environment: prod\n"
    assert main(["apply", "--dry-run"]) == 0
    assert capsys.readouterr().err == "environment: dev\n"
    assert main(["apply", "--env", "prd"]) == 2
    assert "did you mean 'prod'?" in capsys.readouterr().err
    assert main(["validate"]) == 0
    assert "is valid, in all environments (dev, prod): " in capsys.readouterr().out


@pytest.mark.parametrize("chosen", [None, "dev", "prod"])
def test_every_environment_is_checked_whichever_is_chosen(chosen: str | None, tmp_path: Path) -> None:
    environments = """\
  dev: {datasources: {file: {options: {path_prefix: x}}}}
  prod:
    datasources:
      files: {options: {path_prefix: "lake/{{YYYY}}"}}
      warehouse: {type: parquet, options: {path_prefix: lake, url: x}}
"""
    found = problems(tmp_path, environments, chosen)

    assert {(problem.place.file, problem.place.line, problem.type) for problem in found if problem.place} == {
        ("tallybook.yaml", 5, "DataSourceNotFound"),
        ("tallybook.yaml", 8, "UnknownToken"),
        ("tallybook.yaml", 9, "UnknownKey"),
        ("definitions.yaml", 20, "InvalidDestination"),
    }
    texts = {problem.type: problem for problem in found}
    assert texts["DataSourceNotFound"].message == "there is no datasource 'file'"
    assert texts["DataSourceNotFound"].hint == "did you mean 'files'?"
    own = texts["InvalidDestination"].message
    assert ("in environment 'prod': " in own) == (chosen != "prod")


def test_a_problem_of_one_environment_does_not_stop_another(tmp_path: Path) -> None:
    environments = "  dev: {}\n  prod: {datasources: {none: {options: {path_prefix: x}}}}\n"
    assert len(problems(tmp_path, environments)) == 1
    assert not Workspace.open(tmp_path, environment="dev").checked.problems
    assert len(Workspace.open(tmp_path, environment="prod").checked.problems) == 1


@pytest.mark.parametrize(
    "environment",
    [
        "datasources: {files: {options: {url: 'postgresql://me:hunter22@host/db'}}}",
        "datasources: {files: {options: {secret_key: hunter22}}}",
        "datasources: {files: {credential_ref: hunter22}}",
        "store: postgresql://me:hunter22@host/db",
        "spark: {conf: {spark.hadoop.fs.s3a.secret.key: hunter22}}",
    ],
    ids=["url", "key", "reference", "store", "spark"],
)
def test_a_secret_in_an_environment_is_refused_and_not_repeated(environment: str, tmp_path: Path) -> None:
    found = problems(tmp_path, f"  prod: {{{environment}}}\n")
    assert found
    assert all("hunter22" not in repr(problem) for problem in found)


def test_a_wrong_key_of_an_environment_is_a_problem_at_its_place(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "  prod: {sources: {}}\n")
    assert (problem.type, problem.hint) == ("UnknownKey", "did you mean 'datasources'?")
    assert problem.place is not None and problem.place.line == 5
