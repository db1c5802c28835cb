"""A program's ``Schema`` at a bridge: the table that a stream becomes, and the columns that a stream gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.table.catalog import Column as TableColumn
from flowsql.table.expression import Expression
from flowsql.table.schema import Schema
from flowsql.table.syntax.build import api_nodes, ast, column, path, shown
from flowsql.table.syntax.literals import written_type
from flowsql.table.table import Table
from flowsql_connectors.datastream import ROWTIME, UTC_TIME
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.types.logical import Column, quote_identifier
from flowsql_planner.bind.data_types import bind_type
from flowsql_planner.bind.dml.insert import avoids_cast, sink_cast_allowed

_MARKER = "SOURCE_WATERMARK()"
_NOT_NULL = " NOT NULL"


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


@dataclass(frozen=True, slots=True)
class NamedField:
    """One argument of ``from_data_stream(stream, col("a"), col("t").rowtime)``.

    ``own``: the field of the stream; None of a time attribute. ``attribute``: ``rowtime``, ``proctime`` or None.
    """

    wanted: str
    own: str | None
    attribute: str | None = None


def named_fields(fields: Sequence[Expression], known: Sequence[str]) -> list[NamedField]:
    """What the columns of a table are called: by the names of the stream's fields where one of these occurs, else by
    their places. A time attribute takes the place of a field that bears its name, or stands at its place.

    Args:
        fields: as the program gave them.
        known: fields of the stream.

    Raises:
        BindError: there is no such field. NotSupportedYetError: something else than a name.
    """
    parsed = [_parsed(field) for field in fields]
    by_place = all(attribute is not None or (own == wanted and own not in known) for own, wanted, attribute in parsed)
    made = []
    for place, (own, wanted, attribute) in enumerate(parsed):
        if attribute is not None:
            made.append(NamedField(wanted, None, attribute))
            continue
        if by_place and place >= len(known):
            raise BindError("field-count", "Number of expressions does not match number of input fields.")
        if not by_place and own not in known:
            raise BindError("field-not-found", f"{own} is not a field of the stream: it has {', '.join(known)}.")
        made.append(NamedField(wanted, known[place] if by_place else own))
    return made


def _parsed(field: Expression) -> tuple[str, str, str | None]:
    """The name that a field stands for, the column's name, and which time attribute it is."""
    node = field._node
    alias = None
    if isinstance(node, ast.SelectItem):
        alias, node = node.alias, node.expression
    attribute = None
    if isinstance(node, ast.FieldAccess) and isinstance(node.field, api_nodes.WindowProperty):
        attribute, node = node.field.text, node.operand
    if not isinstance(node, ast.ColumnRef) or attribute not in (None, "rowtime", "proctime"):
        raise NotSupportedYetError(
            f"'{shown(field._node)}' as a field of from_data_stream", hint="declare it with a Schema"
        )
    own = node.path.texts[-1]
    return own, own if alias is None else alias.text, attribute


def schema_of_fields(fields: Sequence[NamedField]) -> Schema:
    """The time attributes of named fields, under names of their own, as a schema over all fields of the stream."""
    builder = Schema.new_builder()
    for field in fields:
        match field.attribute:
            case "rowtime":
                # Flink shows the timestamps by UTC's clock there, whatever the session's zone.
                builder.column_by_metadata(attribute_name(field), "TIMESTAMP(3)", UTC_TIME)
                builder.watermark(attribute_name(field), _MARKER)
            case "proctime":
                builder.column_by_expression(attribute_name(field), "PROCTIME()")
    return builder.build()


def attribute_name(field: NamedField) -> str:
    """What a time attribute is called before it gets its name, which may be that of a field."""
    return f"${field.attribute}${field.wanted}"


def check_metadata(schema: Schema) -> None:
    """BindError for metadata columns that a stream does not have, or has of another type."""
    for own in schema.columns:
        if not isinstance(own, ast.MetadataColumn):
            continue
        name, key = own.name.texts[-1], own.key or own.name.texts[-1]
        if key not in (ROWTIME, UTC_TIME):
            raise BindError(
                "unknown-metadata",
                f"Invalid metadata key '{key}' in column '{name}'. A DataStream supports the metadata key '{ROWTIME}'.",
            )
        if not isinstance(own.type, ast.BasicType) or not own.type.name.startswith("TIMESTAMP"):
            raise BindError(
                "metadata-type",
                f"Invalid data type for metadata column '{name}'. The column cannot be declared as "
                f"'{shown(own.type)}': timestamps of a DataStream are 'TIMESTAMP_LTZ(3)'.",
                hint="declare TIMESTAMP_LTZ(3) or TIMESTAMP(3), and cast it",
            )


@dataclass(frozen=True, slots=True)
class Produced:
    """What a schema makes of a table that becomes a stream.

    ``table``: with the declared columns. ``time``: the column whose value is the timestamp and no field of the rows;
    None for the row time attribute, which stays a field. ``required``: fields that must not be NULL.
    """

    table: Table
    time: str | None = None
    required: frozenset[str] = frozenset()


def produced(table: Table, target: Schema) -> Produced:
    """The table with the columns and types that a schema declares for its stream: by position, as in an INSERT.

    Raises:
        BindError: the schema has more or fewer columns than the table, or one of a type that needs a CAST.
        NotSupportedYetError: it has computed columns.
    """
    if not target.columns:
        return Produced(table)
    check_metadata(target)
    given = table.get_resolved_schema().columns
    if len(given) != len(target.columns):
        raise _mismatch("Different number of columns.", given, target)
    items, required, time = [], [], None
    for position, (own, wanted) in enumerate(zip(given, target.columns, strict=True)):
        name = wanted.name.texts[-1]
        quoted, type_text = quote_identifier(name), str(own.type.as_nullable())
        source = quote_identifier(own.name)
        match wanted:
            case ast.PhysicalColumn(type=type_):
                text = shown(type_)
                if text.endswith(_NOT_NULL):
                    text = text.removesuffix(_NOT_NULL)
                    required.append(name)
                had, taken = own.type.as_nullable(), bind_type(type_).as_nullable()
                if not (avoids_cast(had, taken) or sink_cast_allowed(had, taken)):
                    cause = f"Incompatible types for sink column '{name}' at position {position + 1}."
                    raise _mismatch(cause, given, target)
                items.append(f"{source if text == type_text else f'CAST({source} AS {text})'} AS {quoted}")
            case ast.MetadataColumn():
                items.append(f"{source} AS {quoted}")
                time = name
            case _:
                raise NotSupportedYetError("computed columns in the schema of a changelog stream")
    return Produced(table._environment.sql_query(f"SELECT {', '.join(items)} FROM {table}"), time, frozenset(required))


def _mismatch(cause: str, given: Sequence[TableColumn], target: Schema) -> BindError:
    """What is said of a schema that does not fit the table, in the words of an INSERT that does not fit its sink."""
    has = ", ".join(f"{own.name}: {own.type}" for own in given)
    wants = ", ".join(
        f"{wanted.name.texts[-1]}: {shown(wanted.type)}"
        for wanted in target.columns
        if isinstance(wanted, ast.PhysicalColumn | ast.MetadataColumn)
    )
    return BindError(
        "sink-schema-mismatch",
        "Column types of query result and sink for the stream do not match.\n"
        f"Cause: {cause}\n\nQuery schema: [{has}]\nSink schema:  [{wants}]",
        hint="columns are taken by position, whatever their names; select() puts them in order",
    )
