"""The command line: one file for each command. A command calls `workspace.py` and prints a document of `documents`."""
