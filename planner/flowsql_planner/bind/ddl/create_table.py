"""CREATE TABLE, and CREATE OR REPLACE TABLE ... AS with the INSERT that fills it."""

from __future__ import annotations

from flowsql_core.catalog import CatalogTable, ColumnKind, ObjectPath
from flowsql_core.errors import BindError
from flowsql_core.expr import Expr, Literal
from flowsql_grammar import ast
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.ddl.table_builder import TableBuilder
from flowsql_planner.bind.dml.insert import sink_of
from flowsql_planner.bind.query.query import bind_query
from flowsql_planner.catalog.manager import quoted
from flowsql_planner.logical.nodes import Project, Rel
from flowsql_planner.logical.rewrite import refs


def bind_create_table(context: BindContext, node: ast.CreateTable) -> op.CreateTable | op.CreateTableAs:
    """The table that a CREATE TABLE describes; with AS SELECT, the INSERT that fills it too."""
    path = context.qualify(node.name)
    _check_as(node)
    rel = None if node.query is None else bind_query(context, node.query)
    # As in Flink, OR REPLACE replaces where AS follows; without it, a name that is taken is refused.
    replaces = node.replace and rel is not None
    if replaces:
        _check_replaced(context, node, path)
    if rel is not None and node.if_not_exists:
        existing = context.catalogs.lookup(path)
        if existing is not None and isinstance(existing.value, CatalogTable):
            # As in Flink: the rows go to the table that is there.
            create = op.CreateTable(path, existing.value, False, True, False, node.span)
            return op.CreateTableAs(
                create, op.Insert(sink_of(context, rel, path, existing.value, span=node.span), node.span)
            )
    builder = TableBuilder(context, node)
    if rel is not None:
        builder.take_query_columns(rel)
    table = builder.build()
    if not node.temporary:
        table = context.catalogs.completed(path, table)
    create = op.CreateTable(path, table, node.temporary, node.if_not_exists, replaces, node.span)
    if rel is None:
        return create
    arranged = _arrange(rel, table, node)
    return op.CreateTableAs(create, op.Insert(sink_of(context, arranged, path, table, span=node.span), node.span))


def _check_as(node: ast.CreateTable) -> None:
    """What does not go together with AS SELECT."""
    if node.query is None:
        return
    if node.temporary:
        raise BindError(
            "temporary-ctas",
            "CREATE TABLE AS SELECT syntax does not support to create temporary table yet.",
            node.name.span,
            "create the table first, then INSERT INTO it",
        )
    if node.replace and node.if_not_exists:
        raise BindError(
            "replace-if-not-exists",
            "CREATE OR REPLACE TABLE AS SELECT syntax does not support IF NOT EXISTS statements yet.",
            node.name.span,
            "leave out OR REPLACE, or IF NOT EXISTS",
        )


def _check_replaced(context: BindContext, node: ast.CreateTable, path: ObjectPath) -> None:
    """REPLACE TABLE (without CREATE OR) wants a table to be there; the tree does not tell the two apart."""
    text = context.text_of(node.span)
    found = context.catalogs.lookup(path)
    if text is not None and text[:7].upper() == "REPLACE" and found is None:
        raise BindError(
            "table-not-found",
            f"The table {quoted(path)} to be replaced doesn't exist. You can try to use CREATE TABLE AS statement or "
            "CREATE OR REPLACE TABLE AS statement.",
            node.name.span,
        )
    if found is not None and not isinstance(found.value, CatalogTable):
        raise BindError(
            "table-not-found", f"Table with identifier '{path}' does not exist.", node.name.span, "it is a view"
        )


def _arrange(rel: Rel, table: CatalogTable, node: ast.CreateTable) -> Rel:
    """CREATE TABLE AS: the query's columns at their places in the new table, NULL in those it does not fill."""
    given = dict(zip((column.name for column in rel.schema), refs(rel.schema), strict=True))
    physical = [column for column in table.columns if column.kind is ColumnKind.PHYSICAL]
    if [column.name for column in physical] == [column.name for column in rel.schema]:
        return rel
    exprs: list[Expr] = []
    for column in physical:
        if column.name not in given and not column.type.nullable:
            raise BindError(
                "missing-not-null-column",
                f"Column '{column.name}' has no default value and does not allow NULLs",
                node.span,
            )
        exprs.append(given.get(column.name) or Literal(None, column.type, node.span))
    return Project(rel, tuple(exprs), tuple(column.name for column in physical), node.span)
