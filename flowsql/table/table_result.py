"""PyFlink's place for ``TableResult``, which stands in ``result``."""

from __future__ import annotations

from flowsql.table.result import TableResult as TableResult
