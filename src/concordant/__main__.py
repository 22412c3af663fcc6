"""``python -m concordant``."""

from concordant.apps.commands import main

main()
