"""The datasets a project may name: those of the files, earlier versions, and those other projects register."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tallybook.errors import Problem, did_you_mean
from tallybook.model.columns import PERIOD, VALID_FROM, VALID_TO, ColumnDef, ColumnType
from tallybook.model.dataset import Dataset, DatasetRef, Table, TemporalMode
from tallybook.operations.publication import Publication


@dataclass(frozen=True)
class DatasetVersions:
    """Versions of datasets by id and number. Operations find the datasets they name in it."""

    versions: Mapping[str, Mapping[int, Dataset]] = field(default_factory=lambda: MappingProxyType({}))
    open: frozenset[str] = frozenset()
    """Ids of datasets that a project with problems registers: some of their columns are unknown."""
    unreadable: frozenset[str] = frozenset()
    """Ids of datasets whose definition could not be read, which is a problem of its own."""

    @classmethod
    def of(cls, datasets: Mapping[str, Dataset]) -> DatasetVersions:
        """One version of each dataset."""
        return cls().with_datasets(*datasets.values())

    def with_datasets(self, *datasets: Dataset) -> DatasetVersions:
        """Returns these versions and others; one with the same id and number is replaced."""
        versions = {id: dict(numbers) for id, numbers in self.versions.items()}
        for dataset in datasets:
            versions.setdefault(dataset.id, {})[dataset.version] = dataset
        frozen = {id: MappingProxyType(numbers) for id, numbers in versions.items()}
        return replace(self, versions=MappingProxyType(frozen))

    def is_open(self, dataset_id: str) -> bool:
        return dataset_id in self.open

    def find(self, ref: DatasetRef) -> Dataset | Problem | None:
        """Returns the requested version, or the latest active one; None if its definition could not be read."""
        versions = self.versions.get(ref.dataset_id)
        if not versions and ref.dataset_id in self.unreadable:
            return None
        if not versions:
            hint = did_you_mean(ref.dataset_id, self.versions)
            message = f"there is no dataset '{ref.dataset_id}'"
            return Problem("DatasetNotFound", message, hint, subject=ref.dataset_id)
        if versions[max(versions)].status == "disabled":
            hint = "use another dataset, or give it `status: active`"
            return Problem("DatasetDisabled", f"dataset '{ref.dataset_id}' is disabled", hint)
        if ref.dataset_version is None:
            return versions[max(version for version, dataset in versions.items() if dataset.status == "active")]
        if ref.dataset_version not in versions:
            choices = ", ".join(str(version) for version in sorted(versions))
            message = f"dataset '{ref.dataset_id}' has no version {ref.dataset_version}"
            return Problem(
                "DatasetVersionNotFound", message, f"it has: {choices}; leave `dataset_version` out to use the latest"
            )
        return versions[ref.dataset_version]


def registered_dataset(output: Publication, version: int = 1) -> Dataset:
    """The dataset an output registers: its schema, and the temporal mode its written columns allow."""
    assert output.register_as is not None
    working = output.working_columns
    bounds = {"period_column": PERIOD, "valid_from_column": VALID_FROM, "valid_to_column": VALID_TO}
    return Dataset(
        id=output.register_as,
        name=output.register_as,
        main_table=Table(
            name=output.destination.table or output.register_as,
            temporal_mode=_temporal_mode(working.values()),
            columns=tuple(_column(working[name], name, type) for name, type in output.business_columns.items()),
            **{key: written for key, name in bounds.items() if (written := output.written_name(name)) is not None},
        ),
        version=version,
    )


def _column(name: str, written: str, type: ColumnType) -> ColumnDef:
    return ColumnDef(name=name, type=type, source=None if written == name else written)


def _temporal_mode(columns: Collection[str]) -> TemporalMode:
    if {VALID_FROM, VALID_TO} <= set(columns):
        return "bitemporal"
    return "period" if PERIOD in columns else "none"
