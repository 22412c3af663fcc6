"""Ranking with abstention: pairs of points too near to be ordered cost a price instead of a mistake (RwA)."""
