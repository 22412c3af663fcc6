"""Errors of tasks as errors of the driver, in one line: Spark hands over but the text of what was raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from concordant import errors
from concordant.apps.spark.checking import Refused
from concordant.apps.spark.partitioning import TooLarge
from concordant.errors import ConcordantError, Idle, InputError, Setting, Unavailable, UsageError
from concordant.io.engines.spark import FAILURES, chain, lacking, telling_line

OURS = "|".join(re.escape(place) for place in (errors.__name__, Refused.__module__, TooLarge.__module__))
RAISED = re.compile(rf"(?:{OURS})\.(\w+): (.*?)(?:\n\n|\n\tat |\s+SQLSTATE: |\Z)", re.DOTALL)
NO_MEMORY = re.compile(r"(?<!OutOf)MemoryError|malloc of size|Cannot allocate memory")
IN_PYTHON = re.compile(r"^(?:\w+\.)*\w+(?:Error|Exception|Interrupt)\b.*", re.MULTILINE)
"""The line of a traceback of Python that says what was raised."""
GONE = re.compile(r"Python worker (?:exited unexpectedly|failed to connect)", re.IGNORECASE)


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turn an error of a task, of Spark or of Java into one of ours, in one line."""
    try:
        yield
    except FAILURES as error:
        text = chain(error)
        raised = RAISED.search(text)
        if raised is None and (lack := lacking(text)):
            raise Unavailable(f"{name}: Spark: {lack}") from None
        if raised is None:
            raise InputError(f"{name}: Spark: ", *(_said(text) or (type(error).__name__,))) from None
        for ours in (Refused, TooLarge):
            if raised[1] == ours.__name__:
                raise ours(f"{name}: {' '.join(raised[2].split())}") from None
        kind = getattr(errors, raised[1], ConcordantError)
        kind = UsageError if kind is Idle else kind  # made of an option and a reason
        said = " ".join(raised[2].split())
        raise kind(said if said.startswith(name) else f"{name}: {said}") from None


def _said(text: str) -> tuple[str | Setting, ...]:
    """Return what to do, where it is known, or the most telling line."""
    if NO_MEMORY.search(text):
        return ("a Python worker needs more memory: raise spark.executor.pyspark.memory",)
    if "OutOfMemoryError" in text:
        return "Java needs more memory: raise ", Setting("memory_limit"), ", or spark.executor.memory"
    if GONE.search(text):
        said = "a Python worker ended without a word, often for want of memory: give the executors more, or more tasks"
        return (said,)
    _, there, traceback = text.rpartition("Traceback (most recent call last)")
    if there and (line := IN_PYTHON.search(traceback)):
        return (f"a task failed: {line[0].strip()[:240]}",)
    return (telling_line(text),) if text.strip() else ()
