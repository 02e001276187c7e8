"""Reports the outcomes of scenarios, as text and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from tallybook.model.written import show
from tallybook.scenarios.compare import CellDifference, Difference, RowDifference
from tallybook.scenarios.suite import Outcome
from tallybook.text import Line, Marked, printable, unstyled, width

_WIDTH = 130
_TITLES = 10
"""The width of `expected` and `actual` before the cells."""
_ROWS_SHOWN = 10
_INDENT = "    "


def failure_lines(outcome: Outcome, room: int = _WIDTH) -> Iterator[Line]:
    """Yields the lines that explain why a scenario did not pass; none if it passed. Columns that do not fit the room
    are left out."""
    blocks = [[("  ", *line) for line in problem.lines(room - 2)] for problem in outcome.problems]
    blocks += [block for difference in outcome.differences for block in _difference_blocks(difference, room)]
    for index, block in enumerate(blocks):
        if index:
            yield ()
        yield from block


def failure_text(outcome: Outcome) -> str:
    """Returns the same lines as plain text."""
    return "\n".join(map(unstyled, failure_lines(outcome)))


def _difference_blocks(difference: Difference, room: int) -> Iterator[list[Line]]:
    shown = difference.rows[:_ROWS_SHOWN]
    named = dict.fromkeys(name for row in difference.rows for name in row.expected or ())
    yield [(f"  {difference.message}",)]
    yield from (_row_lines(row, list(named), room) for row in shown)
    hidden = len(difference.rows) - len(shown)
    if hidden:
        yield [(f"{_INDENT}… and {hidden} more; --json has them all",)]


def _row_lines(row: RowDifference, named: Sequence[str], room: int) -> list[Line]:
    """Yields the lines of one row: expected above actual, carets under differing cells, and who set them."""
    wrong = {cell.column: cell for cell in row.cells}
    columns, left_out = _fitting(row, _columns(row, named), wrong, room - len(_INDENT) - _TITLES)
    sides = {"expected": row.expected, "actual": row.actual}
    cells = {side: [show(values[c]) for c in columns] for side, values in sides.items() if values is not None}
    header = [printable(name) for name in columns]
    widths = [max(map(width, texts)) for texts in zip(header, *cells.values(), strict=True)]
    missing = ", which is not there" if row.actual is None else ""
    lines: list[Line] = [(f"row expected at {row.place}" if row.place else "row not expected", missing)]
    lines.append(_cells("", header, widths))
    for side, texts in cells.items():
        marked = [Marked(text, "difference") if c in wrong else text for c, text in zip(columns, texts, strict=True)]
        lines.append(_cells(side, marked, widths))
    if wrong:
        spans = [max(width(texts[i]) for texts in cells.values()) for i in range(len(columns))]
        carets = ["^" * span if column in wrong else "" for column, span in zip(columns, spans, strict=True)]
        lines.append(_cells("", carets, widths))
    if left_out:
        lines.append((f"{'':{_TITLES}}and {left_out} more column{'' if left_out == 1 else 's'}; --json has them all",))
    lines += [(_cell_text(cell),) for cell in row.cells]
    return [(_INDENT, *line) for line in lines]


def _columns(row: RowDifference, named: Sequence[str]) -> list[str]:
    """Returns the columns to show: those of the expected row; for an unexpected row those of others, else all."""
    if row.expected is not None:
        return list(row.expected)
    assert row.actual is not None
    return list(named) or [name for name, value in row.actual.items() if value is not None and name[0] != "_"]


def _fitting(
    row: RowDifference, columns: list[str], wrong: dict[str, CellDifference], room: int
) -> tuple[list[str], int]:
    """Returns as many columns as fit on a screen, preferring the first ones and those that differ."""
    chosen, used = set(wrong), sum(_width(row, name) for name in wrong)
    for name in columns:
        if name not in chosen and (used + _width(row, name) <= room or not chosen):
            chosen.add(name)
            used += _width(row, name)
    kept = [name for name in columns if name in chosen]
    return kept, len(columns) - len(kept)


def _width(row: RowDifference, name: str) -> int:
    values = [side[name] for side in (row.expected, row.actual) if side is not None]
    return 2 + max(width(text) for text in (printable(name), *map(show, values)))


def _cells(title: str, texts: Sequence[str | Marked], widths: Sequence[int]) -> Line:
    """A line of a table, without spaces at its end."""
    line: list[str | Marked] = [f"{title:{_TITLES}}"]
    for text, columns in zip(texts, widths, strict=True):
        shown = text.text if isinstance(text, Marked) else text
        line += [text, " " * (columns - width(shown) + 2)]
    while line and isinstance(line[-1], str) and not line[-1].strip():
        line.pop()
    return tuple(line)


def _cell_text(cell: CellDifference) -> str:
    by = f"last set by {cell.writer}" if cell.writer else "no operation set it"
    return f"{cell.column} is {show(cell.actual)}, not {show(cell.expected)}; {by}"


def summary_text(outcomes: Sequence[Outcome], took: str) -> str:
    """Returns one line that counts the outcomes and says how long they took."""
    words = {"passed": "passed", "failed": "failed", "error": "with errors"}
    counts = {said: sum(1 for outcome in outcomes if outcome.status == status) for status, said in words.items()}
    said = [f"{number} {what}" for what, number in counts.items() if number]
    scenarios = f"{len(outcomes)} scenario{'' if len(outcomes) == 1 else 's'}"
    return f"{scenarios}: {', '.join(said) or 'none'}, in {took}"


def junit(outcomes: Sequence[Outcome], name: str) -> str:
    """Returns a JUnit report for build servers. All its text is printable, so XML can contain it."""
    statuses = [outcome.status for outcome in outcomes]
    suite = ElementTree.Element("testsuite", name=printable(name), tests=str(len(outcomes)))
    suite.attrib |= {"failures": str(statuses.count("failed")), "errors": str(statuses.count("error"))}
    suite.attrib["time"] = f"{sum(outcome.seconds for outcome in outcomes):.3f}"
    for outcome in outcomes:
        case = outcome.case
        test = ElementTree.SubElement(suite, "testcase", classname=printable(case.file), name=printable(case.name))
        test.attrib["time"] = f"{outcome.seconds:.3f}"
        if outcome.status != "passed":
            kind = "failure" if outcome.status == "failed" else "error"
            said = [difference.message for difference in outcome.differences] or [p.message for p in outcome.problems]
            failure = ElementTree.SubElement(test, kind, message=printable(said[0]))
            failure.text = failure_text(outcome)
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"
