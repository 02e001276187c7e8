"""Files and documents that could not be read, and what they may define.

Nobody knows for sure what a broken file defines. A project may run only if none of them can change its meaning, so
the questions here are answered with "maybe" where the text leaves a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tallybook.errors import Problem, did_you_mean
from tallybook.model.base import as_text
from tallybook.project.entities import DocumentPart

_ESCAPED = re.compile(r"\\[xuU]")
"""An escape that can write any character of a key or an id."""
_GIVEN_ID = re.compile(r"\bid[\"']?\s*:\s*[\"']?([\w.-]+)")
_WORD = re.compile(r"\w+")
_DEFAULT = "is_default"


@dataclass(frozen=True)
class Unread:
    """A file, folder or document that could not be read, with its problems."""

    file: str
    problems: tuple[Problem, ...]
    kind: str | None = None
    """The kind of a single document; None for a whole file."""
    id: str | None = None
    """The id of a single document; None if that is not known."""
    text: str | None = None
    """What is written there; None if that is not known."""
    any_kind: bool = False
    """True for a file with a document of a kind that does not exist: its key may be misspelt."""

    @classmethod
    def of_file(
        cls, file: str, problems: tuple[Problem, ...], content: bytes | None = None, *, any_kind: bool = False
    ) -> Unread:
        """A file with problems that concern all its documents; without `content`, one that could not be opened."""
        try:
            text = None if content is None else content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = None
        return cls(file, problems, text=text, any_kind=any_kind)

    @classmethod
    def of_document(cls, part: DocumentPart, *problems: Problem) -> Unread:
        """A document that is not a definition, or defines again what another one defines."""
        body = part.value()
        id = body.get("id") if isinstance(body, dict) else None
        return cls(part.document.file, problems, str(part.path[0]), None if id is None else str(as_text(id)), str(body))

    @property
    def is_file(self) -> bool:
        return self.kind is None

    def may_define(self, kind: str, id: str) -> bool:
        """True if a document of this kind and id may be here."""
        if self.kind is not None:
            return self.kind == kind and self.id in (None, id)
        return self._may_have(kind) and self.mentions(id)

    def may_define_again(self, kind: str, id: str) -> bool:
        """True if a document that was read may be here a second time. A mere use of the id does not count."""
        if self.kind is not None or self.text is None:
            return self.kind == kind and self.id == id
        return self._may_have(kind) and id in _GIVEN_ID.findall(self.text)

    @property
    def may_be_default(self) -> bool:
        """True if a default resolver may be here."""
        return (self._may_have("resolver") if self.is_file else self.kind == "resolver") and self.mentions(_DEFAULT)

    def may_register(self, dataset_id: str) -> bool:
        """True if a project that registers this dataset may be here."""
        is_project = self._may_have("project") if self.is_file else self.kind == "project"
        return is_project and self.mentions(dataset_id)

    @property
    def may_have_scenarios(self) -> bool:
        return self._may_have("scenario") if self.is_file else False

    def mentions(self, name: str) -> bool:
        """True if the name may be written here."""
        return self.text is None or name in self.text or _ESCAPED.search(self.text) is not None

    def _may_have(self, kind: str) -> bool:
        text = self.text
        return self.any_kind or text is None or _ESCAPED.search(text) is not None or kind in _WORD.findall(text)


def missing_project(id: str, projects: Mapping[str, Any], unread: tuple[Unread, ...], where: str = "") -> list[Problem]:
    """Returns why there is no project of an id: a file that may define it, else that it does not exist."""
    broken = [problem for file in unread if file.may_define("project", id) for problem in file.problems]
    reason = f"project '{id}' may be defined here"
    if broken:
        return [problem if problem.project == id else because(problem, reason) for problem in broken]
    return [Problem("ProjectNotFound", f"there is no project '{id}'{where}", did_you_mean(id, projects))]


def may_give_dataset(id: str, unread: Iterable[Unread]) -> Iterator[Problem]:
    """Yields the problems of what may define a dataset, or may have a project that registers it."""
    for one in unread:
        if one.may_define("dataset", id):
            yield from (because(problem, f"dataset '{id}' may be defined here") for problem in one.problems)
        elif one.may_register(id):
            reason = f"dataset '{id}' may be registered by a project here"
            yield from (because(problem, reason) for problem in one.problems)


def because(problem: Problem, reason: str) -> Problem:
    """Returns a problem with the reason why it concerns the caller."""
    return replace(problem, message=f"{problem.message} ({reason})")


def repeats(problem: Problem, message: str) -> bool:
    """True if a problem has this message, with or without a reason."""
    return problem.message == message or problem.message.startswith(f"{message} (")
