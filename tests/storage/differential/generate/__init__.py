"""Hypothesis strategies that write files, most of them sound and some of them damaged."""
