"""Target losses and gains: what a ranking is judged by, one value per query."""
