"""`tallybook.yaml`: the settings of a workspace."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from tallybook.model.base import Entity, Id, NonEmpty, Text


def _plain_name(name: str) -> str:
    """Returns the name; ValueError for one that looks like another name on a screen."""
    if name != name.strip() or not name.isprintable():
        raise ValueError("a name has no control characters and no line breaks, and no spaces at its ends")
    return name


WorkspaceName = Annotated[Text, StringConstraints(min_length=1, max_length=100), AfterValidator(_plain_name)]


ClassArchive = Literal["auto", "use", "off"]


class SparkSettings(Entity):
    """How to start a Spark session if none is active."""

    master: NonEmpty | None = None
    remote: NonEmpty | None = None
    conf: dict[str, Text] = Field(default_factory=dict)
    class_archive: ClassArchive = Field(
        "auto",
        description="Spark starts faster with an archive of its classes in the cache folder. auto uses one and makes "
        "it in the background, use makes none, off does neither.",
    )


class LogSettings(Entity):
    """The logs of Spark sessions."""

    keep: int = Field(30, ge=1, description="How many logs stay in .tallybook/logs/; each start of Spark makes one.")


class Settings(Entity):
    """Everything a workspace can set; each has an environment variable `TALLYBOOK_…` that wins."""

    name: WorkspaceName
    store: NonEmpty | None = Field(None, description="Metadata store URL; default: an SQLite file in .tallybook/.")
    sandbox: NonEmpty = ".tallybook/sandbox"
    calendar: Id | None = None
    spark: SparkSettings = SparkSettings()
    logs: LogSettings = LogSettings()
