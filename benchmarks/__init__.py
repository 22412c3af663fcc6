"""Side by side with peers, one process for each contender: ``make bench``."""
