"""Logged warnings reach the user as lines of the product, and a terminal shows what takes long."""

from __future__ import annotations

import subprocess
import sys

from tests.kit.terminal import on_terminal

SERVER_IS_GONE = """
import logging, socket
from threading import Thread

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from tallybook.cli.screen import prepare

prepare()
server = socket.create_server(("127.0.0.1", 0))

def hang_up():
    while True:
        server.accept()[0].close()

Thread(target=hang_up, daemon=True).start()
gateway = JavaGateway(gateway_parameters=GatewayParameters(port=server.getsockname()[1]))
try:
    gateway.jvm.System.currentTimeMillis()
except Py4JError:
    print("failed")
logging.getLogger("tallybook.store").warning("the store is shared")
logging.warning("the disk is slow")
"""


def test_only_warnings_for_users_are_shown() -> None:
    done = subprocess.run([sys.executable, "-c", SERVER_IS_GONE], capture_output=True, text=True, check=True)
    assert done.stdout == "failed\n"
    assert done.stderr == "warning: the store is shared\nwarning: the disk is slow\n"


def test_a_terminal_is_told_what_takes_long_and_how_long() -> None:
    """The line is drawn again every second, and removed before anything else is printed."""
    code = """
import time
from tallybook.cli.screen import say, say_progress
say_progress("starting Spark …")
time.sleep(3.5)
say("done")
time.sleep(1.2)
"""
    shown = on_terminal(sys.executable, "-c", code)
    assert "starting Spark …\x1b[0m" in shown
    assert "starting Spark … 3 s" in shown
    assert shown.endswith("\r\x1b[2Kdone\r\n"), "nothing is drawn after the line"
