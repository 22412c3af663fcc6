"""Ranking with abstention: losses, bounds, and rankers that decline pairs."""
