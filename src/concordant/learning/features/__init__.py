"""Features of items: matrices with labelled rows, how they are read, normalised and matched."""
