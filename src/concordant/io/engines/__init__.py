"""Engines count equal rows where the log lies: memory (the plain oracle), DuckDB (the default) and Spark."""
