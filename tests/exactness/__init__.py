"""Decimals to the last digit."""
