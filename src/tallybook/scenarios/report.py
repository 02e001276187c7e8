"""What became of scenarios, for people, as JSON and as JUnit XML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from xml.etree import ElementTree

from tallybook.scenarios.compare import CellDifference, Difference, RowDifference
from tallybook.scenarios.suite import Outcome
from tallybook.scenarios.values import plain, show

Mark = Callable[[str], str]
"""Makes a differing cell stand out, on a screen that can."""

_WIDTH = 116
_ROWS_SHOWN = 10
_INDENT = "    "


def failure_text(outcome: Outcome, mark: Mark = str) -> str:
    """Why a scenario did not pass; empty when it did."""
    parts = [_indented(str(problem), "  ") for problem in outcome.problems]
    parts += [_difference_text(difference, mark) for difference in outcome.differences]
    return "\n\n".join(parts)


def _difference_text(difference: Difference, mark: Mark) -> str:
    shown = difference.rows[:_ROWS_SHOWN]
    named = dict.fromkeys(name for row in difference.rows for name in row.expected or ())
    blocks = [f"  {difference.message}", *(_row_text(row, list(named), mark) for row in shown)]
    hidden = len(difference.rows) - len(shown)
    if hidden:
        blocks.append(f"{_INDENT}… and {hidden} more; --json has them all")
    return "\n\n".join(blocks)


def _row_text(row: RowDifference, named: Sequence[str], mark: Mark) -> str:
    """One row: expected and actual below each other, carets under the cells that differ, and who set those."""
    wrong = {cell.column: cell for cell in row.cells}
    columns, left_out = _fitting(row, _columns(row, named), wrong)
    sides = {"expected": row.expected, "actual": row.actual}
    cells = {side: [show(values[c]) for c in columns] for side, values in sides.items() if values is not None}
    widths = [max(len(text) for text in each) for each in zip(columns, *cells.values(), strict=True)]
    lines = [f"row expected at {row.place}" if row.place else "row not expected"]
    lines[0] += ", which is not there" if row.actual is None else ""
    lines.append(_line("", columns, widths))
    for side, texts in cells.items():
        marked = [mark if column in wrong else str for column in columns]
        lines.append(_line(side, texts, widths, marked))
    if wrong:
        carets = [
            "^" * max(len(each[i]) for each in cells.values()) if c in wrong else "" for i, c in enumerate(columns)
        ]
        lines.append(_line("", carets, widths))
    if left_out:
        lines.append(f"{'':10}and {left_out} more column{'' if left_out == 1 else 's'}")
    lines += [_cell_text(cell) for cell in row.cells]
    return "\n".join(_INDENT + line for line in lines)


def _columns(row: RowDifference, named: Sequence[str]) -> list[str]:
    """Those the expected row names; of a row nobody expects those that others name, else what it has."""
    if row.expected is not None:
        return list(row.expected)
    assert row.actual is not None
    return list(named) or [name for name, value in row.actual.items() if value is not None and name[0] != "_"]


def _fitting(row: RowDifference, columns: list[str], wrong: dict[str, CellDifference]) -> tuple[list[str], int]:
    """As many columns as a screen has room for; the first ones and those that differ before others."""
    chosen, used = set(wrong), sum(_width(row, name) for name in wrong)
    for name in columns:
        if name not in chosen and (used + _width(row, name) <= _WIDTH or not chosen):
            chosen.add(name)
            used += _width(row, name)
    kept = [name for name in columns if name in chosen]
    return kept, len(columns) - len(kept)


def _width(row: RowDifference, name: str) -> int:
    values = [side[name] for side in (row.expected, row.actual) if side is not None]
    return 2 + max(len(name), *(len(show(value)) for value in values))


def _line(title: str, texts: Sequence[str], widths: Sequence[int], marks: Sequence[Mark] = ()) -> str:
    padded = [text + " " * (width - len(text)) for text, width in zip(texts, widths, strict=True)]
    if marks:
        padded = [mark(text) + pad[len(text) :] for mark, text, pad in zip(marks, texts, padded, strict=True)]
    return f"{title:10}{'  '.join(padded)}".rstrip()


def _cell_text(cell: CellDifference) -> str:
    by = f"last set by {cell.touch}" if cell.touch else "as it came in"
    return f"{cell.column} is {show(cell.actual)}, not {show(cell.expected)}; {by}"


def _indented(text: str, by: str) -> str:
    return "\n".join(by + line for line in text.splitlines())


def summary_text(outcomes: Sequence[Outcome], seconds: float) -> str:
    """One line for all."""
    words = {"passed": "passed", "failed": "failed", "error": "with errors"}
    counts = {said: sum(1 for each in outcomes if each.status == status) for status, said in words.items()}
    said = [f"{number} {what}" for what, number in counts.items() if number]
    scenarios = f"{len(outcomes)} scenario{'' if len(outcomes) == 1 else 's'}"
    return f"{scenarios}: {', '.join(said) or 'none'}, in {seconds:.1f} s"


def document(outcomes: Iterable[Outcome]) -> dict[str, object]:
    """The documented JSON form."""
    listed = list(outcomes)
    return {
        "scenarios": [_scenario_document(outcome) for outcome in listed],
        "passed": sum(1 for outcome in listed if outcome.status == "passed"),
        "failed": sum(1 for outcome in listed if outcome.status == "failed"),
        "errors": sum(1 for outcome in listed if outcome.status == "error"),
    }


def _scenario_document(outcome: Outcome) -> dict[str, object]:
    facts: dict[str, object] = {
        "name": outcome.case.name,
        "file": outcome.case.file,
        "line": outcome.case.part.place(key=True).line,
        "status": outcome.status,
        "seconds": round(outcome.seconds, 3),
    }
    if outcome.problems:
        facts["problem"] = outcome.problems[0].to_json()
        facts["problems"] = [problem.to_json() for problem in outcome.problems]
    if outcome.differences:
        facts["differences"] = [_difference_document(difference) for difference in outcome.differences]
    return facts


def _difference_document(difference: Difference) -> dict[str, object]:
    facts: dict[str, object] = {
        "of": difference.of,
        "seq": difference.seq,
        "what": difference.what,
        "message": difference.message,
    }
    if difference.rows:
        return facts | {"rows": [_row_document(row) for row in difference.rows]}
    return facts | {"expected": difference.expected, "actual": difference.actual}


def _row_document(row: RowDifference) -> dict[str, object]:
    def values(side: object) -> object:
        return {name: plain(value) for name, value in side.items()} if isinstance(side, dict) else None

    cells = [
        {
            "column": cell.column,
            "expected": plain(cell.expected),
            "actual": plain(cell.actual),
            "seq": cell.touch and cell.touch.seq,
            "operation": cell.touch and cell.touch.operation,
        }
        for cell in row.cells
    ]
    line = row.place.line if row.place else None
    return {"line": line, "expected": values(row.expected), "actual": values(row.actual), "cells": cells}


def junit(outcomes: Sequence[Outcome], name: str) -> str:
    """The report that build servers read."""
    totals = document(outcomes)
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(outcomes)))
    suite.attrib |= {"failures": str(totals["failed"]), "errors": str(totals["errors"])}
    suite.attrib["time"] = f"{sum(outcome.seconds for outcome in outcomes):.3f}"
    for outcome in outcomes:
        facts = {"classname": outcome.case.file, "name": outcome.case.name, "time": f"{outcome.seconds:.3f}"}
        test = ElementTree.SubElement(suite, "testcase", facts)
        if outcome.status != "passed":
            kind = "failure" if outcome.status == "failed" else "error"
            said = [difference.message for difference in outcome.differences] or [p.message for p in outcome.problems]
            told = ElementTree.SubElement(test, kind, message=_xml(said[0]))
            told.text = _xml(failure_text(outcome))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Without the characters XML cannot hold."""
    return "".join(char if char in "\t\n" or char >= " " else "�" for char in text)
