"""The JSON Schemas that the product publishes: of the YAML files, and of the document of every command."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from tallybook.documents.batches import BatchDocument, BatchPlanDocument
from tallybook.documents.clean import Cleanup
from tallybook.documents.datasources import CheckedDatasources, DatasourceList
from tallybook.documents.definitions import (
    AppliedChanges,
    DatasetList,
    DatasetVersions,
    ExpressionMeaning,
    NewWorkspace,
    SchemaDocument,
    Validation,
)
from tallybook.documents.doctor import Examination
from tallybook.documents.events import EventDocument
from tallybook.documents.lifecycle import JoinedStore, PeriodList, PeriodState, RenamedWorkspace, UpgradedStore
from tallybook.documents.logs import LogLine
from tallybook.documents.plan import PlanDocument
from tallybook.documents.problems import ErrorDocument
from tallybook.documents.runs import (
    CompletedRuns,
    ReplayDocument,
    RunDetailsDocument,
    RunListDocument,
)
from tallybook.documents.scenarios import TestReport
from tallybook.documents.session import StoppedSessions, WarmSessions, WarmSessionState
from tallybook.model.state import ProjectState
from tallybook.project.schema import DIALECT, definitions_schema, settings_schema
from tallybook.scenarios.model import Scenario

DOCUMENTS: dict[str, Any] = {
    "init": NewWorkspace,
    "validate": Validation,
    "plan": PlanDocument,
    "run": CompletedRuns | BatchDocument | BatchPlanDocument,
    "test": TestReport,
    "session start": WarmSessionState,
    "session status": WarmSessions,
    "session stop": StoppedSessions,
    "apply": AppliedChanges,
    "activate": ProjectState,
    "deactivate": ProjectState,
    "runs": RunListDocument | RunDetailsDocument,
    "replay": ReplayDocument,
    "datasets": DatasetList | DatasetVersions,
    "datasources": DatasourceList,
    "datasources check": CheckedDatasources,
    "period": PeriodList | PeriodState,
    "store upgrade": UpgradedStore,
    "store join": JoinedStore,
    "store rename": RenamedWorkspace,
    "doctor": Examination,
    "clean": Cleanup,
    "schema": SchemaDocument,
    "expr": ExpressionMeaning,
}
"""What each command prints when it succeeds. Any of them prints an `ErrorDocument` when it fails."""
OTHERS: dict[str, tuple[Any, str]] = {
    "error": (ErrorDocument, "Tallybook error"),
    "event": (EventDocument, "a line of tallybook run --events FILE"),
    "log": (LogLine, "a line on standard error with --log-format json"),
}
"""Documents that do not belong to one command, with their titles."""


def yaml_schema() -> dict[str, Any]:
    """Returns the schema of the YAML of every kind of definition, scenarios included."""
    return definitions_schema({"scenario": Scenario})


def published_schemas() -> dict[str, dict[str, Any]]:
    """Returns every schema, by its file below schema/."""
    documents = {f"documents/{file_name(command)}": document_schema(command) for command in (*DOCUMENTS, *OTHERS)}
    return {
        "tallybook.schema.json": yaml_schema(),
        "settings.schema.json": settings_schema(),
        **documents,
    }


def file_name(command: str) -> str:
    """Returns the file below schema/documents/ for a command, or for one of `OTHERS`."""
    return f"{command.replace(' ', '-')}.schema.json"


def document_schema(command: str) -> dict[str, Any]:
    """Returns the schema of what a command prints with --json, or of one of `OTHERS`."""
    model, title = OTHERS.get(command) or (DOCUMENTS[command], f"tallybook {command} --json")
    schema = TypeAdapter(model).json_schema(mode="serialization", schema_generator=_Printed)
    untitled: dict[str, Any] = _untitled({"$schema": DIALECT} | schema)
    return untitled | {"title": title}


class _Printed(GenerateJsonSchema):
    """Removes null from the type of a key that is left out if its value is not known."""

    def model_field_schema(self, schema: core_schema.ModelField) -> dict[str, Any]:
        described: dict[str, Any] = super().model_field_schema(schema)
        choices = described.get("anyOf")
        if choices is None or schema.get("serialization_exclude_if") is None:
            return described
        [choice] = [choice for choice in choices if choice != {"type": "null"}]
        rest = {key: value for key, value in described.items() if key not in ("anyOf", "default")}
        return rest | dict(choice)


def _untitled(value: Any) -> Any:
    """Returns a schema without titles and defaults of keys: they say nothing about what is printed."""
    if isinstance(value, list):
        return [_untitled(item) for item in value]
    if not isinstance(value, dict):
        return value
    plain = {key: _untitled(item) for key, item in value.items()}
    for definition in plain.get("properties", {}).values():
        definition.pop("title", None)
        definition.pop("default", None)
    return plain
