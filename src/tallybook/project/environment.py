"""Environment variables that win over `tallybook.yaml`: `TALLYBOOK_SANDBOX`, `TALLYBOOK_SPARK_MASTER` and the like.

`TALLYBOOK_STORE` is not among them: it may hold a password, so the store reads it itself and nobody else sees it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from tallybook.errors import UsageError
from tallybook.model.settings import Settings, SparkSettings

PREFIX = "TALLYBOOK_"
_OWN = ("name", "sandbox", "calendar")
_SPARK = ("master", "remote")


def overridden(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """The settings with what the environment says in place of what the file says."""
    own = _given(environ, _OWN, PREFIX)
    spark: dict[str, object] = dict(_given(environ, _SPARK, f"{PREFIX}SPARK_"))
    conf = environ.get(f"{PREFIX}SPARK_CONF")
    if conf:
        spark["conf"] = settings.spark.conf | _pairs(conf)
    try:
        return Settings.model_validate(
            dict(settings) | own | {"spark": SparkSettings.model_validate(dict(settings.spark) | spark)}
        )
    except ValidationError as error:
        details = error.errors()[0]
        name = f"{PREFIX}{str(details['loc'][-1]).upper()}"
        raise UsageError(
            f"the environment variable {name} has a value that is not possible: {details['msg']}"
        ) from None


def _given(environ: Mapping[str, str], names: tuple[str, ...], prefix: str) -> dict[str, str]:
    return {name: value for name in names if (value := environ.get(prefix + name.upper()))}


def _pairs(text: str) -> dict[str, str]:
    """`key=value` pairs, separated by semicolons: values of Spark settings may have commas."""
    pairs = [pair.partition("=") for pair in text.split(";") if pair.strip()]
    wrong = next((key for key, equals, _ in pairs if not equals), None)
    if wrong is not None:
        raise UsageError(f"TALLYBOOK_SPARK_CONF is not a list of settings at '{wrong}'", "write key=value;key=value")
    return {key.strip(): value.strip() for key, _, value in pairs}
