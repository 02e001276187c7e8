"""Links lead to a file and a heading that are there, and the index knows every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.page import DOCS

ROOT = DOCS.parent
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("examples/**/README.md")])


def prose(page: Path) -> str:
    """The text without its code blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> list[tuple[Path, str]]:
    """Every file linked to, with the heading meant."""
    found = re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)", prose(page))
    return [((page.parent / file).resolve() if file else page, anchor) for file, anchor in found]


def anchors(page: Path) -> set[str]:
    """The headings as they are linked to: small letters, words joined by hyphens."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path) -> list[str]:
    return [
        f"{file.name}#{anchor}"
        for file, anchor in links(page)
        if not file.exists() or (anchor and anchor not in anchors(file))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_the_index_knows_every_page() -> None:
    index = DOCS / "README.md"
    assert set(DOCS.rglob("*.md")) - {file for file, _ in links(index)} - {index} == set()


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`\n[a](#one-two) [b](#three) [c](missing.md) [d](page.md#one-two)\n", encoding="utf-8")
    assert broken(page) == ["page.md#three", "missing.md#"]
