"""A second opinion on every cell: a slow interpreter of projects over plain Python rows, and the tests that compare."""
