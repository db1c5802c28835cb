"""Tables of Iceberg as catalogs show them."""

from __future__ import annotations

from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform

from flowsql_connectors.lakes.iceberg.options import is_property
from flowsql_connectors.lakes.iceberg.types import to_columns
from flowsql_core.catalog import CatalogTable, TableColumn

#: The property that holds the comment of a table or namespace.
COMMENT = "comment"


def partition_keys(table: Table) -> tuple[str, ...]:
    """The columns whose values are partitions as they are, where there are no others, as Flink shows them."""
    spec, schema = table.spec(), table.schema()
    if not all(isinstance(field.transform, IdentityTransform) for field in spec.fields):
        return ()
    return tuple(schema.find_field(field.source_id).name for field in spec.fields)


def described(table: Table, shown: str, connection: tuple[tuple[str, str], ...]) -> CatalogTable:
    """A table as the catalog keeps it.

    Args:
        shown: its name, for messages.
        connection: options by which its connector finds it.
    """
    schema = table.schema()
    columns = tuple(
        TableColumn(column.name, column.type, comment=field.doc)
        for column, field in zip(to_columns(schema, shown), schema.fields, strict=True)
    )
    properties = tuple(sorted((key, value) for key, value in table.properties.items() if is_property(key)))
    key = sorted(schema.identifier_field_ids)
    names = [schema.find_column_name(field_id) for field_id in key]
    return CatalogTable(
        columns,
        (*connection, *properties),
        primary_key=tuple(name for name in names if name is not None),
        partition_keys=partition_keys(table),
        comment=table.properties.get(COMMENT),
    )
