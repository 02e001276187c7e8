"""The scripts of the page about schedulers: the one for cron runs, the others with stand-ins for what they import."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.docs.page import DOCS

from tallybook.engine import session
from tallybook.workspace import Workspace

PAGE = (DOCS / "howto" / "schedule.md").read_text(encoding="utf-8")
ORDERS = DOCS.parent / "examples" / "orders"


def block(language: str) -> str:
    [text] = re.findall(rf"```{re.escape(language)}\n(.*?)```", PAGE, re.DOTALL)
    return str(text)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """The example with a run of January under way, so that another one is refused with code 4."""
    root = Path(shutil.copytree(ORDERS, tmp_path / "orders", ignore=shutil.ignore_patterns(".tallybook", "warehouse")))
    opened = Workspace.open(root)
    opened.apply()
    with opened.store() as store:
        store.create_run("order-close", 1, "2026-01", calendar_id="gregorian", as_of=date(2026, 1, 1))
    return root


@pytest.mark.long
def test_the_script_for_cron_retries_what_a_retry_can_help(orders: Path) -> None:
    script = orders / "close.sh"
    script.write_text(block("sh"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def run(period: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(script), period]
        env = os.environ | {"PATH": path, "RETRY_SECONDS": "0"}
        return subprocess.run(command, capture_output=True, text=True, env=env, cwd="/", check=False)

    busy = run("2026-01")
    assert (busy.returncode, busy.stderr) == (4, "")
    assert busy.stdout == "order-close 2026-01 ended with code 4; see .tallybook/cron.log\n"
    events = [json.loads(line) for line in (orders / ".tallybook" / "events.jsonl").read_text().splitlines()]
    assert [(event["event"], event["retry"]) for event in events] == [("run.refused", True)] * 3
    assert run("2026-13").returncode == 1
    last = [json.loads(line) for line in (orders / ".tallybook" / "cron.log").read_text().splitlines()]
    assert sum(line["event"] == "run.refused" for line in last) == 4, "a wrong period is not tried again"


def test_the_line_for_cron_is_a_command_for_last_month() -> None:
    *fields, command = block("crontab").strip().split(maxsplit=5)
    assert len(fields) == 5
    shown = command.replace("/srv/books/close.sh", "echo").replace("\\%", "%").replace("yesterday", "2026-03-31")
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout == "2026-03\n"


class RetryError(Exception):
    """What the stand-ins raise to be tried again."""


class GiveUpError(Exception):
    """What the stand-ins raise to fail."""


def bare(*args: Any, **options: Any) -> Any:
    """A decorator that changes nothing."""
    return args[0] if args else lambda function: function


@pytest.fixture
def books(orders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace that the pages call /srv/books."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return orders


def names_of(title: str, books: Path) -> dict[str, Any]:
    """Executes a block of Python, and returns its names."""
    names: dict[str, Any] = {}
    text = block(f'python title="{title}"').replace("/srv/books", str(books))
    exec(compile(text, title, "exec"), names)
    return names


def test_the_task_for_airflow(books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks: list[Callable[..., None]] = []

    def task(**options: Any) -> Any:
        assert options["retries"] == 3
        return lambda function: lambda: tasks.append(function)

    pendulum = SimpleNamespace(datetime=datetime, duration=lambda **given: given)
    stubs = {
        "airflow": ModuleType("airflow"),
        "airflow.decorators": SimpleNamespace(dag=bare, task=task),
        "airflow.exceptions": SimpleNamespace(AirflowException=RetryError, AirflowFailException=GiveUpError),
        "pendulum": pendulum,
    }
    for name, stub in stubs.items():
        monkeypatch.setitem(sys.modules, name, stub)
    names_of("airflow", books)
    [close] = tasks
    with pytest.raises(RetryError, match="order-close 2026-01 ended with code 4"):
        close(data_interval_start=datetime(2026, 1, 1))
    (books / "tallybook.yaml").write_text("name: [")
    with pytest.raises(GiveUpError, match="ended with code 1"):
        close(data_interval_start=datetime(2026, 1, 1))


def test_the_asset_for_dagster(books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(message: str, *, allow_retries: bool) -> GiveUpError:
        assert not allow_retries
        return GiveUpError(message)

    stub = SimpleNamespace(
        MonthlyPartitionsDefinition=lambda **given: given,
        asset=bare,
        RetryRequested=lambda **given: RetryError(given),
        Failure=give_up,
    )
    monkeypatch.setitem(sys.modules, "dagster", stub)
    order_close = names_of("dagster", books)["order_close"]
    with pytest.raises(RetryError):
        order_close(SimpleNamespace(partition_key="2026-01"))
    (books / "tallybook.yaml").write_text("name: [")
    with pytest.raises(GiveUpError, match="ended with code 1"):
        order_close(SimpleNamespace(partition_key="2026-01"))


def test_the_job_for_databricks(books: Path, tmp_path: Path) -> None:
    [task] = json.loads(block("json"))["tasks"]
    assert task["new_cluster"]["spark_conf"] == {key: values[0] for key, values in session.NEEDS.items()}
    file = tmp_path / "run_tallybook.py"
    file.write_text(block('python title="databricks"'))
    given = [text.replace("/Workspace/books", str(books)) for text in task["spark_python_task"]["parameters"]]
    given = [text.replace("{{job.parameters.period}}", "2026-01") for text in given]
    done = subprocess.run([sys.executable, str(file), *given], capture_output=True, text=True, check=False)
    assert done.returncode == 4
