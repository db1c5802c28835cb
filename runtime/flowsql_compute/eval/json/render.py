"""Columns of any type as JSON text, as Jackson writes Flink's values: keys sorted, all digits, bytes in base64."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity, values_and_validity
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.eval.json.variant import variant_text
from flowsql_compute.eval.nested.lists import column_of, make_list, packed
from flowsql_compute.eval.text.java_numbers import java_double
from flowsql_compute.eval.text.render import json_strings
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.types import logical as t

Int64s = npt.NDArray[np.int64]


def json_column(array: pa.Array, type_: t.LogicalType, context: EvalContext) -> pa.Array:
    """The JSON text of each value; NULL where the value is NULL.

    Raises:
        NotSupportedYetError: types that have no JSON form (intervals, objects).
    """
    match type_:
        case t.NullType():
            return pa.nulls(len(array), pa.string())
        case t.BooleanType() | t.IntegerType():
            return pc.cast(array, pa.string())
        case t.DecimalType():
            return map_distinct(array, str, pa.string())
        case t.ApproximateType():
            return map_distinct(array, _number, pa.string())
        case t.CharacterType():
            return json_strings(array)
        case t.VariantType():
            return variant_text(array)
        case t.BinaryStringType():
            return _bytes(array)
    return _nested(array, type_, context)


def _number(value: float) -> str:
    """A double as ``BigDecimal`` of its text: ``1.0E+10``, ``0.000010``."""
    text = java_double(value)
    return f'"{text}"' if text[-1] in "Ny" else str(Decimal(text))


def _bytes(array: pa.Array) -> pa.Array:
    from base64 import b64encode

    return map_distinct(array, lambda value: f'"{b64encode(value).decode()}"', pa.string())


def _nested(array: pa.Array, type_: t.LogicalType, context: EvalContext) -> pa.Array:
    match type_:
        case t.TimestampType():
            return _quoted(_iso(array))
        case t.TimestampLtzType():
            return _quoted(pc.binary_join_element_wise(_iso(array.cast(pa.timestamp(array.type.unit))), "Z", ""))
        case t.ArrayType(element=element):
            rows, values = packed(array)
            texts = pc.fill_null(json_column(values, element, context), "null")
            lists = make_list(texts, rows.sizes, rows.valid, pa.list_(pa.string()))
            return pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "")
        case t.MapType(key=t.CharacterType(), value=value):
            return _object(array, value, context)
        case t.MultisetType(element=t.CharacterType()):
            return _object(array, t.INT, context)
        case t.RowType(fields=fields):
            return _row(array, fields, context)
    raise NotSupportedYetError(f"{type_.as_nullable()} as JSON")


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _iso(array: pa.Array) -> pa.Array:
    """ISO date and time, the fraction without zeros at its end."""
    # Timestamps are kept to the millisecond at least, so that there is a fraction to cut.
    texts = pc.replace_substring(pc.cast(array, pa.string()), " ", "T")
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")


def _object(array: pa.Array, value: t.LogicalType, context: EvalContext) -> pa.Array:
    """A map with text keys as an object, its keys sorted."""
    rows, entries = packed(_entries(array))
    keys, owners = entries.field(0), rows.owners()
    table = pa.table({"row": pa.array(owners), "key": keys})
    order = pc.sort_indices(table, sort_keys=[("row", "ascending"), ("key", "ascending")])
    values = pc.fill_null(json_column(entries.field(1), value, context), "null")
    pairs = pc.binary_join_element_wise(json_strings(keys), values, ":")
    lists = make_list(pc.take(pairs, order), rows.sizes, rows.valid, pa.list_(pa.string()))
    return pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")


def _entries(array: pa.Array) -> pa.Array:
    entry = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    return pa.Array.from_buffers(
        pa.list_(entry.type), len(array), array.buffers()[:2], array.null_count, array.offset, [entry]
    )


def _row(array: pa.Array, fields: tuple[t.Field, ...], context: EvalContext) -> pa.Array:
    parts = []
    for place, field in sorted(enumerate(fields), key=lambda known: known[1].name):
        texts = pc.fill_null(json_column(pc.struct_field(array, [place]), field.type, context), "null")
        name = json_strings(pa.array([field.name]))[0]
        parts.append(pc.binary_join_element_wise(name, texts, ":"))
    inner = pc.binary_join_element_wise(*parts, ",") if parts else column_of(pa.scalar(""), len(array))
    made = pc.binary_join_element_wise("{", inner, "}", "")
    return made if validity(array) is None else pc.if_else(pc.is_valid(array), made, pa.scalar(None, pa.string()))


def joined_objects(owners: Int64s, keys: pa.Array, values: pa.Array, n: int, absent: bool) -> pa.Array:
    """``n`` objects of (owner, key, JSON text) entries, their keys sorted; of equal keys the last one counts.

    ``absent``: entries without a text are left out; else they are ``null``.
    """
    count = len(keys)
    table = pa.table({"owner": pa.array(owners), "key": keys, "place": pa.array(np.arange(count))})
    ways = [("owner", "ascending"), ("key", "ascending"), ("place", "ascending")]
    order, _ = values_and_validity(pc.sort_indices(table, sort_keys=ways))
    order = order.astype(np.int64)
    sorted_keys, sorted_owners = pc.take(keys, pa.array(order)), owners[order]
    kept = np.ones(count, dtype=np.bool_)
    if count:
        same, _ = values_and_validity(pc.equal(sorted_keys[:-1], sorted_keys[1:]))
        kept[:-1] = ~(same & (sorted_owners[:-1] == sorted_owners[1:]))
    texts = pc.take(values, pa.array(order))
    valid = validity(texts)
    if absent and valid is not None:
        kept &= valid
    pairs = pc.binary_join_element_wise(json_strings(sorted_keys), pc.fill_null(texts, "null"), ":")
    chosen = pc.take(pairs, pa.array(np.flatnonzero(kept)))
    lists = make_list(chosen, np.bincount(sorted_owners[kept], minlength=n), None, pa.list_(pa.string()))
    return pc.binary_join_element_wise("{", pc.binary_join(lists, ","), "}", "")


def joined_arrays(owners: Int64s, values: pa.Array, n: int, absent: bool) -> pa.Array:
    """``n`` arrays of JSON texts, given owner by owner; ``absent``: NULLs are left out; else they are ``null``."""
    valid = validity(values)
    if absent and valid is not None:
        owners, values = owners[valid], pc.drop_null(values)
    lists = make_list(pc.fill_null(values, "null"), np.bincount(owners, minlength=n), None, pa.list_(pa.string()))
    return pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "")
