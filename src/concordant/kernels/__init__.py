"""Loops that NumPy cannot do well, compiled by Numba when they are first called and kept on disk."""
