"""SHOW and DESCRIBE: answers from the catalogs, in Flink's columns and texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import assert_never

from flowsql_core.catalog import CatalogObject, CatalogTable, CatalogView, ColumnKind, TableColumn
from flowsql_core.errors import BindError, NotSupportedYetError, did_you_mean
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.operations import Rows
from flowsql_planner.bind.unparse import text_literal
from flowsql_planner.catalog.manager import Resolved, quoted
from flowsql_planner.catalog.schema import Options, resolved_type

_DESCRIBE = (
    t.Column("name", t.STRING),
    t.Column("type", t.STRING),
    t.Column("null", t.BOOLEAN),
    t.Column("key", t.STRING),
    t.Column("extras", t.STRING),
    t.Column("watermark", t.STRING),
)
_COMMENT = t.Column("comment", t.STRING)


def bind_show(context: BindContext, node: ast.Show) -> Rows:
    """SHOW CATALOGS, DATABASES, TABLES, VIEWS, COLUMNS."""
    catalogs = context.catalogs
    match node.kind:
        case ast.ShowKind.CATALOGS:
            return _names("catalog name", catalogs.catalog_names(), node.like)
        case ast.ShowKind.DATABASES:
            catalog = catalogs.current_catalog if node.place is None else node.place.last.text
            return _names("database name", catalogs.catalog(catalog, _at(node.place)).databases(), node.like)
        case ast.ShowKind.TABLES | ast.ShowKind.VIEWS:
            catalog, database = _place(context, node.place)
            if catalogs.catalog(catalog, _at(node.place)).database(database) is None:
                raise BindError(
                    "database-not-found", f"Database '{catalog}'.'{database}' doesn't exist.", _at(node.place)
                )
            only = CatalogView if node.kind is ast.ShowKind.VIEWS else None
            title = "view name" if only is not None else "table name"
            return _names(title, catalogs.object_names(catalog, database, only), node.like)
        case ast.ShowKind.COLUMNS:
            assert node.place is not None
            return _describe_rows(_existing(context, node.place).value, node.like)
    raise NotSupportedYetError(f"SHOW {node.kind.value}", node.span)


def bind_show_current(context: BindContext, node: ast.ShowCurrent) -> Rows:
    """SHOW CURRENT CATALOG or DATABASE."""
    match node.kind:
        case ast.ShowCurrentKind.CATALOG:
            return _texts("current catalog name", [context.catalogs.current_catalog])
        case ast.ShowCurrentKind.DATABASE:
            return _texts("current database name", [context.catalogs.current_database])
        case _:
            assert_never(node.kind)


def bind_describe(context: BindContext, node: ast.Describe) -> Rows:
    """DESCRIBE of a table or view: a row a column."""
    if node.kind is not ast.DescribeKind.TABLE:
        raise NotSupportedYetError(f"DESCRIBE {node.kind.value}", node.span)
    return _describe_rows(_existing(context, node.name).value, None)


def bind_show_create(context: BindContext, node: ast.ShowCreate) -> Rows:
    """SHOW CREATE TABLE, VIEW or CATALOG: one text."""
    if node.kind is ast.ShowCreateKind.CATALOG:
        name = node.name.last.text
        context.catalogs.catalog(name, node.name.span)
        options = _with_clause(context.catalogs.catalog_options(name))
        return _texts("result", [f"CREATE CATALOG {t.quote_identifier(name)}\n{options}"])
    if node.kind not in (ast.ShowCreateKind.TABLE, ast.ShowCreateKind.VIEW):
        raise NotSupportedYetError(f"SHOW CREATE {node.kind.value}", node.span)
    found = _existing(context, node.name)
    is_table = isinstance(found.value, CatalogTable)
    if is_table and node.kind is ast.ShowCreateKind.VIEW:
        raise BindError(
            "not-a-view",
            f"SHOW CREATE VIEW is only supported for views, but {found.path} is a table. Please use SHOW CREATE TABLE "
            "instead.",
            node.name.span,
        )
    if not is_table and node.kind is ast.ShowCreateKind.TABLE:
        raise BindError(
            "not-a-table",
            f"SHOW CREATE TABLE is only supported for tables, but {found.path} is a view. Please use SHOW CREATE VIEW "
            "instead.",
            node.name.span,
        )
    text = _create_table(found, found.value) if isinstance(found.value, CatalogTable) else _create_view(found)
    return _texts("result", [text])


def _existing(context: BindContext, name: ast.Identifier) -> Resolved:
    path = context.catalogs.qualify(name.texts)
    found = context.catalogs.lookup(path)
    if found is None:
        raise BindError(
            "table-not-found",
            f"Tables or views with the identifier '{path}' doesn't exist.",
            name.span,
            did_you_mean(path.name, context.catalogs.object_names(path.catalog, path.database)),
        )
    return found


def _at(place: ast.Identifier | None) -> Span | None:
    return None if place is None else place.span


def _place(context: BindContext, place: ast.Identifier | None) -> tuple[str, str]:
    current = context.catalogs
    match () if place is None else place.texts:
        case ():
            return current.current_catalog, current.current_database
        case (database,):
            return current.current_catalog, database
        case (catalog, database):
            return catalog, database
    raise BindError("bad-identifier", f"'{place}' is no database", _at(place))


# Names and LIKE


def _texts(title: str, values: Iterable[str]) -> Rows:
    return Rows((t.Column(title, t.STRING),), tuple((value,) for value in values))


def _names(title: str, values: Iterable[str], like: ast.ShowLike | None) -> Rows:
    return _texts(title, [value for value in values if _like(value, like)])


def _like(value: str, like: ast.ShowLike | None) -> bool:
    """SQL LIKE with ``%``, ``_`` and backslash as escape; ILIKE ignores case."""
    if like is None:
        return True
    pattern = ""
    characters = iter(like.pattern)
    for character in characters:
        if character == "\\":
            pattern += re.escape(next(characters, "\\"))
        else:
            pattern += {"%": ".*", "_": "."}.get(character, re.escape(character))
    flags = re.DOTALL | (re.IGNORECASE if like.ignore_case else 0)
    return (re.fullmatch(pattern, value, flags) is not None) is not like.negated


# DESCRIBE


def _describe_rows(value: CatalogObject, like: ast.ShowLike | None) -> Rows:
    has_comments = any(column.comment is not None for column in value.columns)
    rows = [_describe_row(value, column) for column in value.columns if _like(column.name, like)]
    if not has_comments:
        return Rows(_DESCRIBE, tuple(rows))
    comments = [column.comment for column in value.columns if _like(column.name, like)]
    return Rows((*_DESCRIBE, _COMMENT), tuple((*row, comment) for row, comment in zip(rows, comments, strict=True)))


def _describe_row(value: CatalogObject, column: TableColumn) -> tuple[str | bool | None, ...]:
    type_ = resolved_type(value, column)
    key = watermark = None
    if isinstance(value, CatalogTable):
        if column.name in value.primary_key:
            key = f"PRI({', '.join(value.primary_key)})"
        if value.watermark is not None and value.watermark.rowtime == column.name:
            watermark = value.watermark.expression
    return (column.name, str(type_.as_nullable()), type_.nullable, key, _extras(column), watermark)


def _extras(column: TableColumn) -> str | None:
    match column.kind:
        case ColumnKind.PHYSICAL:
            return None
        case ColumnKind.COMPUTED:
            return f"AS {column.expression}"
        case ColumnKind.METADATA:
            return _metadata(column)
        case _:
            assert_never(column.kind)


def _metadata(column: TableColumn) -> str:
    source = "" if column.metadata_key is None else f" FROM {text_literal(column.metadata_key)}"
    return f"METADATA{source}{' VIRTUAL' * column.virtual}"


# SHOW CREATE


def _create_table(found: Resolved, table: CatalogTable) -> str:
    lines = [_column_line(column) for column in table.columns]
    if table.watermark is not None:
        rowtime = t.quote_identifier(table.watermark.rowtime)
        lines.append(f"WATERMARK FOR {rowtime} AS {table.watermark.expression}")
    if table.primary_key:
        name = "" if table.primary_key_name is None else f"CONSTRAINT {t.quote_identifier(table.primary_key_name)} "
        lines.append(f"{name}PRIMARY KEY ({_quoted_list(table.primary_key)}) NOT ENFORCED")
    text = f"CREATE {'TEMPORARY ' * found.temporary}TABLE {quoted(found.path)} (\n  " + ",\n  ".join(lines) + "\n)\n"
    if table.comment is not None:
        text += f"COMMENT {text_literal(table.comment)}\n"
    if table.distribution is not None:
        text += f"{table.distribution}\n"
    if table.partition_keys:
        text += f"PARTITIONED BY ({_quoted_list(table.partition_keys)})\n"
    return text + _with_clause(table.options)


def _create_view(found: Resolved) -> str:
    view = found.value
    assert isinstance(view, CatalogView)
    columns = ",\n  ".join(t.quote_identifier(column.name) for column in view.columns)
    comment = "" if view.comment is None else f"COMMENT {text_literal(view.comment)}\n"
    head = f"CREATE {'TEMPORARY ' * found.temporary}VIEW {quoted(found.path)}"
    return f"{head} (\n  {columns}\n)\n{comment}AS {view.expanded_query}\n"


def _column_line(column: TableColumn) -> str:
    name = t.quote_identifier(column.name)
    match column.kind:
        case ColumnKind.PHYSICAL:
            line = f"{name} {serializable(column.type)}"
        case ColumnKind.METADATA:
            line = f"{name} {serializable(column.type)} {_metadata(column)}"
        case ColumnKind.COMPUTED:
            line = f"{name} AS {column.expression}"
        case _:
            assert_never(column.kind)
    return line if column.comment is None else f"{line} COMMENT {text_literal(column.comment)}"


def _quoted_list(names: Iterable[str]) -> str:
    return ", ".join(t.quote_identifier(name) for name in names)


def _with_clause(options: Options) -> str:
    if not options:
        return ""
    lines = ",\n".join(f"  {text_literal(key)} = {text_literal(value)}" for key, value in sorted(options))
    return f"WITH (\n{lines}\n)\n"


def serializable(type_: t.LogicalType) -> str:
    """A type as DDL text without abbreviations (Flink's ``asSerializableString``)."""
    match type_:
        case t.VarCharType(length=length):
            text = f"VARCHAR({length})"
        case t.VarBinaryType(length=length):
            text = f"VARBINARY({length})"
        case t.TimestampType(precision=precision):
            text = f"TIMESTAMP({precision})"
        case t.TimestampLtzType(precision=precision):
            text = f"TIMESTAMP({precision}) WITH LOCAL TIME ZONE"
        case t.ArrayType(element=element):
            text = f"ARRAY<{serializable(element)}>"
        case t.MultisetType(element=element):
            text = f"MULTISET<{serializable(element)}>"
        case t.MapType(key=key, value=value):
            text = f"MAP<{serializable(key)}, {serializable(value)}>"
        case t.RowType(fields=fields):
            text = f"ROW<{', '.join(_field(field) for field in fields)}>"
        case _:
            text = type_.text()
    return text if type_.nullable else f"{text} NOT NULL"


def _field(field: t.Field) -> str:
    comment = "" if field.description is None else f" {text_literal(field.description)}"
    return f"{t.quote_identifier(field.name)} {serializable(field.type)}{comment}"
