"""Metadata columns of tables that are read: what the connector tells, cast to the types that the table declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowsql_compute.functions.registry import resolve_cast
from flowsql_connectors import registry
from flowsql_core.catalog import ObjectPath, TableColumn
from flowsql_core.errors import BindError
from flowsql_core.expr import Expr, InputRef
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.span import Span
from flowsql_core.types.coerce import explicit_cast_allowed
from flowsql_core.types.logical import Column, LogicalType, Schema
from flowsql_planner.bind.context import BindContext
from flowsql_planner.error_position import errors_at
from flowsql_planner.logical.nodes import Project, Rel


def check_keys(metadata: Sequence[TableColumn], span: Span | None) -> None:
    """Refuse two columns of the same metadata, as Flink does.

    Raises:
        BindError: there are two.
    """
    known: dict[str, str] = {}
    for column in metadata:
        key = column.metadata_key or column.name
        if key in known:
            raise BindError(
                "metadata-twice",
                f"The column `{known[key]}` and `{column.name}` in the table are both from the same metadata key "
                f"'{key}'. Please specify one of the columns as the metadata column and use the computed column syntax "
                "to specify the others.",
                span,
            )
        known[key] = column.name


def told_columns(
    context: BindContext, path: ObjectPath, spec: TableSpec, metadata: Sequence[TableColumn], span: Span | None
) -> Schema:
    """The metadata columns of a scan, in the types of the connector where those are not the declared ones.

    A key that the connector does not know keeps its declared type: the scan refuses it, with the keys that there are.

    Raises:
        BindError: a type cannot be cast, or two columns are of one key.
    """
    if not metadata:
        return ()
    check_keys(metadata, span)
    with errors_at(span):
        told = registry.create_source(
            ScanSpec(spec, tuple(range(len(spec.columns))), spec.columns), dict(context.config.items())
        ).metadata_columns()
    return tuple(Column(column.name, _told_type(path, column, told, span)) for column in metadata)


def _told_type(
    path: ObjectPath, column: TableColumn, told: Mapping[str, LogicalType], span: Span | None
) -> LogicalType:
    key = column.metadata_key or column.name
    given = told.get(key)
    declared = column.type.as_nullable()
    if given is None or given.as_nullable() == declared:
        return column.type
    if not explicit_cast_allowed(given, declared):
        raise BindError(
            "metadata-type",
            f"Invalid data type for metadata column '{column.name}' with metadata key '{key}' of table '{path}'. The "
            f"column cannot be declared as '{column.type}' because the type must be castable from metadata type "
            f"'{given}'.",
            span,
        )
    return given.as_nullable(column.type.nullable)


def cast_metadata(rel: Rel, wanted: Schema, span: Span | None) -> Rel:
    """The scan with all columns in their declared types."""
    if rel.schema == wanted:
        return rel
    exprs: list[Expr] = []
    for place, (have, column) in enumerate(zip(rel.schema, wanted, strict=True)):
        ref = InputRef(place, have.type, span)
        exprs.append(ref if have.type == column.type else resolve_cast(ref, column.type, False, span))
    return Project(rel, tuple(exprs), tuple(column.name for column in wanted), span)
