"""Logged warnings reach the user as lines of the product; what py4j logs of a lost Java process does not."""

from __future__ import annotations

import subprocess
import sys

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
