"""Structure functions: from a batch of judgments to scores (AoS §5, §6)."""
