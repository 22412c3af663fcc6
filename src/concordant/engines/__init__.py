"""Engines count equal judgments where the log lies: memory (the plain oracle) and DuckDB (out of core)."""
