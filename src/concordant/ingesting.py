"""Logs become batches of a store, each exactly once."""
