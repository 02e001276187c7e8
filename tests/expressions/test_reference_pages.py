"""The reference pages are current, and what they claim is so."""

from __future__ import annotations

import re
from pathlib import Path

from tallybook.reference import exit_codes_page, functions_page, problems_page

PAGES = Path(__file__).parents[2] / "docs" / "reference"


def test_functions_page(golden):
    golden(PAGES / "functions.md", functions_page())


def test_problems_page(golden):
    golden(PAGES / "problems.md", problems_page())


def test_examples_of_the_expressions_page(evaluate):
    examples = re.findall(
        r"```expressions\n(.*?)```", (PAGES / "expressions.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(examples) == 6
    evaluate.table("\n".join(examples))


def test_exit_codes_page(golden):
    golden(PAGES / "exit-codes.md", exit_codes_page())
