"""Surrogates: convex losses that are minimised in the place of a ranking loss, as one family stated as data."""
