"""Convex surrogates that are minimised, and gains."""
