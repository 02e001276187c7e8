"""The formats of rows, one file for each. `base` has the contract; helpers of a format are in files with its name.

Importing the package registers all formats.
"""

from tallybook.storage.formats import catalog, csv, database, delta, excel, json, orc, parquet
from tallybook.storage.formats.base import FORMATS, Ability, Format, format_of

__all__ = [
    "FORMATS",
    "Ability",
    "Format",
    "catalog",
    "csv",
    "database",
    "delta",
    "excel",
    "format_of",
    "json",
    "orc",
    "parquet",
]
