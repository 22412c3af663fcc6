"""A store: counted judgments on disk, taken in batch by batch, each exactly once."""
