"""Copies the example `month_close`, and makes its journal."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

EXAMPLE = Path(__file__).parents[2] / "examples" / "month_close"


def copy_of_month_close(folder: Path) -> Path:
    """Copies the definitions and the text files of the example, without anything that a run or `generate.py` wrote."""
    leave_out = shutil.ignore_patterns("journal_2026_*", "warehouse", "reports", ".tallybook", "dev", "prod")
    return shutil.copytree(EXAMPLE, folder, ignore=leave_out)


@cache
def generator() -> ModuleType:
    """Returns the module `generate.py` of the example."""
    spec = importlib.util.spec_from_file_location("month_close_generate", EXAMPLE / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
