"""Projects nobody thought of: everything here draws from a `random.Random`, which a seed or Hypothesis provides."""
