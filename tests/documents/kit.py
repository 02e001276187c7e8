"""Holds what commands print with --json against the committed schemas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tallybook.documents.schema import DOCUMENTS, file_name

SCHEMAS = Path(__file__).parents[2] / "schema"


@cache
def schema_of(command: str) -> Draft202012Validator:
    """The committed schema of a command's document, or of `error`, `event` or `log`."""
    text = (SCHEMAS / "documents" / file_name(command)).read_text(encoding="utf-8")
    return Draft202012Validator(json.loads(text), format_checker=Draft202012Validator.FORMAT_CHECKER)


def command_of(args: Sequence[str]) -> str | None:
    """The command in the arguments of the command line; None if there is none of that name."""
    words = [arg for arg in args if not arg.startswith("-")]
    return next((name for name in (" ".join(words[:2]), *words[:1]) if name in DOCUMENTS), None)


def read_document(args: Sequence[str], code: int, printed: str) -> Any:
    """The document that a command printed. It must follow the command's schema; if the command failed it may instead
    be the document of an error."""
    document = json.loads(printed)
    command = command_of(args)
    is_error = command is None or (code != 0 and schema_of("error").is_valid(document))
    schema_of("error" if is_error else str(command)).validate(document)
    return document
