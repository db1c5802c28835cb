"""``TimeDomain``, under the name of PyFlink's module."""

from __future__ import annotations

from flowsql_core.stream.timer import TimeDomain

__all__ = ["TimeDomain"]
