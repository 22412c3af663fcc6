"""The same work on a cluster: each query is one task's, only small results reach the driver (extra ``[spark]``)."""

from concordant.io.engines import spark_session as _session  # noqa: F401  (it says what to install where PySpark is not)
