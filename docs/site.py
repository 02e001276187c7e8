"""Called by MkDocs: the menu of the site is that of docs/README.md, and links fit a site without source files."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

HERE = Path(__file__).parent


def menu(index: str) -> list[dict[str, Any]]:
    """Returns a section for each heading of the index, with the pages of its table."""
    _, *sections = re.split(r"^## ", index, flags=re.MULTILINE)
    return [{section.partition("\n")[0]: _pages(section)} for section in sections if _pages(section)]


def _pages(section: str) -> list[dict[str, str]]:
    linked = re.findall(r"^\| \[([^\]]+)\]\(([^)]+\.md)\)", section, flags=re.MULTILINE)
    return [{title: _place(link)} for title, link in linked]


def _place(link: str) -> str:
    """The place of a page in the copy of the repository, for a link from docs/."""
    return link[3:] if link.startswith("../") else str(PurePosixPath("docs", link))


def _fitted(link: re.Match[str], folder: Path) -> str:
    """A link to a folder leads to its README. A link to something that is no page becomes plain text."""
    words, target, anchor = link["words"], link["target"], link["anchor"] or ""
    place = folder / target
    if place.is_dir() and (place / "README.md").is_file():
        return f"[{words}]({target.rstrip('/')}/README.md{anchor})"
    return link[0] if place.is_file() else words


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Fits the links of a page."""
    folder = Path(page.file.abs_src_path).parent
    link = r"\[(?P<words>[^\]]*)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]+)?\)"
    return re.sub(link, lambda found: _fitted(found, folder), markdown)


def on_config(config: Any) -> Any:
    """Sets the menu."""
    config.nav = [{"Tallybook": "README.md"}, *menu((HERE / "README.md").read_text(encoding="utf-8"))]
    return config
