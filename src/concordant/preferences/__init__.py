"""From columns of judgments to counted preferences, and from these to batches of comparison graphs."""
