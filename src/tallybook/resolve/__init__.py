"""Finds where rows are: the locations that a resolver gives for a table and period, and the destinations of outputs.

It loads no Spark and imports only expressions, model, source and errors.
"""
