"""CREATE VIEW and ALTER VIEW ... AS: the query bound now and kept as text with every name expanded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_connectors import registry
from flowsql_core.catalog import CatalogView, TableColumn
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.output_names import column_alias
from flowsql_planner.bind.query.known_views import Asked, KnownView
from flowsql_planner.bind.query.query import bind_query
from flowsql_planner.bind.sql_text.expand_names import Expansions, expand
from flowsql_planner.bind.sql_text.named_view import with_names
from flowsql_planner.bind.sql_text.unparse import unparse_query
from flowsql_planner.bind.sql_text.validated_form import validated
from flowsql_planner.error_position import errors_at
from flowsql_planner.logical.nodes import Rel, Scan, inputs


def bind_create_view(context: BindContext, node: ast.CreateView) -> op.CreateView:
    """The view: its query bound now, kept as text with every name expanded."""
    path = context.qualify(node.name)
    return op.CreateView(path, make_view(context, node), node.temporary, node.if_not_exists, node.span)


def make_view(context: BindContext, node: ast.CreateView) -> CatalogView:
    """The catalog object of a view."""
    expansions: Expansions = {}
    query = with_names(node.query)
    asked = Asked()
    rel = bind_query(replace(context, expansions=expansions, asked=asked), query)
    _require_readable(rel, context, asked.views)
    names = tuple(column.name for column in rel.schema)
    if node.columns:
        if len(node.columns) != len(names):
            raise BindError(
                "view-columns",
                "VIEW definition and input fields not match:\n"
                f"\tDef fields: [{', '.join(name.text for name in node.columns)}].\n\tInput fields: "
                f"[{', '.join(names)}].",
                node.name.span,
            )
        names = tuple(name.text for name in node.columns)
    elif isinstance(node.query.body, ast.Select):
        # The query's own answer would call the second one ``a0``.
        written = [column_alias(item) for item in node.query.body.items if isinstance(item, ast.SelectItem)]
        named = [name for name in written if name is not None]
        _refuse_duplicates(named, (), node.name.span)
    _refuse_duplicates(names, node.columns, node.name.span)
    columns = tuple(TableColumn(name, column.type) for name, column in zip(names, rel.schema, strict=True))
    expanded = unparse_query(validated(expand(query, expansions)))
    original = context.text_of(node.query.span) or expanded
    return CatalogView(original, expanded, columns, node.comment)


def _refuse_duplicates(names: Sequence[str], nodes: Sequence[ast.Name], span: Span) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            at = nodes[i].span if nodes else span
            raise BindError("duplicate-column", f"A column with the same name `{name}` has been defined", at)


def _require_readable(rel: Rel, context: BindContext, views: Sequence[KnownView]) -> None:
    """Refuse a view's query over a table that no connector reads; Flink, too, looks when the view is made.

    Args:
        views: the views that the query reads; those that an earlier statement has judged are not judged again.

    Raises:
        FlowSqlError: a sink-only connector, or options that do not fit, at the table's place in the query.
    """
    flat = dict(context.config.items())
    judged = {id(known.rel) for known in views if known.is_readable}
    waiting = [rel]
    while waiting:
        node = waiting.pop()
        if id(node) in judged:
            continue
        waiting.extend(reversed(inputs(node)))
        if isinstance(node, Scan):
            table = node.table
            with errors_at(node.span):
                registry.create_source(ScanSpec(table, tuple(range(len(table.columns))), table.columns), flat)
    for known in views:
        known.is_readable = True
