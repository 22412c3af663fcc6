"""From preferences to a ranking: structure functions, orders of least loss, and how sure they are."""
