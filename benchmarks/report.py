"""Writes the results of the last benchmarks into docs/performance.md.

Replaces the tables between the two marks of the page by those of the JSON files in build/benchmarks. The table of a
benchmark without a file stays, with its date and commit. Run benchmarks on an idle machine: `make bench bench-report`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from _all import LONG_ONLY, ORDER
from _kit import RESULTS, ROOT, cell

PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- results -->", "<!-- end -->"
HEADING = "### "


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the JSON files")
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args()
    files = [given.results / f"{name}.json" for name in (*ORDER, *LONG_ONLY)]
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    if not documents:
        print(f"there are no results in {given.results}: run `make bench`", file=sys.stderr)
        return 1
    text = given.page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    tables, _, after = rest.partition(END)
    sections = sections_of(tables) | {document["benchmark"]: section(document) for document in documents}
    ordered = "\n".join(sections[name] for name in (*ORDER, *LONG_ONLY) if name in sections)
    given.page.write_text(f"{before}{BEGIN}\n\n{ordered}\n{END}{after}", encoding="utf-8")
    print(f"written: {given.page}")
    return 0


def sections_of(tables: str) -> dict[str, str]:
    """Returns the sections of the page by benchmark."""
    parts = tables.strip().split(HEADING)[1:]
    return {part.partition("\n")[0]: f"{HEADING}{part.rstrip()}\n" for part in parts}


def section(document: Mapping[str, Any]) -> str:
    """Returns the heading, the origin and the table of one benchmark."""
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    origin = f"{document['date']}, commit `{document['commit']}`, {document['machine']}; {versions}."
    head = f"{HEADING}{document['benchmark']}\n\n{document['question']}\n\n{origin}\n"
    return f"{head}\n{markdown(document['results'])}\n"


def markdown(results: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for result in results for name in result if name != "turns_ms"))
    lines = [names, *([cell(result.get(name)) for name in names] for result in results)]
    rows = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([rows[0], "|" + "---:|" * len(names), *rows[1:]])


if __name__ == "__main__":
    sys.exit(main())
