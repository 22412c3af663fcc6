"""A store of counted judgments on disk that takes in each log exactly once."""
