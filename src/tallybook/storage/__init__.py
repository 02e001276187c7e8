"""Where rows lie: reading them checked and typed, writing them in one step."""

from tallybook.storage.diagnose import diagnose
from tallybook.storage.read import read, read_all
from tallybook.storage.stage import Written
from tallybook.storage.write import WriteMode, write

__all__ = ["WriteMode", "Written", "diagnose", "read", "read_all", "write"]
