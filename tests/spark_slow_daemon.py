"""The daemon of Python workers of the tests, on a host where every task stops half way with what it has written.

Where ``CONCORDANT_SLOW`` names seconds, a task that writes Arrow batches writes the first one, or every second task
all, and waits that long before it goes on: what another attempt overtakes has something to leave behind.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from typing import Any

import spark_daemon


def slowed(seconds: float) -> None:
    """Make what writes Arrow batches wait before the end."""
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer

    write: Any = ArrowStreamSerializer.dump_stream

    def halting(self: Any, batches: Iterator[Any], stream: Any) -> Any:
        some = 1 if os.getpid() % 2 else None

        def stopping() -> Iterator[Any]:
            rest = iter(batches)
            yield from itertools.islice(rest, some)
            time.sleep(seconds)
            yield from rest

        return write(self, stopping(), stream)

    ArrowStreamSerializer.dump_stream = halting


if __name__ == "__main__":
    if os.environ.get("CONCORDANT_SLOW"):
        slowed(float(os.environ["CONCORDANT_SLOW"]))
    spark_daemon.main()
