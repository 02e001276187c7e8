"""Text with `{{tokens}}` in it: the one reader of the braces, for period identifiers, paths and table names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_BRACES = re.compile(r"\{\{([^{}]*)\}\}|\{\{|\}\}")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")


@dataclass(frozen=True)
class Token:
    """One `{{name}}` of a template; `name` is None where braces do not pair up."""

    name: str | None
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(template: str) -> tuple[Token, ...]:
    """The tokens of a template, in order."""
    return tuple(Token(_name(match), match[0], match.start()) for match in _BRACES.finditer(template))


def variables(template: str) -> tuple[Token, ...]:
    """Every `${name}` of a text, in order. Nothing replaces them: in a path they are a mistake."""
    return tuple(Token(match[1].strip(), match[0], match.start()) for match in _VARIABLE.finditer(template))


def _name(match: re.Match[str]) -> str | None:
    return None if match[1] is None else match[1].strip()


def token_names(template: str) -> frozenset[str]:
    """The names of the well-formed tokens."""
    return frozenset(token.name for token in tokens(template) if token.name is not None)


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with each token replaced by its value; KeyError for a token without one."""
    return _BRACES.sub(lambda match: values[_name(match) or ""], template)
