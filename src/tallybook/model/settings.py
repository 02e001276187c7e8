"""`tallybook.yaml`: the settings of a workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from tallybook.model.base import Entity, Id, NonEmpty, Text
from tallybook.model.dataset import Status
from tallybook.model.datasource import CredentialRef


def _plain_name(name: str) -> str:
    """Returns the name; ValueError for one that looks like another name on a screen."""
    if name != name.strip() or not name.isprintable():
        raise ValueError("a name has no control characters and no line breaks, and no spaces at its ends")
    return name


WorkspaceName = Annotated[Text, StringConstraints(min_length=1, max_length=100), AfterValidator(_plain_name)]


def _known_store(url: str) -> str:
    """Returns the url; ValueError for a kind of database that cannot be a store. The url may have a secret in it."""
    if not re.match(r"(sqlite|postgres|postgresql)(\+\w+)?:", url):
        raise ValueError("a store is `sqlite:///path/to/file` or `postgresql://user@host/database`")
    return url


StoreUrl = Annotated[NonEmpty, AfterValidator(_known_store)]


Age = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,4}[dw]$")]
"""A number of days or weeks, such as `90d`."""


def age(text: str) -> timedelta:
    """Returns the time of an `Age`."""
    number = int(text[:-1])
    return timedelta(weeks=number) if text.endswith("w") else timedelta(days=number)


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


class RetentionSettings(Entity):
    """What `tallybook clean` keeps."""

    older_than: Age = Field(
        "90d", description="`tallybook clean` removes what is older: days (`90d`) or weeks (`12w`), at least one day."
    )


class DataSourceOverride(Entity):
    """What is different about a datasource in an environment. Keys that are left out stay as they are."""

    type: NonEmpty | None = Field(None, description="Another type. The options are then those given here alone.")
    options: dict[str, Any] = Field(default_factory=dict, description="Options that replace those of the datasource.")
    credential_ref: CredentialRef | None = None
    status: Status | None = None


class EnvironmentSettings(Entity):
    """What is different in an environment, such as production."""

    datasources: dict[Id, DataSourceOverride] = Field(
        default_factory=dict, description="What is different about datasources, by their ids."
    )
    store: StoreUrl | None = Field(None, description="The metadata store of the environment.")
    sandbox: NonEmpty | None = None
    spark: SparkSettings = Field(
        SparkSettings(),
        description="Spark settings that replace those of the workspace; `conf` is added to its `conf`.",
    )


class Settings(Entity):
    """Everything a workspace can set; each has an environment variable `TALLYBOOK_…` that wins."""

    name: WorkspaceName
    store: StoreUrl | None = Field(None, description="Metadata store URL; default: an SQLite file in .tallybook/.")
    sandbox: NonEmpty = ".tallybook/sandbox"
    calendar: Id | None = None
    spark: SparkSettings = SparkSettings()
    logs: LogSettings = LogSettings()
    retention: RetentionSettings = RetentionSettings()
    environments: dict[Id, EnvironmentSettings] = Field(
        default_factory=dict,
        description="Environments such as dev and prod, by name; `--env` or `TALLYBOOK_ENV` chooses one.",
    )

    def in_environment(self, name: str) -> Settings:
        """Returns the settings with those of an environment instead of the workspace's own."""
        environment = self.environments[name]
        own: Mapping[str, object] = {
            "store": environment.store or self.store,
            "sandbox": environment.sandbox or self.sandbox,
            "spark": _replaced(self.spark, environment.spark),
        }
        return self.model_copy(update=own)


def _replaced(spark: SparkSettings, other: SparkSettings) -> SparkSettings:
    """Returns Spark settings with those that an environment gives. A session is started on a master or on a remote
    server, so naming one replaces the other."""
    given = {name: getattr(other, name) for name in other.model_fields_set}
    if "master" in given or "remote" in given:
        given = {"master": None, "remote": None} | given
    return spark.model_copy(update=given | {"conf": spark.conf | other.conf})
