"""``Row`` and ``RowKind`` under the name of PyFlink's module."""

from __future__ import annotations

from flowsql.common.row import Row
from flowsql_core.row import RowKind

__all__ = ["Row", "RowKind"]
