"""Equality of arrays, maps and rows, row by row but column-wise: children are compared as whole columns."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, floating_bits, make_array, spread, validity, values_and_validity
from flowsql_core.arrow import compute as pc
from flowsql_core.expr import Call, Cast, Expr, Literal
from flowsql_core.record import record
from flowsql_core.types import logical as t

#: Options of ``=`` and ``<>`` that take the place of IS [NOT] DISTINCT FROM.
BY_IDENTITY: Final = (("compared", "identity"),)


@record
class _Pair:
    a: pa.Array
    b: pa.Array


def nested_equal(call: Any, a: Any, b: Any, by_equality: bool) -> pa.Array:
    """Whether two columns of one nested type are equal, row by row; NULL where one is NULL.

    Two arrays that ``ARRAY[...]`` makes are compared as they are stored: -0.0 is not 0.0, NaN is NaN, NULL is NULL. Of
    other arrays the elements are compared as values, and a NULL element makes them differ. Maps are compared without
    order: their keys as they are stored, their values as values; one that is NULL makes them differ. Fields of rows are
    compared as values. What is inside of an element of an array or of a map is compared as it is stored.

    Args:
        call: has the number of rows in ``n`` and the arguments in ``args``.
        by_equality: ``=`` and ``<>``, for which an array that is cast to elements of another type is not one that
            ``ARRAY[...]`` makes.

    Source: Flink, ``ScalarOperatorGens.generateArrayComparison`` (arrays are ``BinaryArrayData``),
    ``generateMapComparison``.
    """
    left = spread(a, call.n) if isinstance(a, pa.Scalar) else a
    right = spread(b, call.n) if isinstance(b, pa.Scalar) else b
    valid = _both(validity(left), validity(right))
    made = _are_made(call.args) and not (by_equality and any(map(_has_other_elements, call.args)))
    return make_array(_same(_Pair(left, right), _Level.BINARY if made else _Level.PLAIN), valid, pa.bool_())


class _Level(enum.Enum):
    """How values are compared: top-level arrays by bytes, or not; and all that is inside of collections, by bytes."""

    PLAIN = 1
    BINARY = 2
    STORED = 3


def _are_made(args: Sequence[Expr]) -> bool:
    """True if all arrays in the arguments come from constructors of arrays, or are constants."""
    return all(map(_is_made, args))


def _is_made(arg: Expr) -> bool:
    if isinstance(arg, Cast):
        return _is_made(arg.operand)
    if isinstance(arg, Call) and arg.function == "ROW":
        return all(not t.is_nested(part.type) or _is_made(part) for part in arg.args)
    return isinstance(arg, Literal) or (isinstance(arg, Call) and arg.function == "ARRAY")


def _has_other_elements(arg: Expr) -> bool:
    """True for an array that is cast to elements of another type."""
    return isinstance(arg, Cast) and not _same_elements(arg.operand.type, arg.type)


def _same_elements(a: t.LogicalType, b: t.LogicalType) -> bool:
    while isinstance(a, t.ArrayType) and isinstance(b, t.ArrayType):
        a, b = a.element, b.element
    texts = isinstance(a, t.CharacterType) and isinstance(b, t.CharacterType)
    return texts or isinstance(a, t.NullType) or t.is_nested(a) or a.root == b.root


def _both(a: Bools | None, b: Bools | None) -> Bools | None:
    if a is None:
        return b
    return a if b is None else a & b


def _same(pair: _Pair, level: _Level) -> Bools:
    """True where both are NULL or both are the same value; ``STORED``: where their bytes are the same."""
    a, b = pair.a, pair.b
    n = len(a)
    none_a, none_b = _nulls(a), _nulls(b)
    if pa.types.is_null(a.type) or pa.types.is_null(b.type):
        same = np.ones(n, dtype=np.bool_)
    elif pa.types.is_struct(a.type):
        same = np.ones(n, dtype=np.bool_)
        for index in range(a.type.num_fields):
            same &= _same(_Pair(pc.struct_field(a, [index]), pc.struct_field(b, [index])), level)
    elif pa.types.is_map(a.type):
        same = _same_maps(a, b, level is _Level.STORED)
    elif pa.types.is_list(a.type):
        same = _same_lists(a, b, level)
    elif level is _Level.STORED and pa.types.is_floating(a.type):
        same = floating_bits(values_and_validity(a)[0]) == floating_bits(values_and_validity(b)[0])
    else:
        same, _ = values_and_validity(pc.coalesce(pc.equal(a, b), pa.scalar(False)))
    return np.where(none_a | none_b, none_a & none_b, same)


def _same_parts(pair: _Pair, stored: bool) -> Bools:
    """True where an element of an array or a value of a map is the same; NULL is not, unless bytes are compared."""
    if stored:
        return _same(pair, _Level.STORED)
    level = _Level.STORED if pa.types.is_nested(pair.a.type) else _Level.PLAIN
    return _same(pair, level) & ~_nulls(pair.a)


def _nulls(array: pa.Array) -> Bools:
    valid = validity(array)
    return np.zeros(len(array), dtype=np.bool_) if valid is None else ~valid


def _bounds(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32, count=array.offset + len(array) + 1)[array.offset :]
    starts = offsets[:-1].astype(np.int64)
    return starts, np.where(_nulls(array), 0, np.diff(offsets)).astype(np.int64)


def _same_lists(a: pa.Array, b: pa.Array, level: _Level) -> Bools:
    (start_a, size_a), (start_b, size_b) = _bounds(a), _bounds(b)
    same: Bools = np.asarray(size_a == size_b)
    rows = np.flatnonzero(same & (size_a > 0))
    sizes = size_a[rows]
    owner = np.repeat(rows, sizes)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    pair = _Pair(
        pc.take(a.values, pa.array(start_a[owner] + within)), pc.take(b.values, pa.array(start_b[owner] + within))
    )
    alike = _same_parts(pair, level is not _Level.PLAIN)
    differing = owner[~alike]
    same[differing] = False
    return same


def _same_maps(a: pa.Array, b: pa.Array, stored: bool) -> Bools:
    """Every entry of one has an equal entry in the other; entries of a row are compared all against all."""
    (start_a, size_a), (start_b, size_b) = _bounds(a), _bounds(b)
    same: Bools = np.asarray(size_a == size_b)
    rows = np.flatnonzero(same & (size_a > 0))
    sizes = size_a[rows]
    pairs = sizes * sizes
    owner = np.repeat(rows, pairs)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    width = size_a[owner]
    left, right = start_a[owner] + number // np.maximum(width, 1), start_b[owner] + number % np.maximum(width, 1)
    keys = _same(_Pair(pc.take(a.keys, pa.array(left)), pc.take(b.keys, pa.array(right))), _Level.STORED)
    values = pc.take(a.items, pa.array(left))
    items = _same_parts(_Pair(values, pc.take(b.items, pa.array(right))), stored)
    matches = np.bincount(owner[keys & items], minlength=len(same))
    return np.asarray(same & (matches >= size_a))
