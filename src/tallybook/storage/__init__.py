"""Reads rows from a location, checked and typed, and writes rows to a location in one step.

What differs between formats is in `formats`. The package imports nothing from store, engine, runs and the packages
above them.
"""

from tallybook.storage.diagnose import diagnose
from tallybook.storage.output import WriteMode
from tallybook.storage.read import read, read_all
from tallybook.storage.stage import Written
from tallybook.storage.write import write

__all__ = ["WriteMode", "Written", "diagnose", "read", "read_all", "write"]
