"""Files that nobody should write: each ends in problems with a position, never in a traceback."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from tallybook.errors import Problem
from tallybook.workspace import Workspace

Validate = Callable[[Mapping[str, str | bytes]], list[Problem]]

TABLE = "main_table: {name: t, columns: [{name: a, type: string}]}"
HEAD = "project:\n  id: p\n  name: P\n  input_dataset_id: sales-orders\n  operations:\n"


def deleting(selector: str, head: str = HEAD) -> str:
    return f"{head}    - seq: 1\n      name: Remove\n      type: delete\n      selector: {selector}\n"


def laughs() -> str:
    """A few lines that mean a billion values."""
    names = "abcdefghij"
    lines = [f"{names[0]}: &{names[0]} [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]" for before, name in pairwise(names)]
    return "\n".join(lines)


UNREADABLE: dict[str, tuple[str | bytes, int, str]] = {
    "empty": ("", 1, "the file is empty"),
    "comments only": ("# nothing yet\n", 1, "the file is empty"),
    "separators only": ("---\n---\n", 1, "the file is empty"),
    "a text": ("hello\n", 1, "a document must be a map"),
    "a list": ("- dataset: {id: a}\n", 1, "a document must be a map"),
    "two kinds": (f"dataset: {{id: a, name: A, {TABLE}}}\ncalendar: {{}}\n", 2, "exactly one top-level key"),
    "tab as indentation": ("dataset:\n\tid: a\n", 2, "YAML does not allow a tab here"),
    "tab after the colon": ("dataset:\n  id:\ta\n", 2, "YAML does not allow a tab here"),
    "a key twice": (
        f"dataset:\n  id: a\n  id: b\n  name: A\n  {TABLE}\n",
        3,
        "the key 'id' is already defined on line 2",
    ),
    "an anchor in itself": ("dataset: &d\n  id: a\n  self: *d\n", 1, "an anchor contains itself"),
    "an alias of nothing": ("dataset: *nothing\n", 1, "there is no anchor of this name"),
    "a billion laughs": (laughs(), 1, "more than 200,000 values"),
    "10 MB": (b"# filler\n" * 1_200_000, 1, "the file has 10.8 MB; the maximum is 2 MB"),
    "deep brackets": (f"dataset: {'[' * 3000}{']' * 3000}", 1, "nested too deeply"),
    "deep maps": ("".join(f"{' ' * depth}a:\n" for depth in range(1500)), 1, "nested too deeply"),
    "a NUL byte": (b"dataset:\n  id: a\0b\n", 2, "control character 0x00"),
    "a bell": (b"dataset:\n  id: a\x07b\n", 2, "control character 0x07"),
    "Latin-1": ("dataset:\n  id: caf\xe9\n".encode("latin-1"), 2, "not UTF-8"),
    "UTF-16": ("dataset:\n  id: a\n".encode("utf-16"), 1, "not UTF-8"),
    "a second colon": ("dataset:\n  name: Orders: all\n", 2, "a second ': ' is not allowed here"),
    "a key that is indented too far": (
        "dataset:\n  id: a\n    name: b\n",
        3,
        "this key does not fit what is before it",
    ),
    "a forgotten separator": (f"dataset: {{id: a, name: A, {TABLE}}}\ndataset: {{}}\n", 2, "already defined on line 1"),
    "an open quote": ('dataset:\n  name: "Orders\n', 3, "never closed"),
    "an open bracket": ("dataset:\n  name: [Orders\n", 3, "a ',' or the closing bracket is missing"),
    "a percent sign": ("dataset:\n  name: %x\n", 2, "cannot begin a value"),
    "a list as key": (f"dataset:\n  ? [a, b]\n  : c\n  id: a\n  name: A\n  {TABLE}\n", 2, "a key must be plain text"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_is_no_document_is_one_problem(case: str, validate: Validate) -> None:
    content, line, said = UNREADABLE[case]
    first = validate({"wrong.yaml": content})[0]

    assert (first.type, first.place and first.place.file, first.place and first.place.line) == (
        "InvalidYaml",
        "wrong.yaml",
        line,
    )
    assert said in first.message


def test_characters_written_as_two_halves(validate: Validate, sound: Path) -> None:
    written = f'dataset: {{id: a, name: "\\ud83d\\ude00", {TABLE}}}\n'
    assert validate({"whole.yaml": written}) == []
    assert Workspace.open(sound).definitions.datasets["a"].entity.name == "😀"
    half = validate({"half.yaml": written.replace("id: a", "id: b").replace("\\ude00", "")})
    assert [(problem.type, problem.message) for problem in half] == [
        ("InvalidYaml", "the text contains half of a character")
    ]


def test_merge_keys_are_refused_by_name(validate: Validate) -> None:
    problems = validate({"wrong.yaml": f"dataset:\n  <<: {{id: a}}\n  id: b\n  name: B\n  {TABLE}\n"})
    assert [(problem.type, problem.message) for problem in problems] == [("InvalidYaml", "YAML 1.2 has no merge keys")]


def test_a_file_that_cannot_be_opened_is_a_problem(sound: Path) -> None:
    (sound / "gone.yaml").symlink_to(sound / "nowhere.yaml")
    [problem] = Workspace.open(sound).validate()
    assert (problem.type, problem.message) == ("InvalidYaml", "the file cannot be read: No such file or directory")


def test_what_an_unreadable_file_defines_is_not_missed_elsewhere(validate: Validate) -> None:
    broken = "dataset:\n  id: broken\n  name: Broken: really\n---\nresolver: {id: lost, x: [}\n"
    user = "project:\n  id: p\n  name: P\n  input_dataset_id: broken\n  resolver_overrides: {customers: lost}\n"
    operations = "  operations:\n    - {seq: 1, name: Remove, type: delete, selector: anything.at_all = 1}\n"

    problems = validate({"broken.yaml": broken, "project.yaml": user + operations})

    assert [(problem.type, problem.place and problem.place.file) for problem in problems] == [
        ("InvalidYaml", "broken.yaml")
    ]


def test_the_hint_for_a_key_that_is_there_twice(validate: Validate, sound: Path) -> None:
    [problem] = validate({"a.yaml": f"dataset: {{id: a, name: A, {TABLE}}}\ndataset: {{}}\n"})
    assert problem.hint == "separate documents with a line `---`"
    (sound / "a.yaml").unlink()
    [problem] = validate({"tallybook.yaml": "name: a\nname: b\n"})
    assert problem.hint == "keep one of them"


def test_a_document_of_a_misspelt_kind_is_not_missed_elsewhere(validate: Validate) -> None:
    user = "project:\n  id: p\n  name: P\n  input_dataset_id: misspelt\n"
    operations = "  operations:\n    - {seq: 1, name: Remove, type: delete, selector: anything = 1}\n"
    [problem] = validate({"a.yaml": "datset:\n  id: misspelt\n", "project.yaml": user + operations})
    assert (problem.type, problem.hint) == ("UnknownKey", "did you mean 'dataset'?")


def test_a_misspelt_type_is_found(validate: Validate) -> None:
    text = HEAD + "    - {seq: 1, name: Remove, typ: delete}\n"
    [problem] = validate({"project.yaml": text})
    assert (problem.message, problem.hint) == ("the key 'type' is missing", "write 'type' instead of 'typ'")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks_move_no_place(newline: str, mark: str, validate: Validate) -> None:
    text = mark + deleting("amount > 0 AND amuont < 9").replace("\n", newline)
    [problem] = validate({"project.yaml": text.encode()})

    assert str(problem.place) == "project.yaml:9:32"
    assert problem.place is not None
    assert problem.place.excerpt().split("\n")[1].index("^") == 31


@pytest.mark.parametrize(
    ("selector", "column"),
    [
        ("\"order_id = '😀😀' AND amuont > 0\"", 38),
        ("'order_id = \"it''s\" AND amuont > 0'", 41),
        ('"order_id = \\"x\\" AND amuont > 0"', 39),
        ("order_id = 'é' AND amuont > 0", 36),
    ],
)
def test_carets_count_characters_as_they_are_written(selector: str, column: int, validate: Validate) -> None:
    [problem] = validate({"project.yaml": deleting(selector)})
    assert problem.place is not None
    assert (problem.type, problem.place.column) == ("ColumnNotFound", column)
    assert problem.place.text[column - 1 :].startswith("amuont")


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("|\n        amount > 0\n          AND amuont < 9", "11:15"),
        (">\n        amount > 0\n        AND amuont < 9", "11:13"),
        (">-\n        amount > 0\n\n        AND amuont < 9\n", "12:13"),
        ("amount > 0\n        AND amuont < 9", "10:13"),
        ('"amount > 0\n        AND amuont < 9"', "10:13"),
        ("'order_id = ''a''\n        AND amuont < 9'", "9:17"),
    ],
)
def test_carets_reach_into_text_of_several_lines(written: str, place: str, validate: Validate) -> None:
    """Where quotes are doubled over several lines the caret stays at the beginning."""
    [problem] = validate({"project.yaml": deleting(written)})
    assert str(problem.place) == f"project.yaml:{place}"


DEEP = {
    "parentheses": f"{'(' * 1000}amount{')' * 1000} > 0",
    "calls": f"{'IF(' * 1000}TRUE{', TRUE, FALSE)' * 1000}",
    "negations": f"{'NOT ' * 1000}TRUE",
    "minus signs": f"{'-' * 1000}1 > 0",
    "a sum": " + ".join(["amount"] * 1000) + " > 0",
}


@pytest.mark.parametrize("case", DEEP)
def test_a_thousand_levels_are_a_problem(case: str, validate: Validate) -> None:
    [problem] = validate({"project.yaml": deleting(f"'{DEEP[case]}'")})
    assert (problem.type, problem.place and problem.place.line) == ("ExpressionParseError", 9)
    assert "nested more than 100 levels" in problem.message


@pytest.mark.parametrize(
    ("selector", "type"),
    [
        ("'{{small AND amount > 0'", "ExpressionParseError"),
        ("'small}} AND amount > 0'", "ExpressionParseError"),
        ("'{{}}'", "ExpressionParseError"),
        ("'{{ {{small}} }}'", "ExpressionParseError"),
        ("'{{small}} {{small}}'", "ExpressionParseError"),
        ("'{{Small}}'", "UnknownSelector"),
    ],
)
def test_braces_that_name_no_selector(selector: str, type: str, validate: Validate) -> None:
    head = HEAD.replace("  operations", "  selectors: {small: amount < 10}\n  operations")
    [problem] = validate({"project.yaml": deleting(selector, head)})
    assert (problem.type, problem.place and problem.place.line) == (type, 10)


def test_selectors_that_multiply_end_soon(validate: Validate) -> None:
    names = "".join(f"    s{i}: '{{{{s{i + 1}}}}} AND {{{{s{i + 1}}}}}'\n" for i in range(40))
    head = HEAD.replace("  operations", f"  selectors:\n{names}    s40: amount > 0\n  operations")
    start = time.monotonic()
    [problem] = validate({"project.yaml": deleting("'{{s0}}'", head)})
    assert "more than 10,000 parts" in problem.message
    assert time.monotonic() - start < 20


def test_selectors_in_a_circle_are_reported_once(validate: Validate) -> None:
    head = HEAD.replace("  operations", "  selectors: {a: 'NOT {{b}}', b: '{{c}}', c: '{{a}} OR TRUE'}\n  operations")
    [problem] = validate({"project.yaml": deleting("'{{a}} AND {{b}}'", head)})
    assert (problem.type, problem.path) == ("SelectorCycle", "project.selectors.c")
    assert "a → b → c → a" in problem.message


@pytest.mark.parametrize("path", ["/etc/passwd", "file:///etc/passwd"])
def test_paths_outside_the_workspace_are_only_paths(path: str, validate: Validate) -> None:
    """Data is often kept elsewhere; an absolute path may name such a place, and nothing is opened to find out."""
    source = f"datasource: {{id: far, type: csv, options: {{path_prefix: '{path}'}}}}\n"
    output = f"    - {{seq: 1, name: Write, type: output, arguments: {{destination: {{location: '{path}'}}}}}}\n"
    assert validate({"far.yaml": source, "project.yaml": HEAD + output}) == []


def test_an_enormous_number_is_no_seq(validate: Validate) -> None:
    for number in ("9" * 5000, str(2**31), "1e400", "0x1F"):
        [problem] = validate({"project.yaml": f"{HEAD}    - {{seq: {number}, name: Remove, type: delete}}\n"})
        assert problem.type == "InvalidSeq"
