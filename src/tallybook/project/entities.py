"""Turns YAML values into strict entities, and pydantic's errors into problems with positions and suggestions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from tallybook.errors import PROBLEM_TYPES, Problem, did_you_mean
from tallybook.model.base import NOT_BLANK
from tallybook.operations.registry import follow
from tallybook.project.yaml import Document, Path
from tallybook.secrets import REFERENCE
from tallybook.source import Place, SourceText, path_text

E = TypeVar("E")
OTHER_NAMES = {"arguments": "parameters", "seq": "order"}
"""Other accepted names of keys."""


@dataclass(frozen=True)
class DocumentPart:
    """A part of a document: the whole body, or one operation in it."""

    document: Document
    path: Path

    def find(self, path: Sequence[str | int]) -> Path:
        """Returns the path in the document, with other names of keys where the document uses them."""
        path_so_far = self.path
        for part in path:
            other = OTHER_NAMES.get(str(part), part)
            there = (*path_so_far, part) in self.document.nodes or (*path_so_far, other) not in self.document.nodes
            path_so_far = (*path_so_far, part if there else other)
        return path_so_far

    def place(self, path: Sequence[str | int] = (), *, key: bool = False) -> Place:
        return self.document.place(self.find(path), key=key)

    def text(self, path: Sequence[str | int]) -> SourceText | None:
        return self.document.text(self.find(path))

    def value(self) -> Any:
        value = self.document.value
        for part in self.path:
            value = value[part]
        return value

    def below(self, *path: str | int) -> DocumentPart:
        return DocumentPart(self.document, self.find(path))

    def problem(
        self, path: Sequence[str | int], type: str, message: str, hint: str | None = None, *, key: bool = False
    ) -> Problem:
        """A problem at a path of this part."""
        return Problem(type, message, hint, self.place(path, key=key), path=path_text(self.find(path)))

    def locate(self, problem: Problem, *path: str | int) -> Problem:
        """Adds a path and position to a problem; the problem's own path continues from there."""
        steps = (*path, *problem.path.split(".")) if problem.path else path
        return replace(problem, path=path_text(self.find(steps)), place=problem.place or self.place(steps))


@dataclass(frozen=True)
class Entry(Generic[E]):
    """An entity and the document it was read from."""

    entity: E
    part: DocumentPart


def read_entity(type: Any, part: DocumentPart, value: Any = None) -> tuple[Any | None, list[Problem]]:
    """Reads an entity from a part of a document; returns it and all problems. Unknown keys do not hide the rest."""
    raw = part.value() if value is None else value
    try:
        return _adapter(type).validate_python(raw), []
    except ValidationError as error:
        errors = _telling(error.errors(), type)
    problems = [_problem(details, type, part) for details in errors]
    if any(details["type"] != "extra_forbidden" for details in errors):
        return None, problems
    for details in errors:
        raw = _without(raw, _route(type, details["loc"]).path)
    return read_entity(type, part, raw)[0], problems


def _telling(errors: Sequence[ErrorDetails], type: Any) -> list[ErrorDetails]:
    """Keeps the errors that help: of several possible forms, those of the nearest one; no "too short" for a list with
    wrong items."""
    by_form: dict[Path, dict[str, list[ErrorDetails]]] = {}
    for details in errors:
        if details["type"] != "too_short" or not details["input"]:
            route = _route(type, details["loc"])
            by_form.setdefault(route.choice or details["loc"], {}).setdefault(route.form, []).append(details)
    return [details for forms in by_form.values() for details in min(forms.values(), key=len)]


def _without(value: Any, path: Sequence[str | int]) -> Any:
    """Returns the value without the part at a path."""
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if rest or key != step}
        return kept | {str(step): _without(value[str(step)], rest)} if rest else kept
    return tuple(_without(item, rest) if index == step else item for index, item in enumerate(value))


@cache
def _adapter(type: Any) -> TypeAdapter[Any]:
    """Caches adapters, because building one takes longer than reading with it."""
    return TypeAdapter(type)


follow(_adapter.cache_clear)


def _problem(details: ErrorDetails, type: Any, part: DocumentPart) -> Problem:
    kind = details["type"]
    route = _route(type, details["loc"])
    path = route.path
    if kind == "extra_forbidden":
        return _unknown_key(details, type, part, path)
    if kind == "missing":
        below = _keys(route.entity)
        hint = f"its keys: {', '.join(below)}" if below else None
        return _at(part, path, Problem("InvalidArguments", f"the key '{path[-1]}' is missing", hint), key=True)
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _wrong_tag(details, part, path)
    message, hint = _friendly(details)
    type_name = kind if kind in PROBLEM_TYPES else "InvalidArguments"
    return _at(part, path, Problem(type_name, message, hint))


def _unknown_key(details: ErrorDetails, type: Any, part: DocumentPart, path: Path) -> Problem:
    *above, key = details["loc"]
    first = next((name for name, other in OTHER_NAMES.items() if other == key), None)
    if first is not None and part.find((*path[:-1], first)) in part.document.nodes:
        message = f"'{first}' and '{key}' are two names for the same key"
        return _at(part, path, Problem("InvalidArguments", message, "keep one of them"), key=True)
    choices = _keys(_route(type, above).entity)
    hint = did_you_mean(str(key), choices) or (
        f"use one of: {', '.join(choices)}" if choices else "no key is allowed here"
    )
    return _at(part, path, Problem("UnknownKey", f"unknown key '{key}'", hint), key=True)


def _at(part: DocumentPart, path: Sequence[str | int], problem: Problem, *, key: bool = False) -> Problem:
    return problem.within(place=part.place(path, key=key), path=path_text((*part.path, *path)))


def _wrong_tag(details: ErrorDetails, part: DocumentPart, path: tuple[str | int, ...]) -> Problem:
    context = details.get("ctx", {})
    key = str(context.get("discriminator", "type")).strip("'")
    if details["type"] == "union_tag_not_found":
        if not isinstance(details["input"], Mapping):
            return _at(part, path, Problem("InvalidArguments", "this must be a map of keys and values"))
        near = difflib.get_close_matches(key, map(str, details["input"]), n=1, cutoff=0.75)
        hint = f"write '{key}' instead of '{near[0]}'" if near else None
        return _at(part, path, Problem("InvalidArguments", f"the key '{key}' is missing", hint), key=True)
    tag = str(context.get("tag"))
    choices = re.findall(r"'([^']+)'", str(context.get("expected_tags", "")))
    return _at(
        part, (*path, key), Problem("InvalidArguments", f"'{tag}' is not a known {key}", did_you_mean(tag, choices))
    )


_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a map of keys and values",
    "model_type": "a map of keys and values",
    "model_attributes_type": "a map of keys and values",
    "date_type": "a date such as 2026-01-31",
}


def _friendly(details: ErrorDetails) -> tuple[str, str | None]:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    name = details["loc"][-1] if details["loc"] else "this"
    what = "this item" if isinstance(name, int) else f"'{name}'"
    if kind in _EXPECTED:
        actual = "nothing" if value is None else f"{_shape(value)}"
        return f"{what} must be {_EXPECTED[kind]}, but it is {actual}", None
    if kind == "literal_error":
        choices = re.findall(r"'([^']+)'", str(context.get("expected", "")))
        return f"'{value}' is not a valid value for {what}", did_you_mean(str(value), choices)
    if kind == "string_pattern_mismatch" and context.get("pattern") == NOT_BLANK:
        return f"{what} must not be blank", None
    if kind == "string_pattern_mismatch":
        return f"'{value}' is not a valid value for {what}", _PATTERNS.get(str(context.get("pattern")))
    if kind in ("string_too_short", "too_short"):
        return f"{what} must not be empty", None
    if kind in ("string_too_long", "too_long") and isinstance(value, str):
        return f"{what} must have at most {context.get('max_length')} characters", None
    if kind == "greater_than_equal":
        return f"{what} must be at least {context.get('ge')}", None
    said = details["msg"].removeprefix("Value error, ")
    if kind == "column_type" and str(value).count("(") > str(value).count(")"):
        return f"{what}: {said}", 'inside {…}, put a type with a comma in quotes: "decimal(18,2)"'
    return said if kind in PROBLEM_TYPES else f"{what}: {said}", _HINTS.get(kind)


_HINTS = {"InvalidSeq": "operations run in ascending seq, such as 10, 20, 30"}
_PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "use letters, digits, '.', '_' and '-', and begin with a letter or digit",
    REFERENCE: "write a reference to the secret: env:NAME or file:PATH",
}


def _shape(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    return f"'{getattr(value, 'text', value)}'"


@dataclass(frozen=True)
class _Route:
    """The path of an error in the document, without the names of union members that pydantic inserts."""

    path: Path
    entity: type[BaseModel] | None
    choice: Path = ()
    form: str = ""
    """The first point at which the value can have several forms, and the form of this error."""


def _route(annotation: Any, loc: Sequence[str | int], path: Path = ()) -> _Route:
    origin, args = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not loc:
            return _Route(path, annotation)
        field = next((f for name, f in annotation.model_fields.items() if loc[0] in _names(name, f)), None)
        return _route(field.annotation if field is not None else None, loc[1:], (*path, loc[0]))
    if origin is Annotated:
        return _route(args[0], loc, path)
    if origin in (Union, UnionType):
        meant = next((arg for arg in args if loc and loc[0] in _tags(arg)), None)
        if meant is None:
            return _route(next(arg for arg in args if arg is not NoneType), loc, path)
        return replace(_route(meant, loc[1:], path), choice=(*path, "|"), form=str(loc[0]))
    if origin in (tuple, list, dict) and loc:
        return _route(args[0] if origin is not dict else args[1], loc[1:], (*path, loc[0]))
    return _Route((*path, *loc), None)


def _tags(annotation: Any) -> set[object]:
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return set()
    tag = annotation.model_fields.get("type")
    return {annotation.__name__, *(get_args(tag.annotation) if tag is not None else ())}


def _names(name: str, field: FieldInfo) -> set[object]:
    alias = field.validation_alias
    return {name, *(alias.choices if isinstance(alias, AliasChoices) else [alias] if alias else [])}


def _keys(entity: type[BaseModel] | None) -> list[str]:
    """Returns the keys that a user can write, by the first name of each field."""
    if entity is None:
        return []
    return [field.alias or name for name, field in entity.model_fields.items()]
