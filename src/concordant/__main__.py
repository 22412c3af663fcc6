"""``python -m concordant``."""

from concordant.commands import main

main()
