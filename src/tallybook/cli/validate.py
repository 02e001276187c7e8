"""`tallybook validate`: lists every problem of the workspace, without Spark and without data."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from tallybook.cli import completion
from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import counted, emit, say, say_problems


@app.command()
def validate(
    projects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROJECT",
            help="Leave out problems that concern other projects only.",
            autocompletion=completion.projects,
        ),
    ] = None,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Check the whole workspace and list every problem, with its file and line and what to do."""
    with _not_collecting():
        from tallybook.documents.definitions import LINK_NOT_FOLLOWED, Validation
        from tallybook.workspace import Workspace

        opened = Workspace.open(workspace)
        problems = opened.validate(projects or ())
    links = opened.definitions.links
    if json:
        emit(Validation.of(problems, links))
        return 1 if problems else 0
    if problems:
        say_problems(problems)
        files = {problem.place.file for problem in problems if problem.place}
        say()
        say(f"{counted(len(problems), 'problem')} in {counted(len(files), 'file')}")
    else:
        environments = opened.definitions.settings.environments if opened.definitions.settings else ()
        also = f", in all environments ({', '.join(environments)})" if environments else ""
        say(f"workspace '{opened.name}' is valid{also}: {_contents(opened.counts())}")
    for link in links[:_LINKS_SHOWN]:
        say(f"warning: {link}: {LINK_NOT_FOLLOWED}")
    if len(links) > _LINKS_SHOWN:
        say(f"… and {len(links) - _LINKS_SHOWN} more such links")
    return 1 if problems else 0


_LINKS_SHOWN = 10


@contextmanager
def _not_collecting() -> Iterator[None]:
    """Switches the garbage collector off: trees and schemas live to the end of the command, and looking for garbage
    among them takes a tenth of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _contents(counts: dict[str, int]) -> str:
    return ", ".join(counted(number, what) for what, number in counts.items() if number) or "it has no definitions yet"
