"""Start Spark: with a JVM of our own, as a client of a Connect server, or both at once.

Spark talks while it starts and when a query fails. None of it reaches the terminal: the JVM is started with its
streams on a log file, and Python's loggers write to the same file.
"""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import cast

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tallybook.engine.archive import ready_archive
from tallybook.engine.gateway import remember_classes
from tallybook.engine.java import find_java
from tallybook.engine.properties import read_submission, spark_home
from tallybook.errors import SessionError
from tallybook.exit_codes import UNAVAILABLE
from tallybook.model.settings import ClassArchive
from tallybook.secrets import hide_secrets

LOG_SETTING = "spark.tallybook.log"
"""In this setting a session remembers its log file."""
_JAVA_OPTIONS = "-Duser.timezone=UTC -Duser.language=en -Duser.country=US -Xss4m"
_JVM = {
    "spark.app.name": "tallybook",
    "spark.driver.defaultJavaOptions": _JAVA_OPTIONS,
    "spark.executor.defaultJavaOptions": _JAVA_OPTIONS,
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.codegen.hugeMethodLimit": "8000",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""The language is fixed because UPPER and LOWER depend on it. A deeply nested expression needs a large stack. A month
end generates more pieces of code than Spark caches by default, and would compile all of them again in the next run.
DataFrame debugging calls the JVM ten times for every column: half the time of planning."""
_LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For the short-lived JVM in which Spark's start script composes the command of the real one."""
_LARGEST_HEAP_MIB = 31 * 1024
"""With a larger heap a JVM uses longer pointers, and has room for less."""
_CONNECT_SECONDS = 30
PORT = "spark.connect.grpc.binding.port"
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
_CONNECT_SERVER = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.sql.artifact.isolation.enabled": "true",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "true",
    "spark.connect.grpc.binding.address": "localhost",
}

_CONNECT_MODE = ("SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE")
"""These variables make PySpark a Connect client. A process that such a client starts inherits them."""


def start_classic(
    chosen: dict[str, str],
    defaults: dict[str, str],
    log: Path,
    *,
    class_archive: ClassArchive = "off",
    variables: Mapping[str, str | None] | None = None,
) -> SparkSession:
    """Starts a session with a JVM of its own, or in the JVM of `spark-submit`.

    `chosen` settings override those that Spark reads itself, which override `defaults`. `variables` are added
    to the environment of the JVM.
    """
    _quiet_python(log)
    for name in _CONNECT_MODE:
        os.environ.pop(name, None)
    defaults = defaults | {LOG_SETTING: str(log)}
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        SparkContext._ensure_initialized()
        chosen = {key: value for key, value in chosen.items() if key != "spark.master"}
        return _session(chosen, defaults)
    submission = read_submission()
    given = {**submission.conf, **chosen}
    is_local = given.get("spark.master", "local").startswith("local")
    defaults = _JVM | (_laptop() if is_local else {}) | defaults
    if is_local and given.get("spark.sql.catalogImplementation") != "hive":
        defaults |= _warehouse()
    variables = _variables(is_local) | dict(variables or {})
    if archive := ready_archive(given, class_archive):
        defaults["spark.driver.defaultJavaOptions"] += f" {archive.options}"
        variables |= archive.variables
    variables.setdefault("JAVA_HOME", str(find_java()))
    with (
        tempfile.TemporaryDirectory(prefix="tallybook-start-") as folder,
        _environment(variables),
        log.open("ab") as output,
    ):
        if SparkContext._gateway is None:
            arguments = submission.arguments_with(defaults | given, Path(folder))
            with _environment({"PYSPARK_SUBMIT_ARGS": arguments}):
                streams = {"stdout": output, "stderr": output}
                gateway = launch_gateway(None, streams)  # type: ignore[no-untyped-call]  # PySpark gives it no types
            SparkContext._ensure_initialized(gateway=gateway)
            remember_classes(gateway.jvm)
        return _session(chosen, defaults)


def start_connect(url: str, conf: Mapping[str, str], log: Path, *, seconds: float | None = None) -> SparkSession:
    """Starts a session on a Connect server. Fails after seconds if no server answers; Spark would try for minutes."""
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    _quiet_python(log)
    channel = DefaultChannelBuilder(url).toChannel()
    try:
        grpc.channel_ready_future(channel).result(timeout=seconds or _CONNECT_SECONDS)
    except grpc.FutureTimeoutError:
        server = hide_secrets(url.partition(";")[0])
        raise SessionError(f"no Spark Connect server answers at {server}", exit=UNAVAILABLE) from None
    finally:
        Thread(target=channel.close, daemon=True).start()  # it waits up to 0.2 seconds for a thread of gRPC
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    options: dict[str, bool | float | int | str | None] = {**conf, "spark.remote": url, LOG_SETTING: str(log)}
    return cast(SparkSession, ConnectSession.builder.config(map=options).getOrCreate())


def start_connect_server(
    chosen: dict[str, str], defaults: dict[str, str], log: Path, *, class_archive: ClassArchive = "off"
) -> SparkSession:
    """Starts a Connect server in a JVM of our own, on a port that only this machine can reach, and a session on it."""
    server = connect_server_settings()
    start_classic(server | chosen, defaults, log, class_archive=class_archive)
    os.environ["SPARK_LOCAL_REMOTE"] = "1"
    return start_connect(f"sc://localhost:{server[PORT]}", {}, log)


def connect_server_settings() -> dict[str, str]:
    """Returns the settings of a Connect server on a free port of this machine. Makes a token if there is none."""
    os.environ.setdefault(TOKEN_VARIABLE, secrets.token_hex(16))
    return _CONNECT_SERVER | {PORT: str(_free_port())}


def _session(chosen: Mapping[str, str], defaults: Mapping[str, str]) -> SparkSession:
    conf = SparkConf().setAll(list(chosen.items()))
    for key, value in defaults.items():
        conf.setIfMissing(key, value)
    return SparkSession(SparkContext.getOrCreate(conf))


def _laptop() -> dict[str, str]:
    """Returns defaults for one machine: half of its memory, no web server, fewer partitions."""
    return {
        "spark.master": "local[*]",
        "spark.driver.memory": f"{min(max(1024, _memory_mib() // 2), _LARGEST_HEAP_MIB)}m",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(max(64, 4 * (os.cpu_count() or 1))),
    }


def _warehouse() -> dict[str, str]:
    """Puts catalog tables into a temporary folder: without a metastore they end with the process, so their files should
    end too."""
    folder = tempfile.mkdtemp(prefix="tallybook-warehouse-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {"spark.sql.warehouse.dir": folder}


def _memory_mib() -> int:
    """Returns the memory of the machine, or of the container if that is less."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        limit = pages
    return min(pages, limit) // 2**20


def _variables(is_local: bool) -> dict[str, str | None]:
    """Returns the environment variables of the JVM. A local JVM is reachable from this machine only."""
    variables: dict[str, str | None] = {"SPARK_HOME": str(spark_home()), "SPARK_LAUNCHER_OPTS": _LAUNCHER_OPTIONS}
    if is_local:
        variables |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    kept: dict[str, str | None] = {name: os.environ[name] for name in variables if name in os.environ}
    return variables | kept | {"SPARK_REMOTE": None}


@contextmanager
def _environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    _set_environment(variables)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        return int(server.getsockname()[1])


def _quiet_python(log: Path) -> None:
    """Send to the log what PySpark would print: every failed query as JSON, every connection py4j loses.

    Its warning about a pandas newer than it knows, given at every start, is dropped: Tallybook uses no pandas.
    """
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    handler = logging.FileHandler(log, encoding="utf-8", delay=True)
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logger = PySparkLogger.getLogger(name)
        logger.handlers.clear()
        logger.addHandler(handler)
    logging.getLogger("py4j").addHandler(handler)
