"""The places of a run: where tables are read, and where outputs go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from pydantic import TypeAdapter

from tallybook.model.dataset import Dataset
from tallybook.model.datasource import DataSource, FileOptions, FileSource, format_of
from tallybook.model.location import Location
from tallybook.model.period import Calendar, Period
from tallybook.model.resolver import Resolver
from tallybook.model.state import Json
from tallybook.operations.output import OutputStep
from tallybook.operations.schema import SourceTable
from tallybook.resolve.locate import path_target, table_target, usable_source
from tallybook.resolve.match import Evaluate
from tallybook.resolve.pick import pick_resolver
from tallybook.resolve.render import render
from tallybook.resolve.resolve import resolve
from tallybook.storage.delta import current_version

_DATASOURCE: TypeAdapter[DataSource] = TypeAdapter(DataSource)


@dataclass(frozen=True)
class Places:
    """Finds places for one period of one workspace."""

    root: Path
    period: Period
    calendar: Calendar
    resolvers: Mapping[str, Resolver]
    overrides: Mapping[str, str]
    datasources: Mapping[str, DataSource]
    registered: Mapping[tuple[str, int], Location]
    """Where the rows of registered dataset versions stay readable, by dataset id and version."""
    evaluate: Evaluate
    sandbox: Path | None = None
    """Where outputs of a draft go instead of their destinations."""

    def of_table(self, source: SourceTable) -> tuple[Location, ...]:
        """Where the rows of a table lie; Delta tables at the version they have now, so that a replay reads the same."""
        dataset = source.dataset
        kept = self.registered.get((dataset.id, dataset.version))
        if kept is not None:
            return (kept,)
        found = resolve(
            source.table.name,
            dataset.id,
            self.period,
            calendar=self.calendar,
            resolver=self.resolver_of(dataset),
            datasources=self.datasources,
            evaluate=self.evaluate,
            root=self.root,
        )
        return tuple(replace(place, version=current_version(place)) for place in found)

    def resolver_of(self, dataset: Dataset) -> Resolver:
        return pick_resolver(dataset.id, dataset.resolver_id, self.overrides, self.resolvers)

    def of_output(self, step: OutputStep, input_dataset_id: str) -> Location:
        """Where an output goes."""
        destination = step.destination

        def rendered(template: str) -> str:
            return render(template, self.period, destination.table or "", input_dataset_id)

        if destination.location is None:
            assert destination.datasource_id is not None and destination.table is not None
            source = usable_source(destination.datasource_id, self.datasources)
            table = rendered(destination.table)
            if self.sandbox is None:
                return Location(source, table_target(source, table, None, self.root))
            return self._sandboxed(step, table, source)
        place = destination.location
        path = rendered(place.path)
        options = FileOptions(
            path_prefix=".", delimiter=place.delimiter, has_header=place.has_header, null_value=place.null_value
        )
        source = FileSource(id="location", type=place.format or format_of(path), options=options)
        if self.sandbox is None:
            return Location(source, path_target(path, self.root))
        return self._sandboxed(step, PurePosixPath(path).name, source)

    def _sandboxed(self, step: OutputStep, name: str, source: DataSource) -> Location:
        """The same format, in a folder of the sandbox; tables of databases and catalogs become Parquet there."""
        if not isinstance(source, FileSource):
            source = FileSource(id=source.id, type="parquet", options=FileOptions(path_prefix="."))
        assert self.sandbox is not None
        return Location(source, str(self.sandbox / self.period.identifier / f"{step.seq}-{name}"))


def location_to_json(location: Location) -> Json:
    """A place as the store keeps it; datasources hold references to secrets, never secrets."""
    return {
        "source": location.source.model_dump(mode="json", by_alias=True),
        "target": location.target,
        "period": location.period,
        "resolver": location.resolver,
        "rule": location.rule,
        "on_missing": location.on_missing,
        "version": location.version,
    }


def location_from_json(body: Json) -> Location:
    """The place the store kept."""
    source = _DATASOURCE.validate_python(body["source"], strict=False)
    return Location(source, *(body[key] for key in ("target", "period", "resolver", "rule", "on_missing", "version")))
