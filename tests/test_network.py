"""A run talks to this machine only: in a network without any other, no attempt to reach one is counted."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tests.network import alone

ORDERS = Path(__file__).parent.parent / "examples" / "orders"


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
