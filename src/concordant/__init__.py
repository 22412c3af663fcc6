"""concordant: from a log of who preferred what to a ranking, or a scoring function, that can be trusted."""

__version__ = "0.1.0"
