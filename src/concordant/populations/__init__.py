"""Facts of the mean preferences of each query: cycles, low noise, winners, regrets of scores."""
