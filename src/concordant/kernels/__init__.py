"""Loops that NumPy cannot do well, compiled by Numba when they are first called and kept on disk after that.

Each has a plain twin that defines it. Only what calls a kernel imports one: ``import concordant`` does not pay for it.
"""
