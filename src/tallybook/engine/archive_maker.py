"""Makes the class-data archive of this Java and this Spark: `python -m tallybook.engine.archive_maker`.

It starts a small Spark, lets it do what runs do, and ends it normally: then the JVM writes the classes it has loaded.
It waits until the process that asked for the archive has ended, or a minute, and has the lowest priority.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tallybook.engine.archive import Archive, find_archive
from tallybook.engine.launch import PORT, connect_server_settings, start_classic, start_connect
from tallybook.engine.session import DEFAULTS

_SECONDS_TO_WAIT = 60
_SECONDS_TO_MAKE = 1800
_DAYS_UNUSED = 30
_LOWEST_PRIORITY = 19


def main() -> int:
    """Makes the archive. Does nothing if it is complete or another process is making it."""
    select.select([sys.stdin], [], [], _SECONDS_TO_WAIT)
    os.nice(_LOWEST_PRIORITY)
    archive = find_archive()
    if archive is None:
        return 0
    with archive.locked() as free:
        if not free or archive.is_complete():
            return 0
        try:
            make(archive)
        except Exception:
            with suppress(OSError), archive.log.open("a", encoding="utf-8") as log:
                log.write(traceback.format_exc())
            archive.failure.touch()
            return 1
    return 0


def make(archive: Archive) -> None:
    """Makes the archive, under its lock. An interrupted attempt is removed first, and so are archives long unused."""
    for file in (archive.listing, archive.failure, *archive.folder.glob("*.jsa")):
        file.unlink(missing_ok=True)
    _remove_unused(archive.folder.parent)
    files = [archive.classes]
    if archive.base is not None:
        _run_java(archive, "-Xshare:dump", f"-XX:SharedArchiveFile={archive.base}")
        files.insert(0, archive.base)
    class_path = _load_classes(archive)
    _run_java(archive, *shlex.split(archive.options), "-Xshare:on", "-version", class_path=class_path)
    for file in files:
        with file.open("rb") as written:
            os.fsync(written.fileno())
    finished = archive.listing.with_suffix(".new")
    finished.write_text(json.dumps({file.name: file.stat().st_size for file in files}), encoding="utf-8")
    finished.replace(archive.listing)


def _load_classes(archive: Archive) -> str:
    """Runs Spark until it has loaded its classes, and waits while it writes them. Returns its class path."""
    options = ["-Xlog:cds*=off", "-XX:TieredStopAtLevel=1", f"-XX:ArchiveClassesAtExit={archive.classes}"]
    options += [f"-XX:SharedArchiveFile={archive.base}"] if archive.base else []
    with tempfile.TemporaryDirectory(prefix="tallybook-archive-") as name:
        folder = Path(name)
        server = connect_server_settings()
        settings = server | {
            "spark.master": "local[2]",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": shlex.join(options),
            "spark.local.dir": str(folder / "local"),
        }
        spark = start_classic(settings, DEFAULTS, archive.log, variables=archive.variables)
        _exercise(spark, folder / "classic")
        property = "java_method('java.lang.System', 'getProperty', 'java.class.path')"
        class_path = str(spark.range(1).selectExpr(property).collect()[0][0])
        remote = start_connect(f"sc://localhost:{server[PORT]}", {}, archive.log)
        _exercise(remote, folder / "connect")
        remote.stop()
        spark.stop()
        jvm: subprocess.Popen[bytes] = SparkContext._gateway.proc  # type: ignore[union-attr]  # it runs
        assert jvm.stdin is not None
        jvm.stdin.close()
        code = jvm.wait(_SECONDS_TO_MAKE)
    if code != 0 or not archive.classes.exists():
        raise RuntimeError(f"the JVM ended with code {code} and wrote no archive")
    return class_path


def _exercise(spark: SparkSession, folder: Path) -> None:
    """Writes, reads, joins and sums a few rows: what most runs do."""
    table = pa.table(
        {
            "id": pa.array([1, 2, 3]),
            "region": ["EMEA", "APAC", None],
            "amount": pa.array([Decimal("1.50"), None, Decimal("2.25")], pa.decimal128(12, 2)),
            "day": pa.array([0, 20_000, None], pa.date32()),
            "changed": pa.array([0, 1, None], pa.timestamp("us", tz="UTC")),
            "active": [True, False, None],
        }
    )
    rows = spark.createDataFrame(table)
    names = rows.select("region", F.upper("region").alias("name")).dropDuplicates(["region"])
    for format in ("parquet", "csv", "json", "orc"):
        path = str(folder / format)
        rows.write.format(format).save(path)
        read = spark.read.schema(rows.schema).format(format).load(path)
        joined = read.join(names, "region", "left").withColumns(
            {
                "amount": F.expr("CASE WHEN region LIKE 'E%' THEN CAST(amount * 2 AS DECIMAL(12, 2)) ELSE amount END"),
                "key": F.concat_ws("-", F.col("id").cast("string"), F.date_format("day", "yyyy-MM")),
            }
        )
        totals = joined.groupBy("region").agg(F.sum("amount"), F.count("*"), F.max("day"))
        active = joined.filter("NOT coalesce(active, FALSE) OR amount > 0").orderBy("id")
        active.unionByName(totals, allowMissingColumns=True).write.parquet(f"{path}-out")
        totals.collect()
    rows.cache().count()


def _run_java(archive: Archive, *arguments: str, class_path: str = "") -> None:
    command = [str(archive.java.home / "bin" / "java"), *arguments]
    done = subprocess.run(
        command,
        env={"CLASSPATH": class_path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS_TO_MAKE,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"Java ended with code {done.returncode}: {done.stdout}")


def _remove_unused(folder: Path) -> None:
    """Removes archives that no start has used for long: of a Java or a Spark that was replaced."""
    oldest = time.time() - _DAYS_UNUSED * 24 * 3600
    for listing in folder.glob("java-*/files.json"):
        if listing.stat().st_mtime < oldest:
            shutil.rmtree(listing.parent, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
