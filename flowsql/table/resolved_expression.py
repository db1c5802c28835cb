"""An expression with the type of its result."""

from __future__ import annotations

from flowsql.table.catalog.resolved_schema import ResolvedExpression as ResolvedExpression
