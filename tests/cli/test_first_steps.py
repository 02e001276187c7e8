"""`init`, `expr` and `schema`: what a newcomer tries first."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tallybook.cli.main import main
from tallybook.documents.schema import yaml_schema
from tallybook.project.schema import settings_schema
from tallybook.workspace import Workspace

GOLDEN = Path(__file__).parents[1] / "golden"


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_init_makes_a_workspace_that_validates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "books"
    assert main(["init", str(folder)]) == 0
    assert f"\n  cd {folder}\n  tallybook validate\n" in capsys.readouterr().out
    workspace = Workspace.open(folder)
    assert (workspace.name, workspace.validate()) == ("books", [])
    assert workspace.counts() == {
        "project": 1,
        "dataset": 1,
        "resolver": 1,
        "datasource": 1,
        "calendar": 0,
        "scenario": 1,
    }


def test_init_binds_the_editor_to_the_schema(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path)]) == 0
    bound = json.loads((tmp_path / ".vscode" / "settings.json").read_text())["yaml.schemas"]
    assert set(bound) == {"schema/tallybook.schema.json", "schema/settings.schema.json"}
    covered = {path for globs in bound.values() for glob in globs for path in tmp_path.glob(glob)}
    for path in tmp_path.rglob("*.yaml"):
        first = path.read_text().split("\n")[0]
        assert first.startswith("# yaml-language-server: $schema=")
        assert (path.parent / first.partition("=")[2]).is_file()
        assert path in covered


def test_init_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    shown = capsys.readouterr().out
    assert shown.endswith("\nnext:\n  tallybook validate\n  tallybook run sales-close --period 2026-01\n")
    monkeypatch.chdir(tmp_path.parent)
    assert main(["init", "my books"]) == 0
    assert "\nnext:\n  cd 'my books'\n  tallybook validate\n" in capsys.readouterr().out


def test_init_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "sales.yaml").write_text("mine\n")
    (tmp_path / ".gitignore").write_text("mine too\n")
    before = everything(tmp_path)

    assert main(["init", str(tmp_path)]) == 2

    assert everything(tmp_path) == before
    assert "already contains datasets/sales.yaml, .gitignore" in capsys.readouterr().err


def test_init_a_second_time_changes_nothing(tmp_path: Path) -> None:
    assert main(["init", str(tmp_path)]) == 0
    before = everything(tmp_path)
    assert main(["init", str(tmp_path)]) == 2
    assert everything(tmp_path) == before


def test_init_inside_a_workspace_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path)]) == 0
    assert main(["init", str(tmp_path / "inner")]) == 2
    assert not (tmp_path / "inner").exists()
    assert "is inside the workspace" in capsys.readouterr().err


def test_init_where_a_file_is_in_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file" / "below")]) == 2
    assert "cannot be created" in capsys.readouterr().err


def test_init_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["workspace"] == str(tmp_path)
    assert set(document["files"]) == set(everything(tmp_path))


@pytest.mark.parametrize("name", ["books: 2026", "#1", "über", "it's"])
def test_init_in_a_folder_with_an_odd_name(name: str, tmp_path: Path) -> None:
    assert main(["init", str(tmp_path / name)]) == 0
    workspace = Workspace.open(tmp_path / name)
    assert (workspace.name, workspace.validate()) == (name, [])


@pytest.mark.parametrize("option", [[], ["--settings"]])
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_schema(option: list[str], as_json: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", *option, *as_json]) == 0
    assert json.loads(capsys.readouterr().out) == (settings_schema() if option else yaml_schema())


@pytest.fixture
def sound(tmp_path: Path) -> str:
    return str(shutil.copytree(GOLDEN / "workspace", tmp_path / "sound"))


def test_expr_says_what_an_expression_means(sound: str, capsys: pytest.CaptureFixture[str]) -> None:
    expression = "if(amount>100, 'much' , rates.region)"
    assert main(["expr", expression, "--dataset", "sales-orders", "--workspace", sound]) == 0
    assert capsys.readouterr().out == (
        'expression  IF(amount > 100, "much", rates.region)\n'
        "type        string\n"
        "columns     amount        decimal(18,2)\n"
        "            rates.region  string\n"
        "functions   IF(condition, value if true, value if not)  The second argument if the condition is true, "
        "else the third, or NULL without one. NULL counts as false.\n"
        "            a > b                                       True when the left comes after the right.\n"
    )


def test_expr_needs_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["expr", "1/3 + 2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["expression"], document["type"], document["columns"]) == ("1 / 3 + 2", "decimal(38,36)", [])
    assert [function["signature"] for function in document["functions"]] == ["a + b", "a / b"]


def test_expr_of_a_share_points_to_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["expr", "amount / sum(amount)"]) == 0
    hint = "amount must be grouped by; to compare each row with a total, write SUM(amount) OVER () in `update`"
    assert f"hint        {hint}\n" in capsys.readouterr().out
    assert main(["expr", "SUM(amount) / COUNT(*)"]) == 0
    assert "hint" not in capsys.readouterr().out


def test_expr_without_a_dataset_knows_no_types(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["expr", "SUM(orders.amount) / COUNT(*)"]) == 0
    shown = capsys.readouterr().out
    assert "depends on its columns" in shown
    assert "in `aggregate`, or in the `aggregation` of a source" in shown
    assert "COUNT_ALL(), or COUNT(*)" in shown


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("amuont + 1", "ColumnNotFound"),
        ("amount + ", "ExpressionParseError"),
        ("amount + 'x'", "TypeMismatch"),
        ("FROB(amount)", "UnknownFunction"),
        ("SUM(SUM(amount))", "InvalidAggregation"),
        ("{{small}}", "ExpressionParseError"),
        ("", "ExpressionParseError"),
    ],
)
def test_expr_that_is_wrong(expression: str, type: str, sound: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["expr", expression, "--dataset", "sales-orders", "--workspace", sound]
    assert main(arguments) == 1
    assert "<expression>:1:" in capsys.readouterr().err
    assert main([*arguments, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [problem["type"] for problem in document["problems"]] == [type]


@pytest.mark.parametrize("dataset", ["nobody", "not an id", ""])
def test_expr_over_a_dataset_nobody_has(dataset: str, sound: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["expr", "amount", f"--dataset={dataset}", "--workspace", sound])
    assert code == (1 if dataset else 0)
    if dataset:
        assert f"there is no dataset '{dataset}'" in capsys.readouterr().err
