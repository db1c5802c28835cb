"""SHOW CREATE: catalog objects as the statements that make them, in Flink's form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from flowsql_core.catalog import CatalogTable, CatalogView, ColumnKind, TableColumn
from flowsql_core.errors import BindError, NotSupportedYetError, did_you_mean
from flowsql_core.graph.expectation import EXPECTATIONS
from flowsql_core.secrets.shown import shown_value, with_shown_options
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.ddl.expectations import expectation_text, expectations_in
from flowsql_planner.bind.named_table import alias_of, file_table
from flowsql_planner.bind.operations import Rows
from flowsql_planner.bind.sql_text.unparse import text_literal
from flowsql_planner.catalog.manager import Resolved, quoted
from flowsql_planner.catalog.schema import Options


def bind_show_create(context: BindContext, node: ast.ShowCreate) -> Rows:
    """SHOW CREATE TABLE, VIEW or CATALOG: one text."""
    match node.kind:
        case ast.ShowCreateKind.CATALOG:
            return _text(_create_catalog(context, node.name))
        case ast.ShowCreateKind.TABLE | ast.ShowCreateKind.VIEW:
            return _text(_create_object(context, node))
        case ast.ShowCreateKind.MODEL | ast.ShowCreateKind.MATERIALIZED_TABLE:
            raise _never_there(context, node)
    raise NotSupportedYetError(f"SHOW CREATE {node.kind.value}", node.span)


def _never_there(context: BindContext, node: ast.ShowCreate) -> BindError:
    """Models and materialized tables cannot be created, so there is none of any name."""
    path = context.qualify(node.name)
    kind = node.kind.value
    named = f" {path}" if node.kind is ast.ShowCreateKind.MATERIALIZED_TABLE else ""
    return BindError(
        "object-not-found",
        f"Could not execute SHOW CREATE {kind}{named}. {kind.capitalize()} with identifier {quoted(path)} does not "
        "exist.",
        node.name.span,
    )


def _text(text: str) -> Rows:
    # The query of a view may hold options of its own.
    return Rows((t.Column("result", t.STRING),), ((with_shown_options(text),),))


def _create_catalog(context: BindContext, name: ast.Identifier) -> str:
    descriptor = context.catalogs.descriptor(name.last.text, name.span)
    comment = "" if descriptor.comment is None else f"COMMENT {text_literal(descriptor.comment)}\n"
    return f"CREATE CATALOG {t.quote_identifier(name.last.text)}\n{comment}{_with_clause(descriptor.options)}"


def _create_object(context: BindContext, node: ast.ShowCreate) -> str:
    kind, wanted = node.kind.value, CatalogTable if node.kind is ast.ShowCreateKind.TABLE else CatalogView
    if isinstance(node.name, ast.FileName):
        files = file_table(context, node.name)
        assert isinstance(files.value, CatalogTable)
        return _create_table(files, files.value, t.quote_identifier(alias_of(node.name) or "files"))
    path = context.qualify(node.name)
    found = context.catalogs.lookup(path)
    if found is None:
        raise BindError(
            "table-not-found",
            f"Could not execute SHOW CREATE {kind}. {kind.capitalize()} with identifier {quoted(path)} does not exist.",
            node.name.span,
            did_you_mean(path.name, context.catalogs.object_names(path.catalog, path.database)),
        )
    if not isinstance(found.value, wanted):
        other = "view" if wanted is CatalogTable else "table"
        raise BindError(
            f"not-a-{kind.lower()}",
            f"SHOW CREATE {kind} is only supported for {kind.lower()}s, but {quoted(path)} is a {other}. Please use "
            f"SHOW CREATE {other.upper()} instead.",
            node.name.span,
        )
    return _create_table(found, found.value) if isinstance(found.value, CatalogTable) else _create_view(found)


def _create_table(found: Resolved, table: CatalogTable, called: str | None = None) -> str:
    lines = [_column_line(column) for column in table.columns]
    if table.watermark is not None:
        rowtime = t.quote_identifier(table.watermark.rowtime)
        lines.append(f"WATERMARK FOR {rowtime} AS {table.watermark.expression}")
    if table.primary_key:
        name = "" if table.primary_key_name is None else f"CONSTRAINT {t.quote_identifier(table.primary_key_name)} "
        lines.append(f"{name}PRIMARY KEY ({_quoted_list(table.primary_key)}) NOT ENFORCED")
    lines += [expectation_text(each) for each in expectations_in(table)]
    columns = ",\n".join(f"  {line}" for line in lines)
    head = f"{'TEMPORARY ' * found.temporary}TABLE {quoted(found.path)}" if called is None else f"TABLE {called}"
    text = f"CREATE {head} (\n{columns}\n)\n"
    if table.comment is not None:
        text += f"COMMENT {text_literal(table.comment)}\n"
    if table.distribution is not None:
        text += f"{table.distribution}\n"
    if table.partition_keys:
        text += f"PARTITIONED BY ({_quoted_list(table.partition_keys)})\n"
    return text + _with_clause(tuple(option for option in table.options if option[0] != EXPECTATIONS))


def _create_view(found: Resolved) -> str:
    view = found.value
    assert isinstance(view, CatalogView)
    columns = ",\n  ".join(t.quote_identifier(column.name) for column in view.columns)
    comment = "" if view.comment is None else f"COMMENT {text_literal(view.comment)}\n"
    head = f"CREATE {'TEMPORARY ' * found.temporary}VIEW {quoted(found.path)}"
    return f"{head} (\n  {columns}\n)\n{comment}AS {view.expanded_query}\n"


def metadata_text(column: TableColumn) -> str:
    """``METADATA FROM 'key' VIRTUAL``, as DESCRIBE and SHOW CREATE print it."""
    source = "" if column.metadata_key is None else f" FROM {text_literal(column.metadata_key)}"
    return f"METADATA{source}{' VIRTUAL' * column.virtual}"


def _column_line(column: TableColumn) -> str:
    name = t.quote_identifier(column.name)
    match column.kind:
        case ColumnKind.PHYSICAL:
            line = f"{name} {serializable(column.type)}"
        case ColumnKind.METADATA:
            line = f"{name} {serializable(column.type)} {metadata_text(column)}"
        case ColumnKind.COMPUTED:
            line = f"{name} AS {column.expression}"
        case _:
            assert_never(column.kind)
    # Flink leaves an empty comment out.
    return f"{line} COMMENT {text_literal(column.comment)}" if column.comment else line


def _quoted_list(names: Iterable[str]) -> str:
    return ", ".join(t.quote_identifier(name) for name in names)


def _with_clause(options: Options) -> str:
    if not options:
        return ""
    lines = ",\n".join(
        f"  {text_literal(key)} = {text_literal(shown_value(key, value))}" for key, value in sorted(options)
    )
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
        case t.StructuredType(class_name=class_name, fields=fields):
            text = f"STRUCTURED<{', '.join([text_literal(class_name), *map(_field, fields)])}>"
        case t.RowType(fields=fields):
            text = f"ROW<{', '.join(_field(field) for field in fields)}>"
        case _:
            text = type_.text()
    return text if type_.nullable else f"{text} NOT NULL"


def _field(field: t.Field) -> str:
    comment = "" if field.description is None else f" {text_literal(field.description)}"
    return f"{t.quote_identifier(field.name)} {serializable(field.type)}{comment}"
