"""How sure a ranking is: standard errors, bootstrap, quasi-variances, intervals for ranks."""
