"""Whether preferences, with a loss, can lead to the right order, and what more judgments would settle."""
