"""The best order for the pairwise loss: exact where it can be, else with a proven bound."""
