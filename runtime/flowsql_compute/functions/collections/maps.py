"""Functions over maps: keys, values, entries, building from arrays, union. Of equal keys the last one counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.nested.lists import (
    Ranges,
    both_valid,
    column_of,
    concatenated,
    first_places,
    keep,
    list_of_entries,
    make_list,
    make_map,
    packed,
    united,
)
from flowsql_compute.functions.registry import Invocation, check_no_null, implicit_cast, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.expr import Expr
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.coerce import common_type


def _keys_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    holder = args[0].type
    return t.ArrayType(element=holder.key) if isinstance(holder, t.MapType) else None


def _values_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    holder = args[0].type
    return t.ArrayType(element=holder.value) if isinstance(holder, t.MapType) else None


def _entries_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    holder = args[0].type
    if not isinstance(holder, t.MapType):
        return None
    return t.ArrayType(element=t.RowType(fields=(t.Field("key", holder.key), t.Field("value", holder.value))))


def _arrays_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    keys, values = args[0].type, args[1].type
    if not (isinstance(keys, t.ArrayType) and isinstance(values, t.ArrayType)):
        return None
    return t.MapType(key=keys.element, value=values.element)


def _common_map(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    made = common_type([arg.type for arg in args])
    return made if isinstance(made, t.MapType) else None


def _check_common(args: Sequence[Expr], span: Span | None) -> None:
    check_no_null(args, span)
    if not isinstance(common_type([arg.type for arg in args]), t.MapType):
        shown = ", ".join(str(arg.type) for arg in args)
        raise BindError("argument-types", f"Could not find a common type for arguments: [{shown}]", span)


def _to_result(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    return tuple(implicit_cast(arg, type_) for arg in args)


def _parts(array: pa.Array) -> tuple[Ranges, pa.Array, pa.Array]:
    """Packed rows of a map column, its keys and its values."""
    rows, entries = packed(_as_entries(array))
    return rows, entries.field(0), entries.field(1)


def _as_entries(array: pa.Array) -> pa.Array:
    """The list of key-value structs behind a map column (the same buffers)."""
    type_ = array.type
    entry = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    # ``keys`` and ``items`` are whole children, so that the column's own offsets hold.
    return pa.Array.from_buffers(
        pa.list_(pa.struct([pa.field("key", type_.key_type), pa.field("value", type_.item_type)])),
        len(array), array.buffers()[:2], array.null_count, array.offset, [entry],
    )  # fmt: skip


@scalar("MAP_KEYS(MAP) -> BOOLEAN", returns=_keys_type, spark="MAP_KEYS({0})")
def map_keys(call: Invocation, holder: Any) -> Any:
    """The keys of a map as an array, in the order of its entries."""
    rows, keys, _ = _parts(column_of(holder, call.n))
    return make_list(keys, rows.sizes, rows.valid, to_arrow(call.type))


@scalar("MAP_VALUES(MAP) -> BOOLEAN", returns=_values_type, spark="MAP_VALUES({0})")
def map_values(call: Invocation, holder: Any) -> Any:
    """The values of a map as an array, in the order of its entries."""
    rows, _, values = _parts(column_of(holder, call.n))
    return make_list(values, rows.sizes, rows.valid, to_arrow(call.type))


@scalar("MAP_ENTRIES(MAP) -> BOOLEAN", returns=_entries_type, spark="MAP_ENTRIES({0})")
def map_entries(call: Invocation, holder: Any) -> Any:
    """The entries of a map as an array of rows (key, value)."""
    rows, keys, values = _parts(column_of(holder, call.n))
    type_ = to_arrow(call.type)
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(type_.value_type))
    return make_list(pairs, rows.sizes, rows.valid, type_)


@scalar(
    "MAP_FROM_ARRAYS(ARRAY, ARRAY) -> BOOLEAN", returns=_arrays_type, raises=True, spark="MAP_FROM_ARRAYS({0}, {1})"
)
def map_from_arrays(call: Invocation, keys: Any, values: Any) -> Any:
    """A map of keys and values that stand at equal places of two arrays. Fails when one array is longer."""
    (rows, flat_keys), (others, flat_values) = packed(column_of(keys, call.n)), packed(column_of(values, call.n))
    valid = both_valid(rows.valid, others.valid)
    sizes = rows.sizes
    other_sizes = others.sizes
    if valid is not None:
        sizes, other_sizes = np.where(valid, sizes, 0), np.where(valid, other_sizes, 0)
    wrong = np.flatnonzero(sizes != other_sizes)
    if len(wrong):
        row = int(wrong[0])
        raise ExecutionError(
            "map-from-arrays",
            f"Invalid function MAP_FROM_ARRAYS call: The length of the keys array {int(sizes[row])} is not equal to "
            f"the length of the values array {int(other_sizes[row])}",
        )
    if valid is not None and len(flat_values) and not flat_keys.null_count:
        # Keys of rows that are NULL by their values stay where they are, beside any values.
        places = Ranges(np.where(valid, others.starts, 0), rows.sizes, None).positions()
        flat_values = pc.take(flat_values, pa.array(np.minimum(places, len(flat_values) - 1)), boundscheck=False)
        sizes = rows.sizes
    elif valid is not None:
        flat_keys = pc.take(flat_keys, pa.array(Ranges(rows.starts, sizes, valid).positions()), boundscheck=False)
        flat_values = pc.take(flat_values, pa.array(Ranges(others.starts, sizes, valid).positions()), boundscheck=False)
    return make_map(flat_keys, flat_values, Ranges(np.cumsum(sizes) - sizes, sizes, valid), to_arrow(call.type))


@scalar("MAP_UNION(ANY...) -> BOOLEAN", check=_check_common, returns=_common_map, coerce=_to_result, spark=None)
def map_union(call: Invocation, *holders: Any) -> Any:
    """The entries of all maps, those of the last map first; of equal keys the last one counts; NULL if one is NULL."""
    columns = [column_of(holder, call.n) for holder in reversed(holders)]
    parts = [_parts(column) for column in columns]
    made = united([(rows, keys) for rows, keys, _ in parts])
    if made is None:
        rows, entries = concatenated([packed(_as_entries(column)) for column in columns])
        firsts = first_places(rows, entries.field(0))
        once = keep(entries, rows, firsts == np.arange(len(firsts)), pa.list_(entries.type))
        rows, entries = packed(once)
        return list_of_entries(entries.field(0), entries.field(1), rows, to_arrow(call.type))
    rows, places, _ = made
    keys, items = (
        pc.take(pa.concat_arrays([part[place] for part in parts]), pa.array(places), boundscheck=False)
        for place in (1, 2)
    )
    return list_of_entries(keys, items, rows, to_arrow(call.type))
