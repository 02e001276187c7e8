"""Builds Spark plans for rows: SQL text, row ids, system columns, joins, and checks that fail a job.

It starts no Spark job, and imports only expressions, model, source and errors.
"""
