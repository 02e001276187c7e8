"""Environment variables that override `tallybook.yaml`: `TALLYBOOK_SANDBOX`, `TALLYBOOK_SPARK_MASTER` and the like.

`TALLYBOOK_STORE` is not among them: it may hold a password, so the store reads it itself and nobody else sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError

from tallybook.errors import UsageError
from tallybook.model.base import Entity
from tallybook.model.settings import Settings

PREFIX = "TALLYBOOK_"
_OWN = ("name", "sandbox", "calendar")
_SPARK = ("master", "remote", "class_archive")


def overridden(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Returns the settings with values of the environment instead of those of the file."""
    spark: dict[str, object] = dict(_given(environ, _SPARK, f"{PREFIX}SPARK_"))
    conf = environ.get(f"{PREFIX}SPARK_CONF")
    if conf:
        spark["conf"] = settings.spark.conf | _pairs(conf)
    return _replaced(
        settings,
        _given(environ, _OWN, PREFIX)
        | {
            "spark": _replaced(settings.spark, spark, f"{PREFIX}SPARK_"),
            "logs": _replaced(settings.logs, _given(environ, ("keep",), f"{PREFIX}LOGS_"), f"{PREFIX}LOGS_"),
            "retention": _replaced(
                settings.retention, _given(environ, ("older_than",), f"{PREFIX}RETENTION_"), f"{PREFIX}RETENTION_"
            ),
        },
        PREFIX,
    )


E = TypeVar("E", bound=Entity)


def _replaced(entity: E, values: dict[str, object], prefix: str) -> E:
    try:
        return type(entity).model_validate(dict(entity) | values, strict=False)
    except ValidationError as error:
        details = error.errors()[0]
        name = f"{prefix}{str(details['loc'][0]).upper()}"
        raise UsageError(
            f"the environment variable {name} has an invalid value: {details['msg'].removeprefix('Value error, ')}"
        ) from None


def _given(environ: Mapping[str, str], names: tuple[str, ...], prefix: str) -> dict[str, object]:
    return {name: value for name in names if (value := environ.get(prefix + name.upper()))}


def _pairs(text: str) -> dict[str, str]:
    """`key=value` pairs, separated by semicolons: values of Spark settings may have commas. A message repeats none: it
    could be a part of a secret."""
    pairs = [pair.partition("=") for pair in text.split(";") if pair.strip()]
    wrong = next((number for number, (_, equals, _) in enumerate(pairs, start=1) if not equals), None)
    if wrong is not None:
        raise UsageError(f"pair {wrong} of TALLYBOOK_SPARK_CONF has no '='", "write key=value;key=value")
    return {key.strip(): value.strip() for key, _, value in pairs}
