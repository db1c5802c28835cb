"""``JobStatus`` under the name of PyFlink's module."""

from __future__ import annotations

from flowsql_runtime.cluster.local import JobStatus

__all__ = ["JobStatus"]
