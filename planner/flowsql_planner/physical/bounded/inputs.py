"""How much a bounded statement reads, as far as that is known before it runs, and whether anything waits for rows."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.errors import FlowSqlError
from flowsql_core.record import record
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import LookupJoin, MatchNode, Physical, TableSourceScan, ValuesNode, walk
from flowsql_planner.physical.nodes.bounded.base import BoundedNode
from flowsql_planner.traits.cost import row_bytes


@record
class Inputs:
    """What a statement reads.

    ``size_bytes``: of all inputs whose size is known. ``unknown``: a table whose size is not, if there is one.
    ``waits``: an operator holds rows until its input has ended. ``here``: why an input is to be read by FlowSQL's own
    runtime, if one is.
    """

    size_bytes: int
    unknown: str | None
    waits: bool
    here: str | None = None


def inputs_of(roots: Sequence[Physical], context: PlanContext) -> Inputs:
    """The inputs of a physical plan, each table once per scan that runs."""
    size, unknown, waits = 0.0, None, False
    here: str | None = None
    seen: set[int] = set()
    for node in (node for root in roots for node in walk(root)):
        if id(node) in seen:
            continue
        seen.add(id(node))
        waits = waits or isinstance(node, BoundedNode | MatchNode)
        match node:
            case ValuesNode():
                size += len(node.rows) * row_bytes(node.schema)
            case TableSourceScan():
                here = here or context.table_source(node.table, node.span).stays_here()
                found = _table_bytes(node, context)
                if found is None:
                    unknown = unknown or node.table.name
                else:
                    size += found
            case LookupJoin():
                unknown = unknown or node.scan.table.name
    return Inputs(int(size), unknown, waits, here)


def _table_bytes(node: TableSourceScan, context: PlanContext) -> float | None:
    source = context.table_source(node.table, node.span)
    try:
        size = source.input_bytes()
    except FlowSqlError:
        # What cannot be listed cannot be read, either: whoever reads says so.
        return 0.0
    if size is not None:
        return float(size)
    rows = source.input_rows()
    return None if rows is None else rows * row_bytes(node.table.columns)
