"""One Spark session for all tests of a process; `make test` has two processes, each with its own.

`TALLYBOOK_TEST_MASTER=local-cluster[2,1,1024]` or `TALLYBOOK_TEST_REMOTE=local[2]` runs the same tests on a cluster of
worker processes, or through Spark Connect.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
import sqlalchemy as sa
from pyspark.sql import SparkSession
from sqlalchemy.engine import URL, make_url

from tallybook.engine.session import get_session
from tallybook.model.settings import SparkSettings

os.environ.setdefault("TALLYBOOK_SPARK_CLASS_ARCHIVE", "use")
"""Sessions of the tests use an archive of Spark's classes, which `make test` has made, and make none themselves."""

TINY = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:NewSize=1g "
    "-XX:ReservedCodeCacheSize=256m",
    "spark.sql.shuffle.partitions": "2",
}
"""For queries of a few rows, where compiling costs more than running. Thousands of them fill the small default space
for compiled code, and G1 starts a collection for every large buffer: with these options the tests take a quarter less
processor time."""


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    remote = os.environ.get("TALLYBOOK_TEST_REMOTE")
    master = None if remote else os.environ.get("TALLYBOOK_TEST_MASTER", "local[2]")
    with pytest.MonkeyPatch.context() as patch:
        if master and master.startswith("local-cluster"):
            patch.setenv("SPARK_HOME", str(request.getfixturevalue("spark_home")))
        settings = SparkSettings(master=master, remote=remote, conf=TINY, class_archive="use")
        session = get_session(settings, log_dir=tmp_path_factory.mktemp("spark-log"))
        yield session
        session.stop()


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home of links: the workers of a local cluster write their folders into it, not into the installed package."""
    folder = tmp_path_factory.mktemp("spark-home")
    for entry in Path(pyspark.__file__).parent.iterdir():
        (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    """The session of the suite, set up for many tiny queries."""
    from oracle.campaign import CODEGEN, QUICK

    changed = {name: value for name, value in QUICK.items() if name.startswith("spark.sql")}
    changed[CODEGEN] = "NO_CODEGEN"
    before = {name: spark.conf.get(name) for name in changed}
    for name, value in changed.items():
        spark.conf.set(name, value)
    yield spark
    for name, old in before.items():
        spark.conf.set(name, str(old))


UNPRIVILEGED = "nobody"
"""PostgreSQL refuses to be run by root; then its processes belong to this user, which every system has."""


@pytest.fixture(scope="session")
def postgresql() -> Iterator[URL]:
    """A PostgreSQL server of its own, on a socket in a temporary folder, gone when the tests are."""
    with warnings.catch_warnings(action="ignore"):
        from pgserver import _commands as commands

    user: dict[str, Any] = {"user": UNPRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if user:
        shutil.chown(folder, UNPRIVILEGED)
    data = folder / "data"
    commands.initdb(["--auth=trust", "--encoding=utf8", "-U", "postgres"], pgdata=data, cwd=folder, **user)
    options = f'-h "" -k {folder} -c fsync=off'
    commands.pg_ctl(["-w", "-o", options, "-l", str(folder / "log"), "start"], pgdata=data, cwd=folder, **user)
    try:
        yield make_url(f"postgresql+psycopg://postgres@/postgres?host={folder}")
    finally:
        commands.pg_ctl(["-w", "-m", "immediate", "stop"], pgdata=data, cwd=folder, **user)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def new_database(postgresql: URL) -> Callable[[], URL]:
    """Makes an empty PostgreSQL database."""
    count = iter(range(1000))

    def make() -> URL:
        name = f"empty_{next(count)}"
        engine = sa.create_engine(postgresql, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        engine.dispose()
        return postgresql.set(database=name)

    return make
