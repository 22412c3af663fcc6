"""What more judgments would settle, and which pairs to ask next."""
