"""Tables that an option of another table names: looked up, and what the connector needs of them put in."""

from __future__ import annotations

from flowsql_connectors import registry
from flowsql_core.catalog import CatalogTable, ObjectPath
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_grammar.script import parse_expression
from flowsql_planner.bind.context import BindContext
from flowsql_planner.catalog.schema import table_spec
from flowsql_planner.error_position import errors_at


def with_referenced_table(context: BindContext, spec: TableSpec, key: str, name: str, span: Span | None) -> TableSpec:
    """The table with what its connector needs of the one that its option ``key`` calls ``name``.

    A name of one or two parts is looked for in the database or catalog of the table itself.

    Raises:
        BindError: the name is of no table, or of one that does not fit.
    """
    referenced = _find(context, spec, key, name, span)
    with errors_at(span):
        return registry.with_referenced(spec, referenced)


def _find(context: BindContext, spec: TableSpec, key: str, name: str, span: Span | None) -> TableSpec:
    tree = parse_expression(name)
    texts = tree.path.texts if isinstance(tree, ast.ColumnRef) else ()
    if not 1 <= len(texts) <= 3:
        raise BindError("bad-table-reference", f"'{key}' = '{name}' is no name of a table.", span)
    path = ObjectPath(*(*spec.path[: 3 - len(texts)], *texts))
    found = context.lookup(path)
    if found is None or not isinstance(found.value, CatalogTable):
        raise BindError("table-not-found", f"Object '{path.name}' of '{key}' not found", span, f"create table {path}")
    return table_spec(path, found.value)
