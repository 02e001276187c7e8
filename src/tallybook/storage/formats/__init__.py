"""Formats of rows: one file each, behind the contract in `base`. A format's machinery is beside it.

Importing the package fills the registry.
"""

from tallybook.storage.formats import catalog, csv, database, delta, json, orc, parquet
from tallybook.storage.formats.base import FORMATS, Ability, Format, format_of

__all__ = ["FORMATS", "Ability", "Format", "catalog", "csv", "database", "delta", "format_of", "json", "orc", "parquet"]
