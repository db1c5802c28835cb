"""Constructors of and access to arrays, maps and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, spread, validity, values_and_validity
from flowsql_compute.eval.nested.lists import Ranges, element_codes, make_map
from flowsql_compute.functions.registry import CUSTOM, Invocation, implicit_cast, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError, InternalError
from flowsql_core.expr import Expr, Literal
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.coerce import common_type, mixes_dates


def _column(datum: Any, n: int) -> pa.Array:
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


def _offsets(array: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    raw = np.frombuffer(array.buffers()[1], dtype=np.int32, count=array.offset + len(array) + 1)
    return raw[array.offset :].astype(np.int64)


# Rows


def _row_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    return t.RowType(fields=tuple(t.Field(f"EXPR${index}", arg.type) for index, arg in enumerate(args)), nullable=False)


@scalar("ROW(ANY...) -> BOOLEAN", nulls=CUSTOM, returns=_row_type, spark=None)
def row(call: Invocation, *values: Any) -> Any:
    """A row of the values."""
    fields = list(to_arrow(call.type))
    return pa.StructArray.from_arrays([_column(value, call.n) for value in values], fields=fields)


def _field_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    type_ = args[0].type
    if not isinstance(type_, t.RowType) or "index" not in options:
        return None
    made: t.LogicalType = type_.fields[options["index"]].type
    return made.as_nullable(made.nullable or type_.nullable)


@scalar("FIELD(ROW) -> BOOLEAN", nulls=CUSTOM, returns=_field_type, spark=None)
def field(call: Invocation, whole: Any) -> Any:
    """One field of a row, by ``index``; NULL where the row is NULL."""
    return pc.struct_field(_column(whole, call.n), [call.option("index")])


# Arrays


def _check_same(args: Sequence[Expr], span: Span | None) -> None:
    """Elements must meet in a type; a DATE meets no TIMESTAMP here."""
    if common_type([arg.type for arg in args]) is None or _mixes_dates(args):
        raise BindError("element-types", "Parameters must be of the same type", span)


def _mixes_dates(args: Sequence[Expr]) -> bool:
    return mixes_dates([arg.type for arg in args])


def _check_entries(args: Sequence[Expr], span: Span | None) -> None:
    bare = all(isinstance(arg.type, t.NullType) for arg in args[::2])
    if bare or _mixes_dates(args[::2]) or _mixes_dates(args[1::2]):
        raise BindError("element-types", "Parameters must be of the same type", span)


def _array_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    element = common_type([arg.type for arg in args], in_order=True)
    return None if element is None or isinstance(element, t.NullType) else t.ArrayType(element=element, nullable=False)


def _to_element(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    if not isinstance(type_, t.ArrayType):
        raise InternalError("ARRAY makes an array")
    return tuple(implicit_cast(arg, type_.element) for arg in args)


@scalar("ARRAY(ANY, ANY...) -> BOOLEAN", nulls=CUSTOM, check=_check_same, returns=_array_type, coerce=_to_element,
        spark=None)  # fmt: skip
def array(call: Invocation, *elements: Any) -> Any:
    """An array of the elements."""
    type_ = to_arrow(call.type)
    return _interleaved([_column(element, call.n) for element in elements], type_, call.n)


def _interleaved(columns: list[pa.Array], type_: pa.DataType, n: int) -> pa.Array:
    count = len(columns)
    values = pa.concat_arrays(columns) if count > 1 else columns[0]
    if count > 1 and n > 1:
        index = (np.arange(count * n).reshape(count, n).T).reshape(-1)
        values = pc.take(values, pa.array(index), boundscheck=False)
    offsets = pa.array(np.arange(n + 1, dtype=np.int32) * np.int32(count))
    return pa.Array.from_buffers(type_, n, [None, offsets.buffers()[1]], children=[values])


def _item_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    holder, index = args[0].type, args[1].type
    if isinstance(holder, t.ArrayType) and isinstance(index, t.IntegerType):
        return holder.element.as_nullable()
    if isinstance(holder, t.MapType) and common_type((holder.key, index)) is not None:
        return holder.value.as_nullable()
    if isinstance(holder, t.RowType) and not isinstance(holder, t.StructuredType) and isinstance(args[1], Literal):
        found = _row_field(holder, args[1].value)
        return None if found is None else holder.fields[found].type.as_nullable()
    return None


def _row_field(type_: t.RowType, key: Any) -> int | None:
    if isinstance(key, int):
        return key - 1 if 1 <= key <= len(type_.fields) else None
    names = [known.name for known in type_.fields]
    return names.index(key) if key in names else None


def _check_index(args: Sequence[Expr], span: Span | None) -> None:
    value = args[1].value if isinstance(args[1], Literal) else None
    if isinstance(args[0].type, t.MapType) and isinstance(args[1].type, t.NullType):
        raise BindError("illegal-null", "Illegal use of 'NULL'", args[1].span or span, "write CAST(NULL AS <type>)")
    if isinstance(args[0].type, t.ArrayType) and not isinstance(args[1].type, t.IntType):
        where = args[1].span or span
        raise BindError("bad-index", "Integer expression type expected.", where, "write CAST(... AS INT)")
    if isinstance(args[0].type, t.ArrayType) and isinstance(value, int) and value < 1:
        raise BindError("bad-index", f"Array element access needs an index starting at 1 but was {value}.", span)


@scalar("ITEM(ANY, ANY) -> BOOLEAN", nulls=CUSTOM, check=_check_index, returns=_item_type,
        coerce=lambda args, type_: _to_key(args), spark=None)  # fmt: skip
def item(call: Invocation, holder: Any, index: Any) -> Any:
    """An array's element by position (from 1), a map's value by key, a row's field; NULL where there is none."""
    column = _column(holder, call.n)
    match call.arg_types[0]:
        case t.MapType():
            return _map_value(column, index, call.n)
        case t.RowType() as type_:
            found = _row_field(type_, index.as_py())
            return pc.struct_field(column, [found])
    places, valid = values_and_validity(_column(index, call.n))
    offsets = _offsets(column)
    places = places.astype(np.int64)
    inside = (places >= 1) & (places <= np.diff(offsets))
    for other in (valid, validity(column)):
        inside = inside if other is None else inside & other
    target = np.where(inside, offsets[:-1] + places - 1, 0)
    return pc.take(column.values, pa.array(target, mask=~inside), boundscheck=False)


def _to_key(args: tuple[Expr, ...]) -> tuple[Expr, ...]:
    holder = args[0].type
    if isinstance(holder, t.MapType) and not isinstance(args[1].type, t.CharacterType):
        return (args[0], implicit_cast(args[1], holder.key))
    return args


def _map_value(column: pa.Array, key: Any, n: int) -> pa.Array:
    offsets = _offsets(column)
    sizes = np.diff(offsets)
    valid = validity(column)
    if valid is not None:
        sizes = np.where(valid, sizes, 0)
    owner = np.repeat(np.arange(n), sizes)
    entry = np.repeat(offsets[:-1], sizes) + np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    keys = pc.take(column.keys, pa.array(entry))
    if pa.types.is_nested(keys.type):
        codes = element_codes(pa.concat_arrays([keys, _column(key, n)]))
        hits = codes[: len(keys)] == codes[len(keys) :][owner]
    else:
        wanted = key if isinstance(key, pa.Scalar) else pc.take(key, pa.array(owner))
        hits, _ = values_and_validity(pc.fill_null(pc.equal(keys, wanted), False))
    place = np.full(n, -1, dtype=np.int64)
    # The first entry of a key counts.
    place[owner[hits][::-1]] = entry[hits][::-1]
    return pc.take(column.items, pa.array(np.maximum(place, 0), mask=place < 0), boundscheck=False)


@scalar("CARDINALITY(ARRAY) -> INT", "CARDINALITY(MAP) -> INT", "CARDINALITY(MULTISET) -> INT", spark="SIZE({0})")
def cardinality(holder: Any) -> Any:
    """The number of elements or entries."""
    sizes = np.diff(_offsets(holder)).astype(np.int32)
    return make_array(sizes, validity(holder), pa.int32())


def _element_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    type_ = args[0].type
    if not isinstance(type_, t.ArrayType):
        return None
    return type_.element.as_nullable(type_.nullable or type_.element.nullable)


@scalar("ELEMENT(ARRAY) -> BOOLEAN", nulls=CUSTOM, returns=_element_type, raises=True, spark=None)
def element(call: Invocation, holder: Any) -> Any:
    """The only element of an array, NULL of an empty one. Fails when there are several."""
    column = _column(holder, call.n)
    offsets, valid = _offsets(column), validity(column)
    sizes = np.diff(offsets) if valid is None else np.where(valid, np.diff(offsets), 0)
    if np.any(sizes > 1):
        raise ExecutionError("array-too-long", "Array has more than one element.")
    return pc.take(column.values, pa.array(np.where(sizes == 1, offsets[:-1], 0), mask=sizes != 1), boundscheck=False)


# Maps


def _map_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    if len(args) % 2:
        return None
    key = common_type([arg.type for arg in args[::2]], in_order=True)
    value = common_type([arg.type for arg in args[1::2]], in_order=True)
    if key is None or value is None:
        return None
    if isinstance(value, t.NullType):
        # Bare NULLs are values of the keys' type.
        value = key.as_nullable()
    return t.MapType(key=key, value=value, nullable=False)


def _to_entry(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    if not isinstance(type_, t.MapType):
        raise InternalError("MAP makes a map")
    return tuple(implicit_cast(arg, type_.value if place % 2 else type_.key) for place, arg in enumerate(args))


@scalar("MAP(ANY, ANY, ANY...) -> BOOLEAN", nulls=CUSTOM, raises=True, check=_check_entries, returns=_map_type,
        coerce=_to_entry, spark=None)  # fmt: skip
def map_(call: Invocation, *entries: Any) -> Any:
    """A map of keys and values in turn; of equal keys the last one counts."""
    type_ = to_arrow(call.type)
    columns = [_column(entry, call.n) for entry in entries]
    keys = _interleaved(columns[::2], pa.list_(type_.key_type), call.n)
    values = _interleaved(columns[1::2], pa.list_(type_.item_type), call.n)
    sizes = np.full(call.n, len(columns) // 2, dtype=np.int64)
    return make_map(keys.values, values.values, Ranges(np.cumsum(sizes) - sizes, sizes, None), type_)
