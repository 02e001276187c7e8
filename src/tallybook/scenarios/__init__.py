"""Scenarios: tests of projects in YAML, with given rows and expected results.

`load` and `check` read them, `run` executes one with the engine, `compare` finds differences, `suite` judges many.
Imports `engine`, `runs` and what comes before them; nothing but `documents`, `workspace` and `cli` imports it.
"""
