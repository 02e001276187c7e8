"""A network without any other machine, and a count of the attempts to leave it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

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
