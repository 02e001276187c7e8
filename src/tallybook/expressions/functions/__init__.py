"""The functions of the language, one module a family. `numbers` imports its operators from `arithmetic`."""

from __future__ import annotations

from importlib import import_module

FAMILIES = ("logic", "comparisons", "numbers", "text", "dates", "conversions", "aggregates")


def load() -> None:
    """Imports every family; each module registers its functions."""
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")
