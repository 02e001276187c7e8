"""The Spark session, plans as data, and the one core that executes them. Imports neither runs nor the store."""
