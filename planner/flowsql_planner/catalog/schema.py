"""What a catalog table looks like to queries and to connectors: schemas, time attributes, ``TableSpec``."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.catalog import CatalogTable, CatalogView, ColumnKind, ObjectPath, TableColumn
from flowsql_core.graph.expectation import EXPECTATIONS
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types.logical import Column, LogicalType, Schema, TimeAttribute, TimestampLtzType, TimestampType

Options = tuple[tuple[str, str], ...]


def as_rowtime(type_: LogicalType) -> LogicalType:
    """A timestamp type as an event-time attribute; other types as they are."""
    if isinstance(type_, TimestampType | TimestampLtzType):
        return replace(type_, attribute=TimeAttribute.ROWTIME)
    return type_


def resolved_type(table: CatalogTable | CatalogView, column: TableColumn) -> LogicalType:
    """A column's type as queries and DESCRIBE see it: the rowtime column carries its mark."""
    watermark = table.watermark if isinstance(table, CatalogTable) else None
    if watermark is not None and watermark.rowtime == column.name:
        return as_rowtime(column.type)
    return column.type


def resolved_schema(table: CatalogTable | CatalogView) -> Schema:
    """All columns in the order of the DDL."""
    return tuple(Column(column.name, resolved_type(table, column)) for column in table.columns)


def physical_columns(table: CatalogTable) -> Schema:
    """Columns that the connector stores."""
    return tuple(Column(c.name, c.type) for c in table.columns if c.kind is ColumnKind.PHYSICAL)


def persisted_metadata(table: CatalogTable) -> tuple[TableColumn, ...]:
    """Metadata columns that an INSERT writes."""
    return tuple(column for column in metadata_columns(table) if not column.virtual)


def written_columns(table: CatalogTable) -> Schema:
    """Columns that an INSERT writes, in the order of the DDL."""
    persisted = persisted_metadata(table)
    return tuple(Column(c.name, c.type) for c in table.columns if c.kind is ColumnKind.PHYSICAL or c in persisted)


def metadata_columns(table: CatalogTable) -> tuple[TableColumn, ...]:
    """Columns that the connector adds."""
    return tuple(column for column in table.columns if column.kind is ColumnKind.METADATA)


def table_spec(path: ObjectPath, table: CatalogTable, extra_options: Options = ()) -> TableSpec:
    """The table as connectors see it; ``extra_options`` (of an OPTIONS hint) win over the table's own.

    What the table expects of its rows is no option of connectors.
    """
    options = {**dict(table.options), **dict(extra_options)}
    options.pop(EXPECTATIONS, None)
    return TableSpec(
        path.parts, physical_columns(table), tuple(options.items()), table.partition_keys, table.primary_key
    )
