"""The command, run in the process of the tests."""

from __future__ import annotations

from concordant.apps.commands import main


def exit_status(*arguments: object) -> int:
    """Run ``concordant`` with these arguments and return what it exits with."""
    try:
        main([str(one) for one in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0
