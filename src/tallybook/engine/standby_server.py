"""The standby process takes commands on a socket and forks for each of them (`engine/standby.py` is the client).

It ends when the user has no warm session any more: without one, Spark takes so long to start that the imports do not
matter.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tallybook.engine.background import start_module
from tallybook.engine.locks import lock
from tallybook.engine.standby import LENGTH_BYTES, PREFIX, Request, address, standby_folder
from tallybook.engine.warm import any_warm
from tallybook.private import make_private_file, make_private_folder

_MODULE = "tallybook.standby"
_SECONDS_BETWEEN_LOOKS = 2.0

Command = Callable[[Sequence[str]], int]


def start_standby() -> None:
    """Starts the standby process, unless it runs or cannot."""
    folder = standby_folder()
    if folder is None:
        return
    make_private_folder(folder)
    with make_private_file(folder / "log").open("ab") as log:
        process = start_module(_MODULE, folder, log)
    assert process.stdin is not None
    process.stdin.close()


def serve(run: Command) -> int:
    """Takes commands in the current folder, and runs each in a fork, until the user has no warm session."""
    folder = Path.cwd()
    alive = lock(folder / "lock")
    if alive is None:
        return 0
    alive.truncate()
    alive.write(str(os.getpid()).encode())
    alive.flush()
    _remove_ended(folder)
    gc.freeze()  # otherwise a fork that collects garbage would copy the memory of everything imported
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    address(folder).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address(folder).name)
        listener.listen()
        listener.settimeout(_SECONDS_BETWEEN_LOOKS)
        while any_warm():
            with suppress(TimeoutError):
                connection, _ = listener.accept()
                with connection:
                    if os.fork() == 0:
                        listener.close()
                        _run(run, connection)
    address(folder).unlink(missing_ok=True)
    return 0


def _run(run: Command, connection: socket.socket) -> None:
    """Runs the command of a connection in this process, and ends the process. The client has the exit code before
    Spark is left: that takes half a second."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    connection.settimeout(None)
    connection.sendall(f"{os.getpid()}\n".encode())
    request = _receive(connection)
    ended = threading.Event()
    threading.Thread(target=_end_with_client, args=(connection, ended), daemon=True).start()
    code = 1
    try:
        code = run(request.arguments)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    finally:
        ended.set()
        with suppress(OSError):
            connection.sendall(f"{code}\n".encode())
    sys.exit(code)


def _receive(connection: socket.socket) -> Request:
    """Takes a command: its standard streams, folder and environment become those of this process."""
    length, streams, *_ = socket.recv_fds(connection, LENGTH_BYTES, 3)
    with connection.makefile("rb") as message:
        request = Request(**json.loads(message.read(int.from_bytes(length, "big"))))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request.folder)
    os.umask(request.umask)
    os.environ.clear()
    os.environ.update(request.environment)
    sys.argv[:] = ["tallybook", *request.arguments]
    return request


def _end_with_client(connection: socket.socket, ended: threading.Event) -> None:
    """Kills this process if its client is killed: whoever kills a command wants it to end."""
    with suppress(OSError):
        connection.recv(1)
    if not ended.is_set():
        os.kill(os.getpid(), signal.SIGKILL)


def _remove_ended(folder: Path) -> None:
    """Removes the folders of standby processes that have ended: each version of the code has its own."""
    for other in folder.parent.glob(f"{PREFIX}*"):
        ended = lock(other / "lock") if other != folder else None
        if ended is not None:
            with ended, suppress(OSError):
                for file in other.iterdir():
                    file.unlink()
                other.rmdir()
