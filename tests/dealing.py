"""Which process takes which tests: those of some files go together, all others wherever there is room."""

from __future__ import annotations

from pathlib import PurePosixPath

from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("test_spark_speculation", "test_distribution", "test_serve_", "test_report_browser")
"""Beginnings of the names of files whose tests look at something that takes long to make, once in a process."""


class Dealing(LoadScopeScheduling):
    """A test is dealt by itself, but for those of the files that go together."""

    def _split_scope(self, nodeid: str) -> str:
        name = PurePosixPath(nodeid.split("::")[0]).name
        return next((group for group in TOGETHER if name.startswith(group)), nodeid)
