"""The definitions of a workspace: reads the YAML files, checks them, and decides what recording them changes.

`load` reads, `check` runs all checks, `bind` binds one project to its datasets, `versions` computes the changes.
Needs neither Spark nor data nor the store. Imports only `operations`, `resolve` and what comes before them.
"""
