"""The functions of the language. A family is a section of the reference page; it may have several modules."""

from __future__ import annotations

from importlib import import_module

FAMILIES = ("logic", "comparisons", "numbers", "text", "dates", "conversions", "aggregates")
_MODULES = (
    *("logic", "comparisons", "arithmetic", "rounding", "numbers", "text", "matching", "dates", "intervals", "periods"),
    *("conversions", "formats", "aggregates", "statistics"),
)
"""The modules that declare functions, in the order of the reference page."""


def load() -> None:
    """Imports every module; each registers its functions."""
    for module in _MODULES:
        import_module(f"{__name__}.{module}")
