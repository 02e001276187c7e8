"""Documents about the files of a workspace and what is recorded of them: `init`, `validate`, `expr`, `apply`,
`datasets`, `schema`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, GetJsonSchemaHandler, RootModel
from pydantic_core import CoreSchema

from tallybook.documents.base import Document
from tallybook.documents.problems import ProblemDocument, Problems, listed
from tallybook.errors import Problem
from tallybook.model.state import Json, Kind, ProjectState, Registration

if TYPE_CHECKING:
    from tallybook.project.explain import Explanation
    from tallybook.project.recorded import Changes
    from tallybook.runs.history import DatasetVersion

LINK_NOT_FOLLOWED = "a link to a folder is not followed; if it holds definitions, link the files"


class NewWorkspace(Problems):
    """The workspace that `init` made."""

    workspace: str
    """Its folder."""
    files: tuple[str, ...]
    """The files in it, relative to the folder."""

    @classmethod
    def of(cls, folder: Path, files: Sequence[str]) -> NewWorkspace:
        return cls(workspace=str(folder.absolute()), files=tuple(files))


class FileWarning(Document):
    """A warning about a file."""

    message: str
    """The warning."""
    file: str
    """The file or link, relative to the workspace."""


class Validation(Problems):
    """All problems of a workspace."""

    warnings: tuple[FileWarning, ...] = Field((), exclude_if=lambda warnings: not warnings)
    """Links to folders, which are not followed; left out where there are none."""

    @classmethod
    def of(cls, problems: Sequence[Problem], links: Sequence[str]) -> Validation:
        warnings = tuple(FileWarning(message=LINK_NOT_FOLLOWED, file=link) for link in links)
        return cls(problems=listed(problems), count=len(problems), warnings=warnings)


class UsedFunction(Document):
    """A function that an expression calls."""

    name: str
    """Its name."""
    signature: str
    """How it is written."""
    meaning: str
    """What it does."""


class UsedColumn(Document):
    """A column that an expression reads."""

    name: str
    """Its name, for a lookup or join as `alias.column`."""
    type: str | None
    """Its type; null if no dataset was named."""


class ExpressionMeaning(Problems):
    """What an expression means."""

    expression: str
    """The expression, formatted."""
    type: str | None
    """The type of its value; null if that depends on columns whose types are not known."""
    aggregate: bool
    """True if it can only be used where rows are aggregated."""
    hint: str | None = None
    """What to write instead, if it mixes a total with the values of single rows."""
    functions: tuple[UsedFunction, ...]
    """The functions it calls."""
    columns: tuple[UsedColumn, ...]
    """The columns it reads."""

    @classmethod
    def of(cls, explanation: Explanation) -> ExpressionMeaning:
        return cls(
            expression=explanation.text,
            type=explanation.type and str(explanation.type),
            aggregate=explanation.aggregate,
            hint=explanation.hint,
            functions=tuple(
                UsedFunction(name=function.name, signature=function.signature, meaning=function.summary)
                for function in explanation.functions
            ),
            columns=tuple(UsedColumn(name=name, type=type and str(type)) for name, type in explanation.columns.items()),
        )


class DefinitionChange(Document):
    """A definition that differs from the version that was recorded."""

    kind: Kind
    """The kind of definition."""
    id: str
    """Its id."""
    version: int
    """The version it gets."""
    changes: tuple[str, ...]
    """What changed, in words."""


class AppliedChanges(Document):
    """What `apply` recorded, or would record."""

    changes: tuple[DefinitionChange, ...]
    """The definitions that changed."""
    projects: tuple[ProjectState, ...]
    """All projects, as they are afterwards."""
    dry_run: bool
    """True if nothing was recorded."""
    left_out: tuple[ProblemDocument, ...] = Field((), exclude_if=lambda left_out: not left_out)
    """The problems of definitions that are not recorded because of them; left out where there are none."""

    @classmethod
    def of(cls, applied: Changes, *, dry_run: bool) -> AppliedChanges:
        changes = tuple(
            DefinitionChange(kind=change.kind, id=change.id, version=change.version, changes=change.words)
            for change in applied.versions
        )
        left_out = listed(applied.left_out)
        return cls(changes=changes, projects=tuple(applied.states), dry_run=dry_run, left_out=left_out)


class RegisteredBy(Document):
    """The output that registered a dataset version."""

    run_id: str
    """The run."""
    seq: int
    """The number of the output operation."""
    project: str
    """The project of the run."""
    period: str
    """The period of the run: the version holds the rows that were written for it."""

    @classmethod
    def of(cls, made: Registration) -> RegisteredBy:
        return cls(run_id=made.run_id, seq=made.seq, project=made.project_id, period=made.period)


class DatasetVersionDocument(Document):
    """One version of a dataset."""

    id: str
    """The id of the dataset."""
    version: int
    """The number of the version."""
    status: str
    """`active` or `disabled`."""
    created_at: datetime
    """When it was recorded."""
    definition: Json
    """The dataset as its YAML has it."""
    registered_by: RegisteredBy | None
    """The output that registered it; null if it comes from a file."""
    reads: Json | None
    """Where the rows of a registered version are; null if it comes from a file."""

    @property
    def origin(self) -> str:
        """Where the version comes from, in words."""
        made = self.registered_by
        return f"registered for {made.period} by run {made.run_id}, output {made.seq}" if made else "from a file"

    @classmethod
    def of(cls, recorded: DatasetVersion) -> DatasetVersionDocument:
        definition, registration = recorded.definition, recorded.registration
        return cls(
            id=definition.id,
            version=definition.version,
            status=definition.body.get("status", "active"),
            created_at=definition.created_at,
            definition=definition.body,
            registered_by=RegisteredBy.of(registration) if registration else None,
            reads=registration.reads if registration else None,
        )


class DatasetList(Document):
    """The newest version of every recorded dataset."""

    datasets: tuple[DatasetVersionDocument, ...]
    """One entry for each dataset."""

    @classmethod
    def of(cls, recorded: Sequence[DatasetVersion]) -> DatasetList:
        return cls(datasets=tuple(map(DatasetVersionDocument.of, recorded)))


class DatasetVersions(Document):
    """All versions of one dataset."""

    dataset: str
    """The id of the dataset."""
    versions: tuple[DatasetVersionDocument, ...]
    """Its versions, oldest first."""

    @classmethod
    def of(cls, recorded: Sequence[DatasetVersion]) -> DatasetVersions:
        return cls(dataset=recorded[0].definition.id, versions=tuple(map(DatasetVersionDocument.of, recorded)))


class SchemaDocument(RootModel[dict[str, Any]]):
    """A JSON Schema."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _core: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"$ref": "https://json-schema.org/draft/2020-12/schema"}
