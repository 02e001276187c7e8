"""Gets the Spark session. No other module starts one.

An active session is used as it is. Otherwise one is started: on a Connect server (`remote`), or with a JVM of its own
(`master`), by default on this machine. Settings, the strongest first: `tallybook.yaml`; those that Spark reads itself
(`spark-submit`, `SPARK_*`, `spark-defaults.conf`); the defaults here and in `launch.py`.

`spark.sql.caseSensitive` is left alone: column names are resolved before Spark sees them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tallybook.engine.launch import LOG_SETTING, start_classic, start_connect, start_connect_server
from tallybook.engine.logs import new_log
from tallybook.errors import SessionError
from tallybook.model.settings import LogSettings, SparkSettings
from tallybook.secrets import hide_secrets

NEEDS = {
    "spark.sql.session.timeZone": ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00"),
    "spark.sql.ansi.enabled": ("true",),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("true",),
    "spark.sql.lateralColumnAlias.enableImplicitResolution": ("false",),
    "spark.sql.files.ignoreCorruptFiles": ("false",),
    "spark.sql.files.ignoreMissingFiles": ("false",),
    "spark.sql.parquet.datetimeRebaseModeInWrite": ("CORRECTED",),
    "spark.sql.orc.impl": ("native",),
}
"""The settings that results depend on, each with the values that are accepted; the first is the one we set."""

_DEFAULTS = {key: values[0] for key, values in NEEDS.items()} | {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.variable.substitute": "false",
}


def get_session(
    settings: SparkSettings | None = None, *, log_dir: Path | None = None, logs: LogSettings | None = None
) -> SparkSession:
    """Returns the active session, else starts one that logs into `log_dir`, by default a temporary folder."""
    spark = _active_session()
    if spark is None:
        settings = settings or SparkSettings()
        _check(settings.conf, "remove from `spark.conf` of tallybook.yaml: {key}")
        spark = _start(settings, new_log(log_dir, (logs or LogSettings()).keep))
    check_session(spark)
    return spark


def check_session(spark: SparkSession) -> None:
    """Raises SessionError if a setting of the session would change results. Settings are checked, never changed."""
    _check({key: spark.conf.get(key) or "" for key in NEEDS}, 'spark.conf.set("{key}", "{wanted}")')


def log_file(spark: SparkSession) -> Path | None:
    """Returns the log of a session that Tallybook started; None for any other."""
    path = spark.conf.get(LOG_SETTING, "")
    return Path(path) if path else None


def _active_session() -> SparkSession | None:
    """Returns the session of this thread, else of the process."""
    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _check(conf: Mapping[str, str], fix: str) -> None:
    wrong = [key for key in NEEDS if key in conf and conf[key] not in NEEDS[key]]
    if wrong:
        differences = (f"{key} is {conf[key]!r}, Tallybook needs {NEEDS[key][0]!r}" for key in wrong)
        hints = (fix.format(key=key, wanted=NEEDS[key][0]) for key in wrong)
        raise SessionError(f"the Spark session cannot be used: {'; '.join(differences)}", hint="; ".join(hints))


def _start(settings: SparkSettings, log: Path) -> SparkSession:
    chosen = {**settings.conf, **({"spark.master": settings.master} if settings.master else {})}
    remote = settings.remote or os.environ.get("SPARK_REMOTE")
    if remote is None and chosen.pop("spark.api.mode", "classic") == "connect":
        remote = chosen.get("spark.master", "local[*]")
    try:
        if remote is None:
            return start_classic(chosen, _DEFAULTS, log)
        if remote.startswith("sc://"):
            return start_connect(remote, _DEFAULTS | chosen, log)
        return start_connect_server(chosen | {"spark.master": remote}, _DEFAULTS, log)
    except (PySparkException, Py4JError) as error:
        raise SessionError(f"Spark did not start: {_reason(error, log)}", hint=f"its log is {log}") from error


def _reason(error: Exception, log: Path) -> str:
    """Returns the first error in the log. PySpark often knows only that the JVM is gone."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    complaint = re.search(r"Exception: (.+)|^((?:Error:|Improperly|Invalid|Unrecognized) .+)", text, flags=re.MULTILINE)
    words = (complaint[1] or complaint[2]) if complaint else str(error).strip().partition("\n")[0]
    return hide_secrets(words)
