"""PyFlink's place for ``ResultKind``, which stands in ``result``."""

from __future__ import annotations

from flowsql.table.result import ResultKind as ResultKind
