"""A page of the documentation as a list of steps that can be taken.

- A block after a line ``Save as `path`:`` is a file, after ``Add to `path`:`` the end of one, after ``Change in
  `path`:`` lines to remove (`-`) and to put in their place (`+`).
- A `console` block has commands (`$ …`) and what they print. `…` stands for anything. A run id stands for any run id
  where it first appears, and for that one from then on, in commands too.
- A `python` block is executed; the blocks of a page share their names, as the cells of a notebook do. A `text` block
  says what was printed since the last one.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from tallybook.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(
    r"(?:^(?P<verb>Save as|Add to|Change in) `(?P<file>[^`]+)`:\n\n)?"
    r"^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")


@dataclass(frozen=True)
class Step:
    """One block of a page."""

    line: int
    language: str
    text: str
    verb: str | None = None
    file: str | None = None


def steps(page: str) -> list[Step]:
    """The blocks that do something, in their order; all others are left out."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = [
        Step(text.count("\n", 0, block.start()) + 1, block["language"], block["text"], block["verb"], block["file"])
        for block in _BLOCK.finditer(text)
    ]
    return [step for step in found if step.verb or step.language in ("console", "python", "text")]


@dataclass
class Reader:
    """Somebody who does what a page says, in a folder; `names` are those its Python sees."""

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)
    _printed: str = ""

    def follow(self, page: str) -> None:
        """Takes every step; AssertionError where something else is printed than the page says."""
        with chdir(self.folder):
            for step in steps(page):
                where = f"docs/{page}:{step.line}"
                if step.verb:
                    self._edit(step, where)
                elif step.language == "console":
                    self._type(step, where)
                elif step.language == "python":
                    self._execute(step, where)
                else:
                    self._compare(step.text, self._printed, where)
                    self._printed = ""

    def _execute(self, step: Step, where: str) -> None:
        with _printing() as output:
            exec(compile("\n" * step.line + step.text, where, "exec"), self.names)
        self._printed += output.getvalue()

    def _edit(self, step: Step, where: str) -> None:
        path = Path(str(step.file))
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if step.verb == "Change in":
            lines = step.text.splitlines(keepends=True)
            old = "".join(line[1:] for line in lines if line.startswith("-"))
            new = "".join(line[1:] for line in lines if line.startswith("+"))
            assert before.count(old) == 1, f"{where}: these lines are not in {step.file}, once:\n{old}"
            path.write_text(before.replace(old, new), encoding="utf-8")
            return
        assert bool(before) == (step.verb == "Add to"), f"{where}: {step.file} exists: {bool(before)}"
        path.write_text(before + step.text, encoding="utf-8")

    def _type(self, step: Step, where: str) -> None:
        """Every command of a block, each with what it prints."""
        for entry in re.split(r"^\$ ", step.text, flags=re.MULTILINE)[1:]:
            command, _, said = entry.partition("\n")
            given = _UUID.sub(lambda id: self._ids.get(id[0], id[0]), command)
            self._compare(said, _run(given), f"{where}: `{command}`")

    def _compare(self, said: str, printed: str, where: str) -> None:
        seen = self._pattern(said).fullmatch(_normal(printed))
        assert seen, f"{where} printed\n\n{printed}\nand not\n\n{said}"
        self._ids |= {written: seen[group] for written, group in _groups(said).items() if group in seen.groupdict()}

    def _pattern(self, said: str) -> re.Pattern[str]:
        groups = _groups(said)
        pieces = []
        for piece in re.split(rf"(…|{_UUID.pattern})", _normal(said)):
            if piece == "…":
                pieces.append(".*")
            elif piece not in groups:
                pieces.append(re.escape(piece))
            elif piece in self._ids:
                pieces.append(re.escape(self._ids[piece]))
            elif f"(?P<{groups[piece]}>" in "".join(pieces):
                pieces.append(f"(?P={groups[piece]})")
            else:
                pieces.append(f"(?P<{groups[piece]}>{_UUID.pattern})")
        return re.compile("".join(pieces), re.DOTALL)


def _run(command: str) -> str:
    """What a command prints. Ours runs in this process, in the session that is there: the same code, only sooner."""
    words = shlex.split(command)
    if words[0] == "tallybook":
        with _printing() as output:
            main(words[1:])
        return output.getvalue()
    done = subprocess.run(["sh", "-c", f"({command}) 2>&1"], capture_output=True, text=True, check=True)
    return done.stdout


@contextmanager
def _printing() -> Iterator[StringIO]:
    output = StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        yield output


def _groups(said: str) -> dict[str, str]:
    """The run ids in a text, each with a name for it in a pattern."""
    return {id: f"id_{id.replace('-', '_')}" for id in _UUID.findall(said)}


def _normal(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
