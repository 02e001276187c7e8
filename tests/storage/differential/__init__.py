"""The product's readers compared with strict readers that share nothing with them, on generated files."""
