"""Starts our own Python modules as processes that outlive this one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO


def start_module(module: str, folder: Path, log: IO[bytes], *, without: Iterable[str] = ()) -> subprocess.Popen[bytes]:
    """Starts `python -m module` in a folder of ours, apart from the terminal, with a pipe as its standard input.

    It imports what this process could import, but nothing from the current folder. Environment variables whose names
    begin with one of `without` are removed.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith(tuple(without))}
    environment["PYTHONPATH"] = os.pathsep.join(str(Path(path).absolute()) for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
