"""Whether preferences, with a loss, can lead to the right order: facts of the population, regrets, sampling noise."""
