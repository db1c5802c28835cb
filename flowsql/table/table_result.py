"""PyFlink's place for ``TableResult`` and the iterator of its rows, which stand in ``result``."""

from __future__ import annotations

from flowsql.table.result import RowIterator as CloseableIterator
from flowsql.table.result import TableResult as TableResult

__all__ = ["CloseableIterator", "TableResult"]
