"""The process from which Spark forks its Python workers: what each would load, for a second or more, it has loaded."""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import sys

LOADED = ("pandas", "pyarrow.parquet", "pyspark.worker", "pyspark.sql.pandas.serializers", "concordant.ranking")


def main() -> None:
    """Load, then be Spark's own daemon."""
    os.chdir(os.path.dirname(os.path.abspath(__file__)))  # where Java began may be gone: a folder of a test
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads do not survive a fork
    sys.path[:] = [place for place in sys.path if not place.endswith(".zip")]  # each worker would read those again
    import concordant
    import concordant.apps.spark

    for name in concordant.__all__:
        if name not in ("spark", "torch"):
            getattr(concordant, name)
    parts = [f"concordant.apps.spark.{part.name}" for part in pkgutil.iter_modules(concordant.apps.spark.__path__)]
    for name in (*LOADED, *parts):
        importlib.import_module(name)
    concordant.rank(concordant.read({"winner": ["a", "b"], "loser": ["b", "a"]}))  # kernels out of their cache
    from pyspark.daemon import manager

    gc.collect()
    gc.freeze()  # a worker collects garbage after each task, and would look at all of this again: a tenth of a second
    manager()


if __name__ == "__main__":
    main()
