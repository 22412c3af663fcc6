"""Errors of tasks as errors of the driver, in one line: Spark hands over but the text of what was raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from concordant import errors
from concordant.errors import ConcordantError, InputError
from concordant.spark.checking import Refused
from concordant.spark.spreading import TooLarge

__all__ = ["told"]

RAISED = re.compile(
    r"concordant\.(?:errors|spark\.checking|spark\.spreading)\.(\w+): (.*?)(?:\n\n|\n\tat |\Z)", re.DOTALL
)


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turn an error of a task or of Spark into one of ours, in one line."""
    try:
        yield
    except PySparkException as error:
        text = str(error)
        raised = RAISED.search(text)
        if raised is None:
            line = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
            raise InputError(f"{name}: Spark: {line.strip()[:300]}") from None
        for ours in (Refused, TooLarge):
            if raised[1] == ours.__name__:
                raise ours(f"{name}: {' '.join(raised[2].split())}") from None
        kind = getattr(errors, raised[1], ConcordantError)
        said = " ".join(raised[2].split())
        raise kind(said if said.startswith(name) else f"{name}: {said}") from None
