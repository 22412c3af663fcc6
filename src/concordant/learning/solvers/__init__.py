"""Solvers: how the parameters of a scoring function are found."""
