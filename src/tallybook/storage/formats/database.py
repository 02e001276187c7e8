"""Tables of a database. They can be neither read nor written yet."""

from __future__ import annotations

from tallybook.storage.formats.base import Format, register


class Database(Format):
    """A database: it has no abilities, so that every use of its tables is refused."""

    type = "database"


DATABASE = register(Database())
