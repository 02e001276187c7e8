"""Gets the Spark session. No other module starts one.

An active session is used as it is. Otherwise one is started: on a Connect server (`remote`), or with a JVM of its own
(`master`), by default on this machine. Settings, the strongest first: `tallybook.yaml`; those that Spark reads itself
(`spark-submit`, `SPARK_*`, `spark-defaults.conf`); the defaults here and in `launch.py`.

`spark.sql.caseSensitive` is left alone: column names are resolved before Spark sees them.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tallybook.engine.launch import (
    LOG_SETTING,
    PORT,
    connect_server_settings,
    start_classic,
    start_connect,
    start_connect_server,
)
from tallybook.engine.logs import new_log
from tallybook.engine.properties import JAVA_OPTIONS
from tallybook.errors import SessionError
from tallybook.exit_codes import UNAVAILABLE
from tallybook.model.settings import LogSettings, SparkSettings
from tallybook.secrets import hide_secrets

logger = logging.getLogger("tallybook.session")

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

DEFAULTS = {key: values[0] for key, values in NEEDS.items()} | {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.variable.substitute": "false",
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    "spark.sql.optimizer.excludedRules": ",".join(
        f"org.apache.spark.sql.catalyst.optimizer.{rule}"
        for rule in ("ConvertToLocalRelation", "PropagateEmptyRelation")
    ),
}
"""What every session that we start is set to, unless the user says otherwise.

The last two make a run fail, or not fail, in the same way everywhere. Generated code does not compute the right side of
an AND for rows that the left side rules out. And a Connect server treats small frames of local values like other
frames: it does not compute their unread columns, and does not leave out conditions because one of them is empty.
"""


def get_session(
    settings: SparkSettings | None = None,
    *,
    conf: Mapping[str, str] | None = None,
    log_dir: Path | None = None,
    logs: LogSettings | None = None,
    warm: bool = False,
) -> SparkSession:
    """Returns the active session, else starts one that logs into `log_dir`, by default a temporary folder.

    `conf` is weaker than the settings. With `warm`, the session is one on the warm session for the settings, if it
    runs.
    """
    spark = _active_session()
    if spark is None:
        settings, conf = settings or SparkSettings(), conf or {}
        _check(settings.conf, "remove from `spark.conf` of tallybook.yaml: {key}")
        spark = _warm_session(settings, conf) if warm else None
        if spark is None:
            logger.debug("starting Spark …")
            spark = _start(settings, conf, new_log(log_dir, (logs or LogSettings()).keep))
        logger.debug("Spark is ready; preparing …")
    check_session(spark)
    return spark


def start_server(settings: SparkSettings, log: Path) -> tuple[SparkSession, int]:
    """Starts a Connect server as the settings say. Returns the session of its own JVM, and its port."""
    server = connect_server_settings()
    with _failing_with(log):
        chosen = server | _chosen(settings, {})
        return start_classic(chosen, DEFAULTS, log, class_archive=settings.class_archive), int(server[PORT])


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


def _warm_session(settings: SparkSettings, conf: Mapping[str, str]) -> SparkSession | None:
    from tallybook.engine.warm import use_warm

    stronger = settings.conf
    return use_warm(settings, {k: v for k, v in conf.items() if k.startswith("spark.sql.") and k not in stronger})


def _chosen(settings: SparkSettings, conf: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of a session. Java options of the workspace are added to those of `conf`."""
    both = {key: f"{conf[key]} {settings.conf[key]}" for key in JAVA_OPTIONS if key in conf and key in settings.conf}
    return {**conf, **settings.conf, **both, **({"spark.master": settings.master} if settings.master else {})}


def _start(settings: SparkSettings, conf: Mapping[str, str], log: Path) -> SparkSession:
    chosen = _chosen(settings, conf)
    remote = settings.remote or os.environ.get("SPARK_REMOTE")
    if remote is None and chosen.pop("spark.api.mode", "classic") == "connect":
        remote = chosen.get("spark.master", "local[*]")
    with _failing_with(log):
        if remote is None:
            return start_classic(chosen, DEFAULTS, log, class_archive=settings.class_archive)
        if remote.startswith("sc://"):
            return start_connect(remote, DEFAULTS | chosen, log)
        chosen["spark.master"] = remote
        return start_connect_server(chosen, DEFAULTS, log, class_archive=settings.class_archive)


@contextmanager
def _failing_with(log: Path) -> Iterator[None]:
    """Raises SessionError, with the reason that the log gives, if Spark does not start in the block."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        message = f"Spark did not start: {_reason(error, log)}"
        raise SessionError(message, hint=f"its log is {log}", exit=UNAVAILABLE) from error


def _reason(error: Exception, log: Path) -> str:
    """Returns the first error in the log. PySpark often knows only that the JVM is gone."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    complaint = re.search(r"Exception: (.+)|^((?:Error:|Improperly|Invalid|Unrecognized) .+)", text, flags=re.MULTILINE)
    words = (complaint[1] or complaint[2]) if complaint else str(error).strip().partition("\n")[0]
    return hide_secrets(words)
