"""The same work on a cluster: each query is one task's, only small results reach the driver (extra ``[spark]``)."""
