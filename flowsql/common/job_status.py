"""``JobStatus`` under the name of PyFlink's module."""

from __future__ import annotations

from flowsql_runtime.cluster.job import JobStatus

__all__ = ["JobStatus"]
