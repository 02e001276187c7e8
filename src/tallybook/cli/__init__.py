"""The command line: one file for each command. A command calls `workspace` and prints a document of `documents`."""
