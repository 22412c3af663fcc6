"""Scoring functions learned from preferences, as scikit-learn estimators."""
