"""A pytest plugin: every scenario of a workspace is a test item.

pytest loads this in every project that has Tallybook installed, so it imports nothing else until it finds a scenario.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tallybook.engine.local import LocalEngine
    from tallybook.scenarios.load import Case
    from tallybook.scenarios.suite import Outcome

_SETTINGS_FILE = "tallybook.yaml"
_SCENARIO = re.compile(rb"^scenario[ \t]*:", re.MULTILINE)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collects a YAML file that has scenarios and is inside a workspace."""
    if file_path.suffix not in (".yaml", ".yml") or _root(file_path) is None:
        return None
    from tallybook.project.files import UnreadableError, read_bytes

    try:
        is_ours = _SCENARIO.search(read_bytes(file_path)) is not None
    except UnreadableError:
        is_ours = True  # it may hold scenarios; the collector says that nobody knows
    if not is_ours:
        return None
    return _ScenarioFile.from_parent(parent, path=file_path)


def _root(file: Path) -> Path | None:
    return next((folder for folder in file.parents if (folder / _SETTINGS_FILE).is_file()), None)


class _Workspaces:
    """What the items of one pytest session share: workspaces read once, and one Spark session."""

    def __init__(self) -> None:
        self._cases: dict[Path, list[Case]] = {}
        self._engine: LocalEngine | None = None

    def cases(self, root: Path) -> list[Case]:
        if root not in self._cases:
            from tallybook.project.check import check
            from tallybook.project.load import load_definitions
            from tallybook.scenarios.check import read_cases

            self._cases[root] = read_cases(check(load_definitions(root)))
        return self._cases[root]

    def engine(self, case: Case) -> LocalEngine:
        if self._engine is None:
            from tallybook.scenarios.suite import start_engine

            settings = case.checked.definitions.settings
            self._engine = start_engine(settings.spark if settings else None)
        return self._engine


_SHARED = pytest.StashKey[_Workspaces]()


def _shared(config: pytest.Config) -> _Workspaces:
    return config.stash.setdefault(_SHARED, _Workspaces())


class _ScenarioFile(pytest.File):
    """A file with scenarios."""

    def collect(self) -> Iterable[pytest.Item]:
        from tallybook.text import printable

        root = _root(self.path)
        assert root is not None
        name = self.path.relative_to(root).as_posix()
        cases = [case for case in _shared(self.config).cases(root) if case.file == name]
        if not cases:
            raise self.CollectError(f"{printable(str(self.path))} cannot be read: see `tallybook validate`")
        for case in cases:
            yield _ScenarioItem.from_parent(self, name=printable(case.name), case=case)


class _UnmetError(Exception):
    """A scenario did not pass."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.case.name)
        self.outcome = outcome


class _ScenarioItem(pytest.Item):
    """One scenario."""

    def __init__(self, *, case: Case, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._case = case

    def runtest(self) -> None:
        from tallybook.scenarios.suite import judge

        outcome = judge(self._case, _shared(self.config).engine(self._case))
        if outcome.status != "passed":
            raise _UnmetError(outcome)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if not isinstance(excinfo.value, _UnmetError):
            return super().repr_failure(excinfo, style)
        from tallybook.scenarios.report import failure_text

        return failure_text(excinfo.value.outcome)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self._case.part.place(key=True).line - 1, self.name
