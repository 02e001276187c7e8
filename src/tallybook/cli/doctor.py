"""`tallybook doctor`: examines the installation and the workspace."""

from __future__ import annotations

from typing import Annotated

import typer

from tallybook.cli.app import JsonOption, WorkspaceOption, app
from tallybook.cli.screen import counted, emit, say
from tallybook.text import Marked, Role

_ROLES: dict[str, Role] = {"ok": "passed", "warning": "warning", "failed": "failed", "skipped": "faint"}

_TEXT_AT = 24


@app.command()
def doctor(
    spark: Annotated[bool, typer.Option("--spark", help="Also start Spark and make it answer a query.")] = False,
    workspace: WorkspaceOption = None,
    json: JsonOption = False,
) -> int:
    """Examine Java, Spark, the store, the datasources and the disk: a line each, and what to do."""
    from tallybook.doctor import Finding, examination, examine, exit_of_findings

    findings: list[Finding] = []
    for finding in examine(workspace, spark=spark):
        findings.append(finding)
        if json:
            continue
        status = Marked(f"{finding.status:<7}", _ROLES[finding.status])
        say(status, f"  {finding.check:<13}  {finding.message}", hang=_TEXT_AT + 2)
        if finding.hint:
            say(" " * _TEXT_AT, Marked("hint:", "hint"), f" {finding.hint}")
    document = examination(findings)
    if json:
        emit(document)
    else:
        say()
        say(f"{counted(document.failed, 'failure')}, {counted(document.warnings, 'warning')}")
    return exit_of_findings(findings).code
