"""What is installed can be audited and listed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.network import alone

ROOT = Path(__file__).parent.parent


def test_an_audit_that_cannot_ask_says_so() -> None:
    code, attempts, words = alone("env", f"BIN={Path(sys.executable).parent}", str(ROOT / ".ci/audit"))
    assert (code, attempts > 0) == (2, True), words
    assert words.endswith("cannot be reached, or does not know every package.\n")


@pytest.mark.long
def test_the_bill_of_materials(tmp_path: Path) -> None:
    bin = Path(sys.executable).parent
    command = ["make", "-f", str(ROOT / "Makefile"), "-o", ".venv/.installed", "sbom", f"BIN={bin}"]
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    bill = json.loads((tmp_path / "build/sbom.cdx.json").read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "tallybook")
    assert {"pyspark", "deltalake", "sqlalchemy"} <= {component["name"].lower() for component in bill["components"]}


def test_every_threat_has_a_test_that_exists() -> None:
    rows = re.findall(r"^\| (?!threat|---)(.+?) \|$", (ROOT / "SECURITY.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)`", row)
        assert named and [name for name in named if not (ROOT / name).is_file()] == [], row
