"""Tables of a database. Nothing can read or write them yet."""

from __future__ import annotations

from tallybook.storage.formats.base import Format, register


class Database(Format):
    """A database: it has no abilities, so every use of its tables is refused."""

    type = "database"


DATABASE = register(Database())
