"""Rules that hold whatever the rows are, for sizes the oracle is too slow for."""
