"""PyFlink's place for ``ResultKind``, which stands in ``table_result``."""

from __future__ import annotations

from flowsql.table.table_result import ResultKind as ResultKind
