"""What of a population's cycles, winners and regrets is more than sampling noise."""
