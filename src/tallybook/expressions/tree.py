"""The expression tree: frozen nodes, each with its position in the source. Equality ignores positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from tallybook.source import Place, SourceText


@dataclass(frozen=True)
class Span:
    """A stretch of a source text."""

    source: SourceText
    start: int
    end: int

    @property
    def place(self) -> Place | None:
        return self.source.at(self.start, self.end)

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]


NOWHERE = Span(SourceText(""), 0, 0)


@dataclass(frozen=True, kw_only=True)
class Node:
    """Base of all nodes."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)
    depth: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True)
class Literal(Node):
    """A number, text, TRUE, FALSE or NULL. Decimals keep their written digits."""

    value: int | Decimal | str | bool | None

    def __eq__(self, other: object) -> bool:
        """`1`, `1.0` and `TRUE` are different literals, though Python calls them equal."""
        return isinstance(other, Literal) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True)
class ColumnName(Node):
    """`column`, `table.column`."""

    parts: tuple[str, ...]


@dataclass(frozen=True)
class Call(Node):
    """A function or operator applied to arguments. Operators are functions with names such as `+` or `IS NULL`."""

    name: str
    args: tuple[Node, ...]
    operator: bool = False


@dataclass(frozen=True)
class Over(Node):
    """`SUM(amount) OVER (region)`: an aggregate over the rows that have the same keys."""

    call: Call
    keys: tuple[ColumnName, ...]


@dataclass(frozen=True)
class Star(Node):
    """The `*` of COUNT(*)."""


@dataclass(frozen=True)
class Named(Node):
    """A named selector `{{name}}`; `body` is its expression once expanded."""

    name: str
    body: Node | None = None


def quote(name: str) -> str:
    """Quotes a name with backquotes, for an expression or for SQL, so that it may contain any character."""
    return "`" + name.replace("`", "``") + "`"


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    if isinstance(node, Call):
        for arg in node.args:
            yield from walk(arg)
    elif isinstance(node, Over):
        yield from walk(node.call)
        yield from node.keys
    elif isinstance(node, Named) and node.body is not None:
        yield from walk(node.body)
