"""A run talks to this machine only: in a network without any other, no attempt to reach one is counted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ORDERS = Path(__file__).parent.parent / "examples" / "orders"
ALONE = """\
import fcntl, re, socket, struct, subprocess, sys

UP, SET_FLAGS = 0x41, 0x8914
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as loopback:
    fcntl.ioctl(loopback, SET_FLAGS, struct.pack("16sh", b"lo", UP))

def attempts():
    names, numbers = [line.split() for line in open("/proc/net/snmp") if line.startswith("Ip:")]
    count = int(dict(zip(names, numbers))["OutNoRoutes"])
    six = re.search(r"^Ip6OutNoRoutes\\s+(\\d+)", open("/proc/net/snmp6").read(), re.MULTILINE)
    return count + (int(six[1]) if six else 0)

before = attempts()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(attempts() - before)
sys.stdout.write(done.stdout + done.stderr)
sys.exit(done.returncode)
"""
"""Starts the loopback interface of a new network, then a command; prints how often it tried to leave."""


def alone(*command: str) -> tuple[int, int, str]:
    """How a command ends in a network that has only the loopback interface, its attempts to leave it, and its words."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let a user make a network of their own (unshare -rn)")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    done = subprocess.run(
        [unshare, "-rn", sys.executable, "-c", ALONE, *command],
        env=environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    count, _, words = done.stdout.partition("\n")
    assert count.isdigit(), done.stderr
    return done.returncode, int(count), words


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('192.0.2.1', 80), 1)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'?', ('192.0.2.1', 53))",
        "socket.create_connection(('2001:db8::1', 80), 1)",
    ],
)
def test_an_attempt_to_leave_the_machine_is_counted(attempt: str) -> None:
    _, attempts, _ = alone(sys.executable, "-c", f"import socket; {attempt}")
    assert attempts == 1


def test_a_run_opens_no_connection_but_to_loopback(tmp_path: Path) -> None:
    workspace = tmp_path / "orders"
    shutil.copytree(ORDERS, workspace, ignore=shutil.ignore_patterns(".tallybook", "warehouse", "reports"))
    run = ("-m", "tallybook", "run", "order-close", "--period", "2026-01", "--workspace", str(workspace))
    code, attempts, words = alone(sys.executable, *run)
    assert (code, attempts) == (0, 0), words
