"""Which types have an order that operators sort by."""

from __future__ import annotations

from flowsql_core.types import logical as t


def sortable(type_: t.LogicalType) -> bool:
    """Whether values can be brought into an order: rows by their fields, no collections."""
    if isinstance(type_, t.RowType):
        return all(sortable(field.type) for field in type_.fields)
    return not (t.is_nested(type_) or isinstance(type_, t.BitmapType | t.VariantType | t.RawType))
