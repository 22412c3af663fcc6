"""Scoring functions learned from preferences and features."""
