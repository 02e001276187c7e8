"""Draws the pictures of docs/pictures: what real commands print on a terminal of 80 columns, as SVG.

`make pictures` runs them in a copy of examples/orders. They differ in times and ids each time.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from tallybook.text import width

HERE = Path(__file__).parent
EXAMPLE = HERE.parent / "examples" / "orders"
COLUMNS = 80
MISTAKES = "sed -i -e 's/customers.tier =/customers.teir =/' -e 's/SUM(orders.amount)/SUM(orders.region)/' {}"
PROJECT = "projects/order-close.yaml"
PICTURES: dict[str, tuple[str, ...]] = {
    "plan": ("tallybook plan order-close --period 2026-01",),
    "run": ("tallybook run order-close --period 2026-01 --show 4",),
    "test": ("tallybook test scenarios/discounts.yaml",),
    "runs": ("tallybook runs",),
    "problem": ("tallybook validate",),
}
BEFORE: dict[str, tuple[str, ...]] = {
    "runs": ("tallybook run order-close --period 2026-02", "tallybook run order-close --period 2026-05"),
    "problem": (MISTAKES.format(PROJECT),),
}
"""What is typed before a picture is taken. There is no file of May, so that one of the runs fails."""

_COLUMN, _LINE, _TEXT, _EDGE = 8.43, 19.0, 14, 14.0
_COLOURS = {31: "#ff7b72", 32: "#7ee787", 33: "#e3b341", 36: "#79c0ff"}
_PLAIN, _BACKGROUND, _PROMPT = "#e6edf3", "#0d1117", "\x1b[1m\x1b[32m$\x1b[0m \x1b[1m{}\x1b[0m"
_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_CODES = re.compile(r"\x1b\[([0-9;]*)m")


@dataclass(frozen=True)
class Style:
    """How a piece of text looks."""

    colour: str = _PLAIN
    bold: bool = False
    faint: bool = False

    def after(self, codes: str) -> Style:
        """Returns the style after an escape sequence."""
        style = self
        for code in map(int, filter(None, codes.split(";") or ["0"])):
            if code == 0:
                style = Style()
            elif code in (1, 2):
                style = replace(style, **{"bold" if code == 1 else "faint": True})
            elif code in _COLOURS:
                style = replace(style, colour=_COLOURS[code])
        return style


Span = tuple[int, str, Style]
"""The column where a piece of text begins, the text, and how it looks."""


def typed(command: str, folder: Path | str, columns: int = COLUMNS) -> tuple[str, list[tuple[float, bytes]]]:
    """Returns what a command prints on a terminal, and each piece with the seconds after which it was printed."""
    reading, writing = pty.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    environment |= {"TERM": "xterm-256color", "PATH": f"{Path(sys.executable).parent}:{environment['PATH']}"}
    begun = time.monotonic()
    ends = {"stdin": writing, "stdout": writing, "stderr": writing}
    process = subprocess.Popen(["sh", "-c", command], cwd=folder, env=environment, **ends)  # type: ignore[call-overload]
    os.close(writing)
    pieces: list[tuple[float, bytes]] = []
    while True:
        try:
            piece = os.read(reading, 65536)
        except OSError:  # the last process has closed the terminal
            break
        if not piece:
            break
        pieces.append((time.monotonic() - begun, piece))
    os.close(reading)
    process.wait()
    return b"".join(piece for _, piece in pieces).decode(), pieces


def spans(printed: str, columns: int) -> list[list[Span]]:
    """Returns what a terminal shows at the end, line by line. Lines that were erased are not among them."""
    return [
        row
        for line in printed.replace("\r\n", "\n").rstrip("\n").split("\n")
        for row in _rows(line.rpartition("\r\x1b[2K")[2], columns)
    ]


def _rows(line: str, columns: int) -> Iterator[list[Span]]:
    """The rows that a line takes: a terminal goes on in the next row where one is full."""
    style, row, column = Style(), list[Span](), 0
    for index, text in enumerate(_CODES.split(line)):
        if index % 2:
            style = style.after(text or "0")
            continue
        for char in text:
            if column + width(char) > columns:
                yield row
                row, column = [], 0
            if row and row[-1][2] == style and row[-1][0] + width(row[-1][1]) == column:
                row[-1] = (row[-1][0], row[-1][1] + char, style)
            else:
                row.append((column, char, style))
            column += width(char)
    yield row


def drawn(rows: list[list[Span]], columns: int, title: str) -> str:
    """Returns the picture. It has the text as text, and loads nothing."""
    across, down = columns * _COLUMN + 2 * _EDGE, len(rows) * _LINE + 2 * _EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across:.0f} {down:.0f}" width="{across:.0f}" '
        f'role="img" aria-label="{escape(title)}">',
        f'<rect width="100%" height="100%" rx="8" fill="{_BACKGROUND}"/>',
        f'<g font-family="{_FONTS}" font-size="{_TEXT}" fill="{_PLAIN}" xml:space="preserve">',
    ]
    for number, row in enumerate(rows, 1):
        down = _EDGE + number * _LINE - 5
        lines += [text for span in row if (text := _text(span, down))]
    return "\n".join([*lines, "</g>", "</svg>", ""])


def _text(span: Span, down: float) -> str:
    column, text, style = span
    shown = text.strip(" ")
    if not shown:
        return ""
    column += len(text) - len(text.lstrip(" "))
    look = f' fill="{style.colour}"' if style.colour != _PLAIN else ""
    look += ' font-weight="bold"' if style.bold else ""
    look += ' opacity="0.6"' if style.faint else ""
    at = f'x="{_EDGE + column * _COLUMN:.1f}" y="{down:.1f}" textLength="{width(shown) * _COLUMN:.1f}"'
    return f"<text {at}{look}>{escape(shown, quote=False)}</text>"


def picture(commands: tuple[str, ...], folder: Path | str, columns: int, title: str) -> str:
    """Returns the picture of commands that are typed one after the other."""
    shown = (f"{_PROMPT.format(command)}\n{typed(command, folder, columns)[0]}" for command in commands)
    return drawn(spans("\n".join(shown), columns), columns, title)


def main() -> None:
    """Draws all pictures, or those that are named."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "orders"
        shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".tallybook", "warehouse"))
        for name in sys.argv[1:] or PICTURES:
            for command in BEFORE.get(name, ()):
                typed(command, folder)
            commands = PICTURES[name]
            (HERE / "pictures").mkdir(exist_ok=True)
            svg = picture(commands, folder, COLUMNS, f"A terminal after {' and '.join(commands)}")
            (HERE / "pictures" / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
