"""Rankers that may decline to order two items: when, at what cost, and which order of a list is left."""
