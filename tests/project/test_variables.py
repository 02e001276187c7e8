"""Environment variables win over tallybook.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallybook.errors import UsageError
from tallybook.workspace import Workspace

FILE = "name: file\nsandbox: here\nspark: {master: 'local[1]', conf: {a: 1, b: 2}}\n"


def test_each_setting_has_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tallybook.yaml").write_text(FILE)
    values = {
        "NAME": "environment",
        "SANDBOX": "there",
        "CALENDAR": "gregorian",
        "SPARK_MASTER": "local[2]",
        "SPARK_REMOTE": "sc://host",
        "SPARK_CONF": "b=3; c=x,y ",
        "LOGS_KEEP": "7",
    }
    for name, value in values.items():
        monkeypatch.setenv(f"TALLYBOOK_{name}", value)

    settings = Workspace.open(tmp_path).definitions.settings

    assert settings is not None
    assert (settings.name, settings.sandbox, settings.calendar) == ("environment", "there", "gregorian")
    assert (settings.spark.master, settings.spark.remote) == ("local[2]", "sc://host")
    assert settings.spark.conf == {"a": "1", "b": "3", "c": "x,y"}
    assert settings.logs.keep == 7


def test_an_empty_variable_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tallybook.yaml").write_text(FILE)
    monkeypatch.setenv("TALLYBOOK_SANDBOX", "")
    settings = Workspace.open(tmp_path).definitions.settings
    assert settings is not None
    assert settings.sandbox == "here"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TALLYBOOK_CALENDAR", "not an id", "the environment variable TALLYBOOK_CALENDAR"),
        ("TALLYBOOK_SPARK_CONF", "a=1;b", "pair 2 of TALLYBOOK_SPARK_CONF has no '='"),
        ("TALLYBOOK_LOGS_KEEP", "0", "the environment variable TALLYBOOK_LOGS_KEEP"),
        ("TALLYBOOK_LOGS_KEEP", "many", "the environment variable TALLYBOOK_LOGS_KEEP"),
    ],
)
def test_a_variable_that_cannot_be_used(
    name: str, value: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tallybook.yaml").write_text(FILE)
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError) as raised:
        Workspace.open(tmp_path).validate()
    assert said in raised.value.message


def test_a_store_with_a_password_stays_out_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tallybook.yaml").write_text(FILE)
    monkeypatch.setenv("TALLYBOOK_STORE", "postgresql://me:secret@host/db")
    assert "secret" not in repr(Workspace.open(tmp_path).definitions.settings)


def test_a_calendar_of_the_environment_is_checked_like_one_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tallybook.yaml").write_text(FILE)
    monkeypatch.setenv("TALLYBOOK_CALENDAR", "nowhere")
    [problem] = Workspace.open(tmp_path).validate()
    assert problem.type == "CalendarNotFound"


@pytest.mark.parametrize("text", ["", "name: a\n---\nname: b\n", "- a\n", "nam: x\n", "dataset: {id: a}\n"])
def test_settings_that_are_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "tallybook.yaml").write_text(text)
    problems = Workspace.open(tmp_path).validate()
    assert problems
    assert {problem.place and problem.place.file for problem in problems} == {"tallybook.yaml"}
