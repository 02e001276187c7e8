"""The expression language: text is parsed to a tree, checked to a typed tree, and compiled to a Spark column.

`parse`, `check` and `compile` are these steps; `evaluate` computes a value without Spark. `registry` has the
functions that the modules in `functions` declare. Imports only `model` and what comes before it.
"""
