"""INSERT: query columns matched to the sink's columns by position, casts, NULLs for what is not listed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from flowsql_compute.functions.registry import resolve_cast
from flowsql_connectors import registry
from flowsql_core.catalog import CatalogTable, ObjectPath
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.expr import Cast, Expr, Literal
from flowsql_core.graph.specs import TableSpec
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import explicit_cast_allowed
from flowsql_grammar import ast
from flowsql_planner.bind import operations as op
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.ddl.expectations import expectations_of
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Scope
from flowsql_planner.bind.query.metadata import check_keys
from flowsql_planner.bind.query.query import bind_query
from flowsql_planner.bind.query.table import hinted_options
from flowsql_planner.catalog.manager import quoted
from flowsql_planner.catalog.schema import (
    Options,
    persisted_metadata,
    physical_columns,
    table_spec,
    written_columns,
)
from flowsql_planner.error_position import errors_at
from flowsql_planner.logical.nodes import Project, Rel, Sink, WrittenMetadata
from flowsql_planner.logical.rewrite import refs


def bind_insert(context: BindContext, node: ast.Insert) -> op.Insert:
    """INSERT INTO or OVERWRITE a table of the catalogs.

    Raises:
        BindError: no such table or column, or types that do not fit (Flink's words).
    """
    if node.upsert:
        raise BindError(
            "upsert-into",
            "UPSERT INTO statement is not supported. Please use INSERT INTO instead.",
            node.span,
            "a sink with a primary key upserts by itself",
        )
    path = context.qualify(node.target)
    if context.catalogs.lookup(path) is None:
        # As in Flink, what is wrong in the query is told first.
        bind_query(context, node.query)
    path, table = _find_sink(context, node.target)
    if node.columns:
        _listed(node, table, [column.name for column in written_columns(table)])
    rel = bind_query(context, node.query)
    if node.overwrite:
        _check_overwrite(path, table, node.target.span)
    constants = _static_partition(context, node, table)
    options = hinted_options(context, node.hints)
    if constants or node.columns:
        rel = _spread(rel, node, path, table, constants)
    listed = _places(node, table)
    partition = tuple((entry.name.text, _partition_text(context, entry)) for entry in _static_entries(node))
    sink = sink_of(context, rel, path, table, node.overwrite, partition, options, node.span)
    conflict = None if node.on_conflict is None else node.on_conflict.value
    return op.Insert(replace(sink, on_conflict=conflict, target_columns=listed), node.span)


def _check_overwrite(path: ObjectPath, table: CatalogTable, span: Span) -> None:
    with errors_at(span):
        possible = registry.supports_overwrite(table_spec(path, table))
    if not possible:
        raise BindError(
            "overwrite",
            f"INSERT OVERWRITE requires that the underlying DynamicTableSink of table '{path}' implements the "
            "SupportsOverwrite interface.",
            span,
            "INSERT INTO appends",
        )


def sink_of(
    context: BindContext,
    rel: Rel,
    path: ObjectPath,
    table: CatalogTable,
    overwrite: bool = False,
    static_partition: Options = (),
    options: Options = (),
    span: Span | None = None,
) -> Sink:
    """The sink node over a query whose columns stand in the sink's order: checked, and cast where types differ."""
    spec = table_spec(path, table, options)
    metadata = _writable_metadata(path, table, spec, span)
    if table.distribution is not None:
        raise BindError(
            "bucketed-sink",
            f"Table '{path}' is distributed into buckets, but the underlying DynamicTableSink doesn't implement the "
            "SupportsBucketing interface.",
            span,
            "ALTER TABLE ... DROP DISTRIBUTION",
        )
    target = written_columns(table)
    fitted = _fit(rel, target, path, span)
    if metadata:
        fitted = _metadata_last(fitted, table, metadata, span)
    return Sink(
        fitted,
        spec,
        str(path),
        overwrite,
        static_partition,
        options,
        span,
        expectations=expectations_of(context, path, table, options, span),
        metadata=metadata,
    )


def _writable_metadata(
    path: ObjectPath, table: CatalogTable, spec: TableSpec, span: Span | None
) -> tuple[WrittenMetadata, ...]:
    """The metadata columns that the connector writes, in the order of the DDL."""
    persisted = persisted_metadata(table)
    if not persisted:
        return ()
    with errors_at(span):
        writable = registry.writable_metadata(spec)
    if not writable:
        raise BindError(
            "metadata-sink",
            f"Table '{path}' declares persistable metadata columns, but the underlying DynamicTableSink doesn't "
            "implement the SupportsWritingMetadata interface. If the column should not be persisted, it can be "
            "declared with the VIRTUAL keyword.",
            span,
            f"'{persisted[0].name}' is such a column",
        )
    check_keys(persisted, span)
    found = []
    for column in persisted:
        key = column.metadata_key or column.name
        if key not in writable:
            raise BindError(
                "metadata-sink",
                f"Invalid metadata key '{key}' in column '{column.name}' of table '{path}'. The DynamicTableSink class "
                "supports the following metadata keys for writing:\n" + "\n".join(writable),
                span,
                f"declare '{column.name}' with VIRTUAL if it is only read",
            )
        if not explicit_cast_allowed(column.type.as_nullable(), writable[key].as_nullable()):
            raise BindError(
                "metadata-sink",
                f"Invalid data type for metadata column '{column.name}' of table '{path}'. The column cannot be "
                f"declared as '{column.type}' because the type must be castable to metadata type '{writable[key]}'.",
                span,
            )
        found.append(WrittenMetadata(key, column.name, writable[key]))
    return tuple(found)


def _metadata_last(rel: Rel, table: CatalogTable, metadata: Sequence[WrittenMetadata], span: Span | None) -> Rel:
    """The sink's row as connectors see it: physical columns, then metadata in the connector's types."""
    target = written_columns(table)
    values = dict(zip((column.name for column in target), refs(rel.schema), strict=True))
    physical = physical_columns(table)
    exprs: list[Expr] = [values[column.name] for column in physical]
    exprs += [_cast(values[written.column], written.type, span) for written in metadata]
    names = (*(column.name for column in physical), *(written.column for written in metadata))
    return Project(rel, tuple(exprs), names, span)


def _find_sink(context: BindContext, name: ast.Identifier) -> tuple[ObjectPath, CatalogTable]:
    path = context.qualify(name)
    found = context.catalogs.lookup(path)
    if found is None:
        raise no_sink(context, path, name.span)
    if not isinstance(found.value, CatalogTable):
        # Flink's sentence.
        raise BindError("insert-into-view", f"Sink '{path}' does not exists", name.span, "it is a view, not a table")
    return path, found.value


def no_sink(context: BindContext, path: ObjectPath, at: Span) -> BindError:
    """Flink's words for a table to write to that is not there."""
    return BindError(
        "table-not-found",
        f"Cannot find table '{quoted(path)}' in any of the catalogs "
        f"[{', '.join(context.catalogs.catalog_names())}], nor as a temporary table.",
        at,
        did_you_mean(path.name, context.catalogs.object_names(path.catalog, path.database)),
    )


def _fit(rel: Rel, target: t.Schema, path: ObjectPath, span: Span | None) -> Rel:
    """The query cast to the sink's types. NOT NULL is judged at run time, as in Flink.

    If one column needs a cast, all are cast to the sink's types, which are nullable, under its names (as in Flink).
    """
    schema = rel.schema
    if len(schema) != len(target):
        raise _mismatch("Different number of columns.", schema, target, path, span)
    fits = True
    for position, (have, wanted) in enumerate(zip(schema, target, strict=True)):
        given, taken = t.without_attribute(have.type).as_nullable(), wanted.type.as_nullable()
        if avoids_cast(given, taken):
            continue
        if not sink_cast_allowed(given, taken):
            cause = f"Incompatible types for sink column '{wanted.name}' at position {position + 1}."
            raise _mismatch(cause, schema, target, path, span)
        fits = False
    if fits:
        return rel
    source, values = _select(rel)
    exprs = tuple(_cast(value, column.type, span) for value, column in zip(values, target, strict=True))
    return Project(source, exprs, tuple(column.name for column in target), span)


def _select(rel: Rel) -> tuple[Rel, Sequence[Expr]]:
    """A query as expressions over something: those of its own SELECT, if that stands on top."""
    return (rel.input, rel.exprs) if isinstance(rel, Project) else (rel, refs(rel.schema))


def _cast(ref: Expr, wanted: t.LogicalType, span: Span | None) -> Expr:
    """A column as the nullable type of a sink."""
    taken = wanted.as_nullable()
    if ref.type == taken:
        return ref
    if ref.type.as_nullable() == taken:
        return Cast(ref, taken, False, True, span)
    made = resolve_cast(ref, taken, False, span)
    return Cast(made.operand, taken, made.safe, True, made.span) if isinstance(made, Cast) else made


def _implicit(ref: Expr, wanted: t.LogicalType, span: Span | None) -> Expr:
    made = resolve_cast(ref, wanted.as_nullable(ref.type.nullable), False, span)
    return Cast(made.operand, made.type, made.safe, True, made.span) if isinstance(made, Cast) else made


def avoids_cast(have: t.LogicalType, wanted: t.LogicalType) -> bool:
    """Whether values of one type are values of the other as they are (Flink's ``supportsAvoidingCast``)."""
    match have, wanted:
        case (t.CharType(length=n) | t.VarCharType(length=n), t.VarCharType(length=m)) | (
            t.BinaryType(length=n) | t.VarBinaryType(length=n),
            t.VarBinaryType(length=m),
        ):
            return n <= m
    return _every_part(have, wanted, avoids_cast)


def sink_cast_allowed(have: t.LogicalType, wanted: t.LogicalType) -> bool:
    """Whether INSERT casts by itself (Flink's ``supportsImplicitCast``): whole numbers only to wider ones."""
    match have, wanted:
        case (t.IntegerType(), t.IntegerType()):
            return have.bits <= wanted.bits
        case (t.IntegerType() | t.DecimalType(), t.DecimalType() | t.ApproximateType()):
            return True
        case (t.FloatType(), t.DecimalType() | t.ApproximateType()) | (
            t.DoubleType(),
            t.DecimalType() | t.DoubleType(),
        ):
            return True
        case (t.CharacterType(), t.VarCharType()) | (t.BinaryStringType(), t.VarBinaryType()):
            return True
        case (t.CharType(), t.CharType()) | (t.BinaryType(), t.BinaryType()):
            return True
        case (t.TimestampType(), t.DateType() | t.TimeType() | t.TimestampType() | t.TimestampLtzType()):
            return True
        case (t.TimestampLtzType(), t.TimestampType() | t.TimestampLtzType()) | (t.TimeType(), t.TimeType()):
            return True
        case (t.YearMonthIntervalType(), t.YearMonthIntervalType()):
            return True
        case (t.DayTimeIntervalType(), t.DayTimeIntervalType()) | (t.NullType(), _):
            return True
    return _every_part(have, wanted, _nested_cast_allowed)


def _every_part(
    have: t.LogicalType, wanted: t.LogicalType, fits: Callable[[t.LogicalType, t.LogicalType], bool]
) -> bool:
    """Whether all parts of two nested types of one kind fit; types of no parts must be the same."""
    match have, wanted:
        case (t.ArrayType(element=a), t.ArrayType(element=b)) | (t.MultisetType(element=a), t.MultisetType(element=b)):
            return fits(a, b)
        case t.MapType(key=key, value=value), t.MapType(key=wanted_key, value=wanted_value):
            return fits(key, wanted_key) and fits(value, wanted_value)
        case t.RowType(fields=fields), t.RowType(fields=wanted_fields):
            return len(fields) == len(wanted_fields) and all(
                fits(a.type, b.type) for a, b in zip(fields, wanted_fields, strict=True)
            )
    return t.without_attribute(have).same(t.without_attribute(wanted))


def _nested_cast_allowed(have: t.LogicalType, wanted: t.LogicalType) -> bool:
    have, wanted = have.as_nullable(), wanted.as_nullable()
    return avoids_cast(have, wanted) or sink_cast_allowed(have, wanted)


def _mismatch(cause: str, schema: t.Schema, target: t.Schema, path: ObjectPath, span: Span | None) -> BindError:
    nullable = tuple(t.Column(column.name, column.type.as_nullable()) for column in target)
    return BindError(
        "sink-schema-mismatch",
        f"Column types of query result and sink for '{path}' do not match.\nCause: {cause}\n\n"
        f"Query schema: {_shown(schema)}\nSink schema:  {_shown(nullable)}",
        span,
    )


def _shown(schema: t.Schema) -> str:
    return "[" + ", ".join(f"{column.name}: {column.type}" for column in schema) + "]"


# Column lists and static partitions


def _static_entries(node: ast.Insert) -> list[ast.PartitionEntry]:
    return [] if node.partition is None else [entry for entry in node.partition.entries if entry.value is not None]


def _static_partition(context: BindContext, node: ast.Insert, table: CatalogTable) -> dict[str, Expr]:
    """Constant columns of ``PARTITION (dt = '2020-01-01')`` by name."""
    if node.partition is None:
        return {}
    seen: set[str] = set()
    physical = [column.name for column in physical_columns(table)]
    for entry in node.partition.entries:
        name = entry.name.text
        if name not in physical:
            raise BindError(
                "column-not-found",
                f"Unknown target column '{name}'",
                entry.name.span,
                did_you_mean(name, table.partition_keys),
            )
        if name not in table.partition_keys:
            raise BindError(
                "unknown-partition-column",
                f"Static partition column '{name}' should be in the partition keys list "
                f"[{', '.join(table.partition_keys)}] for table '{context.qualify(node.target)}'.",
                entry.name.span,
            )
        if name in seen:
            raise BindError("duplicate-column", f"Target column '{name}' is assigned more than once", entry.name.span)
        seen.add(name)
    binder = ExpressionBinder(context, Scope(), "PARTITION")
    return {entry.name.text: binder.bind(entry.value) for entry in _static_entries(node) if entry.value is not None}


def _partition_text(context: BindContext, entry: ast.PartitionEntry) -> str:
    assert entry.value is not None
    if isinstance(entry.value, ast.NullLiteral):
        raise BindError("static-partition", "not a literal: NULL", entry.span, "a static partition has a value")
    bound = ExpressionBinder(context, Scope(), "PARTITION").bind(entry.value)
    if not isinstance(bound, Literal):
        raise BindError("static-partition", "A static partition needs a constant", entry.span)
    return str(bound.value)


def _spread(rel: Rel, node: ast.Insert, path: ObjectPath, table: CatalogTable, constants: dict[str, Expr]) -> Rel:
    """The query's columns at their places in the sink's row; constants of the partition and NULLs around them."""
    target = written_columns(table)
    names = [column.name for column in target]
    listed = _listed(node, table, names) if node.columns else [name for name in names if name not in constants]
    if len(listed) != len(rel.schema) and not node.columns:
        raise _mismatch("Different number of columns.", rel.schema, target, path, node.query.span)
    if len(listed) != len(rel.schema) or not constants.keys().isdisjoint(listed):
        raise BindError(
            "insert-arity",
            "Number of columns must match number of query columns",
            node.query.span,
            f"{len(listed)} columns are listed, the query has {len(rel.schema)}",
        )
    # What is left out becomes a part of the query's own SELECT.
    source, values = _select(rel)
    refs = dict(zip(listed, values, strict=True))
    given = dict(zip(listed, (column.name for column in rel.schema), strict=True))
    shown = tuple(_shown_name(given.get(name), position) for position, name in enumerate(names))
    exprs = tuple(_sink_value(column, refs, constants, node.span) for column in target)
    return Project(source, exprs, shown, node.span)


def _shown_name(name: str | None, position: int) -> str:
    """The name of a column in the plan: an expression's is that of its place."""
    return f"EXPR${position}" if name is None or re.fullmatch(r"EXPR\$\d+", name) else name


def _places(node: ast.Insert, table: CatalogTable) -> tuple[int, ...]:
    """Indexes of the listed columns among all of the table's."""
    names = [column.name for column in table.columns]
    return tuple(names.index(column.parts[0].text) for column in node.columns)


def _sink_value(column: t.Column, refs: dict[str, Expr], constants: dict[str, Expr], span: Span) -> Expr:
    if column.name in refs:
        return refs[column.name]
    if column.name in constants:
        constant = constants[column.name]
        if not avoids_cast(constant.type, column.type):
            return _implicit(constant, column.type, span)
        return replace(constant, type=column.type.as_nullable(False)) if isinstance(constant, Literal) else constant
    if not column.type.nullable:
        raise BindError(
            "missing-not-null-column",
            f"Column '{column.name}' has no default value and does not allow NULLs",
            span,
            f"list '{column.name}' too",
        )
    return Literal(None, column.type, span)


def _listed(node: ast.Insert, table: CatalogTable, names: Sequence[str]) -> list[str]:
    listed: list[str] = []
    for column in node.columns:
        name = ".".join(column.texts)
        found = table.column(name) if len(column.parts) == 1 else None
        if found is None or name not in names:
            raise BindError(
                "column-not-found", f"Unknown target column '{name}'", column.span, did_you_mean(name, names)
            )
        if name in listed:
            raise BindError("duplicate-column", f"Target column '{name}' is assigned more than once", column.span)
        listed.append(name)
    return listed
