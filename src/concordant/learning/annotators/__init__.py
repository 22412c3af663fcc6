"""Annotators who differ: camps of them with a ranking each, and items on whose worth they are divided."""
