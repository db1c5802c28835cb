"""Scan -> TableSourceScan; below a ChangelogNormalize where its changes are not complete."""

from __future__ import annotations

from flowsql_core.config import RUNTIME_MODE
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.spark import BATCH_ENGINE
from flowsql_core.graph.specs import TableSpec
from flowsql_planner.logical.nodes import Scan
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import ChangelogNormalize, Physical, TableSourceScan


def primary_key_places(table: TableSpec, projection: tuple[int, ...]) -> tuple[int, ...]:
    """Where the columns of the primary key stand among those that are read, as far as they are."""
    names = [table.columns[index].name for index in projection]
    return tuple(names.index(name) for name in table.primary_key if name in names)


def plan_scan(rel: Scan, context: PlanContext) -> Physical:
    """The scan of a table.

    Raises:
        NotSupportedYetError: only another engine reads it.
    """
    strange = context.table_source(rel.table, rel.span).only_elsewhere()
    if strange is not None:
        raise NotSupportedYetError(
            strange, rel.span, f"SET '{RUNTIME_MODE.key}' = 'batch', and '{BATCH_ENGINE.key}' = 'spark'"
        )
    scan = TableSourceScan(
        inputs=(),
        schema=rel.schema,
        table=rel.table,
        projection=rel.projection,
        metadata=rel.metadata,
        filters=rel.filters,
        limit=rel.limit,
        span=rel.span,
    )
    if not context.normalizes(rel.table, rel.span):
        return scan
    keys = primary_key_places(rel.table, rel.projection)
    return ChangelogNormalize(
        inputs=(exchange(scan, keys),),
        schema=rel.schema,
        keys=keys,
        mini_batch=context.mini_batch is not None,
        span=rel.span,
    )
