"""Orders of rows, as operators are given them."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.errors import PlanError
from flowsql_core.graph.rank_specs import OrderKeys
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import SortKey


def order_keys(keys: Sequence[SortKey], input: t.Schema, span: Span | None) -> OrderKeys:
    """Return the columns that rows of an input are sorted by.

    Raises:
        PlanError: values of a column have no order.
    """
    refuse_without_order(keys, input, span)
    return tuple((key.index, key.descending, key.nulls_first) for key in keys)


def refuse_without_order(keys: Sequence[SortKey], input: t.Schema, span: Span | None) -> None:
    """Refuse to sort by what has no order: MAP, MULTISET, VARIANT, BITMAP, and what holds such values.

    Raises:
        PlanError: with the column and the type.

    Source: Flink, ``GenerateUtils.generateCompare``.
    """
    for key in keys:
        found = _without_order(input[key.index].type)
        if found is not None:
            raise PlanError(
                "not-orderable",
                f"Rows cannot be sorted by column '{input[key.index].name}': {found.as_nullable()} is not an orderable "
                "data type.",
                span,
                "sort by a part of it, or by its text: CAST(... AS STRING)",
            )


def _without_order(type_: t.LogicalType) -> t.LogicalType | None:
    match type_:
        case t.MapType() | t.MultisetType() | t.VariantType() | t.BitmapType() | t.RawType():
            return type_
        case t.ArrayType():
            return _without_order(type_.element)
        case t.RowType():
            return next(filter(None, (_without_order(field.type) for field in type_.fields)), None)
    return None
