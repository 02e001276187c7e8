"""Writes the results into a scenario that has no `expect` yet, and leaves every other byte of the file unchanged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from tallybook.errors import Problem
from tallybook.model.written import written
from tallybook.project.entities import DocumentPart
from tallybook.scenarios.run import Actual, Captured
from tallybook.scenarios.suite import Outcome

_WIDTH = 120
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*([ /-][A-Za-z0-9_.]+)*")
_NOT_TEXT = {"null", "true", "false"}


def record(root: Path, outcomes: Sequence[Outcome]) -> list[Problem]:
    """Adds `expect` to each scenario, the last of a file first; returns a problem for each that cannot be edited."""
    problems = []
    for outcome in sorted(outcomes, key=lambda outcome: -outcome.case.part.place(key=True).line):
        part = outcome.case.part
        if not _takes_more(part):
            hint = "write it without braces, one key on a line"
            problems.append(
                part.problem((), "InvalidArguments", "`expect` cannot be added to a scenario in braces", hint)
            )
            continue
        assert outcome.actual is not None
        _insert(root / outcome.case.file, part, expectation(outcome.actual))
    return problems


def _takes_more(part: DocumentPart) -> bool:
    node = part.document.nodes[part.path][1]
    return isinstance(node, MappingNode) and not node.flow_style


def expectation(actual: Actual) -> list[str]:
    """Returns the lines of `expect`: the rows of the last output, then of earlier outputs."""
    lines = ["expect:", *_indented(_rows(actual.result))]
    others = [captured for seq, captured in sorted(actual.outputs.items()) if captured is not actual.result]
    if others:
        lines.append("  outputs:")
        for captured in others:
            lines += [f"    {captured.seq}:", *_indented(_rows(captured), 6)]
    return lines


def _indented(lines: Iterator[str], by: int = 2) -> Iterator[str]:
    return (" " * by + line for line in lines)


def _rows(captured: Captured) -> Iterator[str]:
    """Yields the lines of rows, without system columns and columns that are always NULL."""
    columns = [
        name
        for name in captured.columns
        if not name.startswith("_") and any(row[name] is not None for row in captured.rows)
    ]
    if not captured.rows:
        yield "rows: []"
        return
    yield "rows:"
    for row in captured.rows:
        cells = {name: _scalar(row[name]) for name in columns}
        yield from _row(cells)


def _row(cells: Mapping[str, str]) -> Iterator[str]:
    line = "  - {" + ", ".join(f"{name}: {text}" for name, text in cells.items()) + "}"
    if len(line) <= _WIDTH - 10:
        yield line
        return
    for index, (name, text) in enumerate(cells.items()):
        yield f"  {'-' if index == 0 else ' '} {name}: {text}"


def _scalar(value: object) -> str:
    """Returns a value as YAML that reads back as the same value; text is quoted where it is ambiguous."""
    if value is None:
        return "null"
    if isinstance(value, str):
        simple = _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT
        return value if simple else _quoted(value)
    return written(value)


def _quoted(text: str) -> str:
    """Quotes text, and escapes characters that YAML refuses or treats as line ends, and invisible ones."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)


def _insert(path: Path, part: DocumentPart, lines: Sequence[str]) -> None:
    """Inserts lines after the last line of the scenario, with its indentation and the file's line ends."""
    text = path.read_bytes().decode("utf-8")
    end = "\r\n" if "\r\n" in text else "\n"
    key = part.document.nodes[(*part.path, next(iter(part.value())))][0]
    assert key is not None
    indent = " " * key.start_mark.column
    at = _last_line(part) + 1
    existing = text.split("\n")
    tail = "\n".join(existing[at:])
    head = "\n".join(existing[:at]).removesuffix("\r")
    added = end.join(indent + line for line in lines)
    path.write_bytes((head + end + added + (end if tail or text.endswith("\n") else "") + tail).encode("utf-8"))


def _last_line(part: DocumentPart) -> int:
    """Returns the line on which the last value of the scenario ends."""
    nodes = (node for path, (_, node) in part.document.nodes.items() if path[: len(part.path)] == part.path)
    closed = (node for node in nodes if isinstance(node, ScalarNode) or getattr(node, "flow_style", False))
    return max(_end(node, part.document.lines) for node in closed)


def _end(node: Node, lines: Sequence[str]) -> int:
    end = int(node.end_mark.line)
    if node.end_mark.column > 0 or end == node.start_mark.line:
        return end
    return max(at for at in range(node.start_mark.line, end) if lines[at].strip())
