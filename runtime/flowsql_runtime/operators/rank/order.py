"""What operators sort rows by: columns of their input and, after those, bytes of the ROWs and ARRAYs among the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flowsql_core.batch import LateColumns
from flowsql_core.graph.rank_specs import OrderKeys
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema, is_proctime
from flowsql_runtime.state.stores import SortColumn


@record
class RowOrder:
    """An order of rows that state keeps sorted.

    ``columns`` count in the input's columns and in the forms behind them; ``formed``: the input's columns that are
    sorted by their forms, which state keeps beside the rows.
    """

    columns: tuple[SortColumn, ...]
    formed: tuple[int, ...]
    width: int

    def stored_types(self, input: Schema) -> list[Any]:
        """Return the Arrow types of the input's columns and of the forms."""
        return [*(to_arrow(column.type) for column in input), *(pa.binary() for _ in self.formed)]

    def with_forms(self, columns: Sequence[Any]) -> Sequence[Any]:
        """Return the columns of a batch with the forms behind them."""
        if not self.formed:
            return columns
        return LateColumns.beside(columns, tuple(sort_key(columns[index]) for index in self.formed))

    def without_forms(self, columns: Sequence[Any]) -> Sequence[Any]:
        """Return the input's columns of stored rows."""
        return columns[: self.width] if self.formed else columns

    def stored_names(self, columns: Sequence[str]) -> list[str]:
        """Return what stored columns mean, by what the input's columns mean."""
        return [*columns, *(f"order of {columns[index]}" for index in self.formed)]


def row_order(order: OrderKeys, input: Schema) -> RowOrder:
    """Return how rows of an input are sorted."""
    columns, formed = [], []
    for key in sort_columns(order, input):
        if is_formed(input[key.index].type):
            if key.index not in formed:
                formed.append(key.index)
            place = len(input) + formed.index(key.index)
            columns.append(SortColumn(place, key.ascending, key.nulls_first))
        else:
            columns.append(key)
    return RowOrder(tuple(columns), tuple(formed), len(input))


def sort_columns(order: OrderKeys, input: Schema) -> tuple[SortColumn, ...]:
    """What rows are sorted by. A processing time says nothing: rows come in its order, as in Flink."""
    return tuple(
        SortColumn(index, not descending, nulls_first)
        for index, descending, nulls_first in order
        if not is_proctime(input[index].type)
    )


def order_text(order: OrderKeys, columns: Sequence[str]) -> str:
    """An order in words, for what is compared of state."""
    return " ".join(
        f"{columns[index]} {'DESC' if descending else 'ASC'} {'NULLS FIRST' if nulls_first else 'NULLS LAST'}"
        for index, descending, nulls_first in order
    )


def is_formed(type_: t.LogicalType) -> bool:
    """True if columns of a type are sorted by their forms."""
    return isinstance(type_, t.RowType | t.ArrayType)


def sort_key(column: Any) -> Any:
    """Return what a column is sorted by: itself, or the form of ROWs and ARRAYs."""
    if not (pa.types.is_struct(column.type) or pa.types.is_list(column.type)):
        return column
    # Few jobs sort by nested columns.
    from flowsql_compute.eval.nested.sort_form import sort_form

    return sort_form(column)
