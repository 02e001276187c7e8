"""Frozen, strict entities: what the YAML files define and what the store keeps.

No Spark and no input or output. Imports only `errors`, `secrets` and what comes before them.
"""
