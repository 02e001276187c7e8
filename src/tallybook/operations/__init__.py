"""The operations: one module each. Importing the package imports them all, which fills `registry.OPERATIONS`.

A module declares an operation's arguments, checks them (`bind`), and returns a step that says what flows through it and
builds its part of the Spark plan (`apply`). Other packages ask the contract of `base.Step`, never a step's class.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
