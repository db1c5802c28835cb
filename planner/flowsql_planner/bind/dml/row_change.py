"""UPDATE, DELETE and TRUNCATE: checked as Flink checks them, then refused as it does, for no connector changes rows."""

from __future__ import annotations

from flowsql_core.catalog import CatalogTable, ObjectPath
from flowsql_core.errors import BindError, did_you_mean
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.dml.insert import no_sink
from flowsql_planner.bind.query.query import bind_query

RowChange = ast.Update | ast.Delete | ast.Truncate

_INSTEAD = "INSERT OVERWRITE replaces the rows of a table or partition"


def refuse_row_change(context: BindContext, node: RowChange) -> BindError:
    """Why the statement does not run; its names and types are judged first.

    Raises:
        BindError: the condition or a value is wrong in itself.
    """
    path = context.qualify(node.target)
    found = context.catalogs.lookup(path)
    if isinstance(node, ast.Truncate):
        return _refuse_truncate(context, node, path)
    if found is None:
        hint = did_you_mean(path.name, context.catalogs.object_names(path.catalog, path.database))
        return BindError("table-not-found", f"Object '{node.target.last.text}' not found", node.target.span, hint)
    if not isinstance(found.value, CatalogTable):
        return BindError("table-not-found", f"Sink '{path}' does not exists", node.target.span, "it is a view")
    _check(context, node, found.value)
    word = "delete" if isinstance(node, ast.Delete) else "update"
    if context.streaming:
        text = f"{word.upper()} statement is not supported for streaming mode now."
        return BindError("batch-only", text, node.span, "SET 'execution.runtime-mode' = 'batch'")
    return BindError(
        "no-row-changes",
        f"Can't perform {word} operation of the table {path} because the corresponding dynamic table sink has not yet "
        f"implemented SupportsRowLevel{word.capitalize()}.",
        node.target.span,
        _INSTEAD,
    )


def _refuse_truncate(context: BindContext, node: ast.Truncate, path: ObjectPath) -> BindError:
    found = context.catalogs.lookup(path)
    if found is None:
        return no_sink(context, path, node.target.span)
    if context.streaming:
        text = "TRUNCATE TABLE statement is not supported in streaming mode."
        return BindError("batch-only", text, node.span, "SET 'execution.runtime-mode' = 'batch'")
    if not isinstance(found.value, CatalogTable):
        return BindError("truncate-view", "TRUNCATE TABLE for a view is not allowed", node.target.span)
    return BindError(
        "no-row-changes",
        f"TRUNCATE TABLE statement is not supported for the table {path} since the table hasn't implemented the "
        "interface SupportsTruncate.",
        node.target.span,
        _INSTEAD,
    )


def _check(context: BindContext, node: ast.Update | ast.Delete, table: CatalogTable) -> None:
    """The query whose rows would change, bound for its errors alone."""
    items: list[ast.SelectItem] = []
    if isinstance(node, ast.Update):
        for assignment in node.assignments:
            name = assignment.column
            if table.column(name.text) is None:
                hint = did_you_mean(name.text, [column.name for column in table.columns])
                raise BindError("column-not-found", f"Unknown target column '{name.text}'", name.span, hint)
            items.append(ast.SelectItem(assignment.value, span=assignment.span))
    else:
        items.append(ast.SelectItem(ast.Star(span=node.span), span=node.span))
    alias = None if node.alias is None else ast.TableAlias(node.alias, span=node.alias.span)
    read = ast.TableRef(node.target, node.hints, None, alias, span=node.target.span)
    bind_query(context, ast.Query(ast.Select(tuple(items), read, node.where, span=node.span), span=node.span))
