"""Whatever stands in a workspace's files, checking them ends in problems, never in an exception."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallybook.errors import Problem
from tallybook.workspace import Workspace

SOUND = Path(__file__).parents[1] / "golden" / "workspace"
PROJECT = """\
project:
  id: close
  name: Close
  input_dataset_id: sales-orders
  selectors: {small: amount < 10}
  resolver_overrides: {customers: by-name}
  operations:
    - id: op-1
      seq: 1
      name: Enrich
      type: update
      selector: "{{small}} AND c.tier = 'gold'"
      arguments:
        joins: [{alias: c, dataset_id: customers, on: orders.customer_id = c.id}]
        assignments: [{column: net, expression: amount * 0.9}]
    - seq: 2
      name: Sum
      type: aggregate
      arguments: {group_by: [region], aggregations: [{column: total, expression: SUM(net)}]}
    - seq: 3
      name: Add
      type: append
      arguments:
        source: {dataset_id: budgets, dataset_version: 1}
        source_selector: owner IS NULL
        aggregation: {group_by: [region], aggregations: [{column: amount, expression: SUM(amount)}]}
    - {seq: 4, name: Remove, type: delete, selector: amount = 0}
    - seq: 5
      name: Write
      type: output
      arguments: {destination: {location: "o/{{period}}.delta"}, columns: [region, net], register_as_dataset: out}
"""
FILES = {"project.yaml": PROJECT, **{path.name: path.read_text() for path in sorted(SOUND.glob("*.yaml"))}}
CHARACTERS = "{}[]'\"|>#\n~\t\r\0😀\ufeff\u2028\x85=(),@`%&*"
WORDS = [
    "null",
    "true",
    "-1",
    "1e9",
    "0x1",
    "project",
    "dataset",
    "id",
    "seq",
    "type",
    "update",
    "_period",
    "{{",
    "}}",
    "*a",
]
PIECES = st.sampled_from(
    [*CHARACTERS, *WORDS, ": ", "- ", "? ", "&a ", "!!int ", "\n  ", "---\n", "%YAML 1.1\n", "<<: "]
)


@contextmanager
def workspace(files: dict[str, str]) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    try:
        for name, text in files.items():
            (folder / name).write_bytes(text.encode("utf-8", errors="surrogatepass"))
        yield folder
    finally:
        shutil.rmtree(folder)


def problems_of(files: dict[str, str]) -> list[Problem]:
    with workspace(files) as folder:
        problems = Workspace.open(folder).validate()
    for problem in problems:
        assert str(problem)
        assert problem.to_json()["type"] == problem.type
        assert problem.place is None or (problem.place.line >= 1 and problem.place.column >= 1)
    return problems


def test_the_files_are_sound_as_they_stand() -> None:
    assert problems_of(FILES) == []


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, str]:
    """The files with a few stretches of one of them replaced."""
    name = draw(st.sampled_from(sorted(FILES)))
    text = FILES[name]
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        new = draw(
            st.one_of(PIECES, st.text(max_size=5), st.sampled_from(FILES[name].split()).map(lambda word: f" {word} "))
        )
        text = text[:start] + new + text[end:]
    return {**FILES, name: text}


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(["update", "path"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def replaced(draw: st.DrawFn) -> dict[str, str]:
    """The files with the value after one of their colons replaced by any other."""
    name = draw(st.sampled_from(sorted(FILES)))
    text = FILES[name]
    colons = [index for index in range(len(text)) if text.startswith(": ", index)]
    at = draw(st.sampled_from(colons)) + 2
    end = min((text.find(mark, at) for mark in (",", "}", "]", "\n") if text.find(mark, at) >= 0), default=len(text))
    return {**FILES, name: text[:at] + json.dumps(draw(VALUES)) + text[end:]}


def _holds(cases: int) -> settings:
    return settings(
        max_examples=cases, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
    )


@_holds(300)
@given(damaged())
def test_damaged_text(files: dict[str, str]) -> None:
    problems_of(files)


@_holds(300)
@given(replaced())
def test_any_value_anywhere(files: dict[str, str]) -> None:
    problems_of(files)


@_holds(200)
@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=30).map("".join)))
def test_any_text_as_a_file(text: str) -> None:
    problems_of({"tallybook.yaml": "name: n\n", "any.yaml": text})


@pytest.mark.long
@_holds(20_000)
@given(st.one_of(damaged(), replaced()))
def test_many_more(files: dict[str, str]) -> None:
    problems_of(files)
