"""What the name of a table stands for: an object of the catalogs, or files, whose columns are inferred."""

from __future__ import annotations

import os

from flowsql_connectors import registry
from flowsql_core.catalog import ANONYMOUS, CatalogTable, ObjectPath, TableColumn
from flowsql_core.graph.specs import TableSpec
from flowsql_core.span import Span
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.sql_text.unparse import text_literal
from flowsql_planner.catalog.manager import Resolved
from flowsql_planner.catalog.schema import Options
from flowsql_planner.error_position import errors_at


def look_up(context: BindContext, name: ast.Identifier, options: Options = ()) -> Resolved | None:
    """What a name stands for; None for names of nothing.

    ``options``: those of a hint, which hold for files whatever their rows look like.

    Raises:
        BindError, ConnectorError: the files are not there, or are no table.
    """
    if isinstance(name, ast.FileName):
        return file_table(context, name, options)
    return context.catalogs.lookup(context.qualify(name))


def file_table(context: BindContext, name: ast.FileName, options: Options = ()) -> Resolved:
    """The table of the files that a text names. It has no place in a catalog."""
    text = name.last.text
    path = ObjectPath(ANONYMOUS, ANONYMOUS, text)
    spec = registry.at_location(path.parts, text)
    spec = TableSpec(spec.path, (), tuple({**dict(spec.options), **dict(options)}.items()))
    table = inferred_table(context, spec, name.span, text_literal(text))
    assert table is not None, "whose tables are named by a location infers their columns"
    return Resolved(path, table, True)


def inferred_table(context: BindContext, spec: TableSpec, span: Span, shown: str) -> CatalogTable | None:
    """A table without columns with those that its rows show; None where its connector does not tell.

    ``shown``: what SQL calls the table; the user is told so.
    """
    with errors_at(span):
        found = registry.inferred(spec, dict(context.config.items()))
    if found is None:
        return None
    context.catalogs.tell_inferred(shown, found.note)
    columns = tuple(TableColumn(column.name, column.type) for column in found.columns)
    return CatalogTable(columns, found.options, partition_keys=found.partition_keys)


def alias_of(name: ast.FileName) -> str | None:
    """What columns of files may be qualified with: the file's name up to its first dot; None for several files.

    >>> alias_of(ast.FileName((ast.Name("data/flights.csv.gz"),)))
    'flights'
    """
    text = name.last.text
    if any(mark in text for mark in "*?["):
        return None
    return os.path.basename(text.rstrip("/")).partition(".")[0] or None


def everywhere(name: ast.FileName) -> ast.FileName:
    """The name from the root on: what a view reads stays the same in another working directory."""
    text = os.path.expanduser(name.last.text)
    whole = text if "://" in text else os.path.abspath(text)
    return ast.FileName((ast.Name(whole, span=name.span, quoted=True),), span=name.span)
