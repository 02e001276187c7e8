"""`tallybook.yaml`: the settings of a workspace."""

from __future__ import annotations

from pydantic import Field

from tallybook.model.base import Entity, Id, NonEmpty, Text


class SparkSettings(Entity):
    """How to get a Spark session where none is active."""

    master: NonEmpty | None = None
    remote: NonEmpty | None = None
    conf: dict[str, Text] = Field(default_factory=dict)


class LogSettings(Entity):
    """The logs of Spark sessions."""

    keep: int = Field(30, ge=1, description="How many logs stay in .tallybook/logs/; each start of Spark makes one.")


class Settings(Entity):
    """Everything a workspace can set; each has an environment variable `TALLYBOOK_…` that wins."""

    name: NonEmpty
    store: NonEmpty | None = Field(None, description="Metadata store URL; default: an SQLite file in .tallybook/.")
    sandbox: NonEmpty = ".tallybook/sandbox"
    calendar: Id | None = None
    spark: SparkSettings = SparkSettings()
    logs: LogSettings = LogSettings()
