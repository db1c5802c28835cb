"""Whether the tables under a query can be read."""

from __future__ import annotations

from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.specs import ScanSpec
from flowsql_planner.bind.context import BindContext
from flowsql_planner.logical.nodes import Rel, Scan
from flowsql_planner.logical.rewrite import walk


def require_readable(rel: Rel, context: BindContext) -> None:
    """Refuse a view's query over a table that no connector reads; Flink, too, looks when the view is made.

    Raises:
        FlowSqlError: a sink-only connector, or options that do not fit, at the table's place in the query.
    """
    from flowsql_connectors import registry  # most definitions read nothing

    flat = dict(context.config.items())
    for scan in walk(rel):
        if not isinstance(scan, Scan):
            continue
        table = scan.table
        try:
            registry.create_source(ScanSpec(table, tuple(range(len(table.columns))), table.columns), flat)
        except FlowSqlError as error:
            error.at = error.at or scan.span
            raise
