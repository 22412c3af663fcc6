"""Regression targets: what a scoring function is fitted to, from the judgments of each query."""
