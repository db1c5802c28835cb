"""A program's ``Schema`` at a bridge: the table that a stream becomes, and the columns that a stream gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.table.expression import Expression
from flowsql.table.literals import written_type
from flowsql.table.schema import Schema
from flowsql.table.syntax import ast, column, path, shown
from flowsql.table.table import Table
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.types.logical import Column, quote_identifier

_MARKER = "SOURCE_WATERMARK()"


@dataclass(frozen=True, slots=True)
class Declaration:
    """A table of a stream.

    ``text``: CREATE TEMPORARY TABLE without its WITH clause. ``source_watermark``: whether the stream's watermarks are
    taken over. ``names``: the columns that the program sees, None for all.
    """

    text: str
    source_watermark: bool
    names: tuple[str, ...] | None = None


def declared(table: str, schema: Schema, physical: Sequence[Column]) -> Declaration:
    """The table of a declared schema: all fields of the stream, with declared types where there are some, then the
    other declared columns. Expressions see fields that the schema does not name; the program does not.

    Args:
        table: its path as SQL text.
        schema: where it names no physical columns, all of the stream are part of it.
        physical: columns of the stream.

    Raises:
        BindError: a physical column is no field of the stream.
    """
    types = {own.name.texts[-1]: own.type for own in schema.columns if isinstance(own, ast.PhysicalColumn)}
    columns: list[ast.Column] = [
        ast.PhysicalColumn(path(field.name), types.get(field.name) or written_type(field.type)) for field in physical
    ]
    columns += [own for own in schema.columns if not isinstance(own, ast.PhysicalColumn)]
    known = [field.name for field in physical]
    for name in types:
        if name not in known:
            raise BindError(
                "field-not-found",
                f"Unable to find a field named '{name}' in the physical data type derived from the given type "
                "information for schema declaration. Make sure that the type information is not a generic raw type. "
                f"Currently available fields are: [{', '.join(known)}]",
            )
    taken_over = [_is_marker(mark) for mark in schema.watermarks]
    # The stream's own watermarks need no expression: any that the planner accepts will do.
    marks = [
        ast.Watermark(mark.column, column(mark.column.texts[-1])) if taken else mark
        for mark, taken in zip(schema.watermarks, taken_over, strict=True)
    ]
    elements = ", ".join(Schema(columns, marks, schema.key).elements())
    names = tuple(own.name.texts[-1] for own in schema.columns) if types else None
    if names == tuple(own.name.texts[-1] for own in columns):
        names = None
    return Declaration(f"CREATE TEMPORARY TABLE {table} ({elements})", any(taken_over), names)


def _is_marker(mark: ast.Watermark) -> bool:
    return shown(mark.expression).upper().replace("`", "").replace(" ", "") == _MARKER


def plain_names(fields: Sequence[Expression]) -> list[tuple[str, str]]:
    """Of each field the column that it names, and its new name.

    Raises:
        NotSupportedYetError: a field is not a name.
    """
    names = []
    for field in fields:
        node = field._node
        wanted = None
        if isinstance(node, ast.SelectItem):
            wanted, node = node.alias, node.expression
        if not isinstance(node, ast.ColumnRef):
            raise NotSupportedYetError(
                f"'{shown(field._node)}' as a field of from_data_stream", hint="declare it with a Schema"
            )
        own = node.path.texts[-1]
        names.append((own, own if wanted is None else wanted.text))
    return names


def converted(table: Table, target: Schema) -> Table:
    """The table with the columns and types that a schema declares for its stream.

    Raises:
        NotSupportedYetError: the schema declares more than physical columns.
    """
    if not target.columns:
        return table
    types = {field.name: str(field.type.as_nullable()) for field in table.get_resolved_schema().columns}
    items = []
    for wanted in target.columns:
        if not isinstance(wanted, ast.PhysicalColumn):
            raise NotSupportedYetError("metadata and computed columns in the schema of a changelog stream")
        name = wanted.name.texts[-1]
        if name not in types:
            raise BindError("column-not-found", f"Column '{name}' not found in the table: it has {', '.join(types)}.")
        quoted, text = quote_identifier(name), shown(wanted.type)
        items.append(quoted if text == types[name] else f"CAST({quoted} AS {text}) AS {quoted}")
    return table._environment.sql_query(f"SELECT {', '.join(items)} FROM {table}")
