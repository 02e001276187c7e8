"""`make docs-site` builds a site of all pages, with a search, whose links hold."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.docs.page import DOCS

ROOT = DOCS.parent


def test_the_site_has_every_page_and_finds_it() -> None:
    command = ["make", "-o", ".venv/.installed", "docs-site", f"BIN={Path(sys.executable).parent}"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    index = json.loads((ROOT / "build/site/search/search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    pages = {page.relative_to(ROOT).with_suffix(".html").as_posix() for page in DOCS.rglob("*.md")}
    assert {page.replace("README.html", "index.html") for page in pages} <= found
    assert [page for page in found if not (ROOT / "build/site" / (page or "index.html")).is_file()] == []
