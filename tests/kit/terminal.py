"""Runs a command whose output is a terminal."""

from __future__ import annotations

import os
import pty
import subprocess


def on_terminal(*command: str, **environment: str) -> str:
    """Returns what a command prints when its standard output and standard error are a terminal with colours."""
    reading, writing = pty.openpty()
    settings = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm"}
    process = subprocess.Popen(command, stdout=writing, stderr=writing, env=settings | environment)
    os.close(writing)
    shown = b""
    while True:
        try:
            piece = os.read(reading, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(reading)
    process.wait(timeout=60)
    return shown.decode()
