"""ANALYZE TABLE: the query that counts rows and looks at columns, and how its answer becomes statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flowsql_core.catalog import (
    CatalogPartition,
    CatalogTable,
    ColumnKind,
    ColumnStatistics,
    ObjectPath,
    TableColumn,
    TableStatistics,
)
from flowsql_core.config import RUNTIME_MODE
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_grammar.script import parse_statement
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.ddl.partition_clause import partition_values
from flowsql_planner.bind.query.query import bind_query
from flowsql_planner.bind.sql_text.respan import respan
from flowsql_planner.bind.sql_text.unparse import text_literal
from flowsql_planner.catalog.manager import CatalogManager, quoted


def bind_analyze(context: BindContext, node: ast.AnalyzeTable) -> op.AnalyzeTable:
    """The query behind ANALYZE TABLE. It has the same answer row by row as a streaming one, which is what runs.

    Raises:
        BindError: in streaming mode; for views; for missing or wrong partition keys and columns (Flink's words).
    """
    path, table = _table(context, node)
    if context.streaming:
        raise BindError(
            "batch-only",
            "ANALYZE TABLE is not supported for streaming mode now",
            node.span,
            "SET 'execution.runtime-mode' = 'batch'",
        )
    _check_partition(node, path, table)
    columns = _columns(node, path, table)
    text = _query_text(node, path, table, columns)
    statement = parse_statement(text)
    assert isinstance(statement, ast.QueryStatement)
    streaming = replace(context, config=context.config.with_layer({RUNTIME_MODE.key: "streaming"}), source=None)
    query = op.Query(bind_query(streaming, respan(statement.query, node.span)), node.span)
    return op.AnalyzeTable(path, query, tuple(c.name for c in columns), table.partition_keys, node.name.span)


def _table(context: BindContext, node: ast.AnalyzeTable) -> tuple[ObjectPath, CatalogTable]:
    path = context.qualify(node.name)
    found = context.catalogs.lookup(path)
    if found is None or found.temporary:
        raise BindError(
            "table-not-found",
            f"Table {quoted(path)} doesn't exist or is a temporary table.",
            node.name.span,
            did_you_mean(path.name, context.catalogs.object_names(path.catalog, path.database)),
        )
    if not isinstance(found.value, CatalogTable):
        raise BindError("analyze-view", "ANALYZE TABLE for a view is not allowed", node.name.span)
    return path, found.value


def _check_partition(node: ast.AnalyzeTable, path: ObjectPath, table: CatalogTable) -> None:
    given = [] if node.partition is None else [entry.name.text for entry in node.partition.entries]
    if given and not table.partition_keys:
        raise BindError(
            "not-partitioned",
            f"Invalid ANALYZE TABLE statement. Table: {quoted(path)} is not a partition table, while partition values "
            "are given.",
            node.span,
        )
    if set(given) != set(table.partition_keys):
        raise BindError(
            "partition-keys",
            "Invalid ANALYZE TABLE statement. For partition table, all partition keys should be specified explicitly. "
            f"The given partition keys: [{','.join(given)}] are not match the target partition keys: "
            f"[{','.join(table.partition_keys)}].",
            node.span,
            f"PARTITION ({', '.join(table.partition_keys)}) is all of them",
        )


def _columns(node: ast.AnalyzeTable, path: ObjectPath, table: CatalogTable) -> list[TableColumn]:
    physical = {column.name: column for column in table.columns if column.kind is ColumnKind.PHYSICAL}
    if node.all_columns:
        return list(physical.values())
    for name in node.columns:
        if table.column(name.text) is None:
            raise BindError(
                "column-not-found",
                f"Column: {name.text} does not exist in the table: {quoted(path)}.",
                name.span,
                did_you_mean(name.text, physical),
            )
        if name.text not in physical:
            raise BindError(
                "not-a-physical-column",
                f"Column: {name.text} is a computed or metadata column, ANALYZE TABLE does not support it.",
                name.span,
            )
    return [physical[name.text] for name in node.columns]


def _query_text(node: ast.AnalyzeTable, path: ObjectPath, table: CatalogTable, columns: Sequence[TableColumn]) -> str:
    items = [t.quote_identifier(key) for key in table.partition_keys]
    items.append("COUNT(*)")
    for column in columns:
        items += _measures(column)
    text = f"SELECT {', '.join(items)} FROM {quoted(path)}"
    fixed = () if node.partition is None else partition_values(node.partition)
    if fixed:
        conditions = [f"CAST({t.quote_identifier(key)} AS STRING) = {text_literal(value)}" for key, value in fixed]
        text += f" WHERE {' AND '.join(conditions)}"
    if table.partition_keys:
        text += f" GROUP BY {', '.join(t.quote_identifier(key) for key in table.partition_keys)}"
    return text


def _measures(column: TableColumn) -> list[str]:
    """Six values a column: not null, distinct, smallest, greatest, average length, longest; NULL where not asked."""
    name = t.quote_identifier(column.name)
    null = "CAST(NULL AS DOUBLE)"
    match column.type:
        case t.NumericType():
            number = f"CAST({name} AS DOUBLE)"
            measures = [f"COUNT(DISTINCT {name})", f"MIN({number})", f"MAX({number})", null, null]
        case t.CharacterType():
            length = f"CAST(CHAR_LENGTH({name}) AS DOUBLE)"
            measures = [f"COUNT(DISTINCT {name})", null, null, f"AVG({length})", f"MAX({length})"]
        case t.BooleanType() | t.DateTimeType():
            measures = [f"COUNT(DISTINCT {name})", null, null, null, null]
        case _:
            measures = [null, null, null, null, null]
    # MAX keeps a constant NULL an aggregate, so that GROUP BY allows it.
    return [f"COUNT({name})", *(f"MAX({m})" if m == null else m for m in measures)]


def store_statistics(operation: op.AnalyzeTable, answer: Sequence[Sequence[Any]], catalogs: CatalogManager) -> None:
    """Keep what the query found.

    Args:
        operation: the bound statement.
        answer: its rows as Python values: partition keys, number of rows, six values a column.
        catalogs: where the table stands.
    """
    path = operation.path
    store = catalogs.catalog(path.catalog, operation.span)
    details = store.details(path.database, path.name)
    keys = len(operation.partition_keys)
    if not keys:
        found = _statistics(operation, answer[0]) if answer else TableStatistics(0)
        store.put_details(path.database, path.name, replace(details, statistics=found))
        return
    by_values = {
        frozenset((key, str(value)) for key, value in zip(operation.partition_keys, row[:keys], strict=True)): row
        for row in answer
    }

    def updated(partition: CatalogPartition) -> CatalogPartition:
        row = by_values.get(frozenset(partition.values))
        return partition if row is None else replace(partition, statistics=_statistics(operation, row[keys:]))

    partitions = tuple(updated(partition) for partition in details.partitions)
    store.put_details(path.database, path.name, replace(details, partitions=partitions))


def _statistics(operation: op.AnalyzeTable, row: Sequence[Any]) -> TableStatistics:
    rows = int(row[0])
    columns = []
    for i, name in enumerate(operation.columns):
        present, distinct, smallest, greatest, average, longest = row[1 + 6 * i : 7 + 6 * i]
        columns.append(
            (
                name,
                ColumnStatistics(
                    rows - present,
                    None if distinct is None else int(distinct),
                    average,
                    None if longest is None else int(longest),
                    greatest,
                    smallest,
                ),
            )
        )
    return TableStatistics(rows, tuple(columns))
