"""Functions over arrays: searching, adding and removing elements, sets, sorting, slicing, joining to text.

All work on offsets and flat values (``eval.nested_lists``); a NULL element is an element like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, validity, values_and_validity
from flowsql_compute.eval.nested.lists import (
    Equality,
    Ranges,
    are_among,
    both_valid,
    column_of,
    concatenated,
    element_codes,
    first_places,
    first_places_of_codes,
    greatest_places,
    keep,
    make_list,
    packed,
    ranks,
    sorted_places,
    united,
)
from flowsql_compute.functions.registry import CUSTOM, NULLABLE, Invocation, check_no_null, implicit_cast, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, InternalError
from flowsql_core.expr import Expr
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.coerce import argument_cast_allowed, common_type

# Types


def _takes_element(args: Sequence[Expr]) -> t.ArrayType | None:
    """The array's type if the second argument fits its elements."""
    whole, element = args[0].type, args[1].type
    if not isinstance(whole, t.ArrayType) or not argument_cast_allowed(element, whole.element):
        return None
    return whole


def _to_element(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    whole = args[0].type
    if not isinstance(whole, t.ArrayType):
        raise InternalError("an array is expected")
    return (args[0], implicit_cast(args[1], whole.element))


def _to_result(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    return tuple(implicit_cast(arg, type_) for arg in args)


def _contains_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    whole = _takes_element(args)
    return None if whole is None else t.BooleanType(nullable=whole.nullable)


def _position_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    return None if _takes_element(args) is None else t.INT


def _grown_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    whole, more = _takes_element(args), args[1].type.nullable
    if whole is None:
        return None
    element = whole.element.as_nullable(whole.element.nullable or more)
    return t.ArrayType(element=element, nullable=whole.nullable or more)


def _shrunk_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    return _takes_element(args)


def _common_array(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    made = common_type([arg.type for arg in args])
    return made if isinstance(made, t.ArrayType) else None


def _check_common(args: Sequence[Expr], span: Span | None) -> None:
    check_no_null(args, span)
    if not isinstance(common_type([arg.type for arg in args]), t.ArrayType):
        shown = ", ".join(str(arg.type) for arg in args)
        raise BindError("argument-types", f"Could not find a common type for arguments: [{shown}]", span)


def _is_ordered(type_: t.LogicalType) -> bool:
    """Whether Flink orders values of a type in these functions: no BOOLEAN, no INTERVAL, nothing nested."""
    return isinstance(type_, t.NumericType | t.CharacterType | t.BinaryStringType | t.DateTimeType)


def _check_ordered(args: Sequence[Expr], span: Span | None) -> None:
    whole = args[0].type
    if isinstance(whole, t.ArrayType) and not _is_ordered(whole.element):
        raise BindError(
            "argument-types",
            f"Type '{whole.element}' should support both 'EQUALS' and 'ORDER' comparison with itself.",
            span,
        )


def _extreme_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    whole = args[0].type
    return whole.element if isinstance(whole, t.ArrayType) else None


def _same_array(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    return args[0].type


def _sorted_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    whole = args[0].type
    return whole if isinstance(whole, t.ArrayType) and _is_ordered(whole.element) else None


def _sliced_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    small = t.TinyIntType | t.SmallIntType | t.IntType
    return args[0].type if all(isinstance(arg.type, small) for arg in args[1:]) else None


def _texts_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    whole = args[0].type
    return t.STRING if isinstance(whole, t.ArrayType) and isinstance(whole.element, t.CharacterType) else None


# Searching


def _with_needle(call: Invocation, whole: Any, needle: Any) -> tuple[Ranges, Any, Any]:
    """Packed rows, the codes of their elements, and the code of each row's needle."""
    rows, values = packed(column_of(whole, call.n))
    wanted = column_of(needle, call.n)
    codes = element_codes(pa.concat_arrays([values, wanted.cast(values.type)]))
    return rows, codes[: len(values)], codes[len(values) :]


@scalar(
    "ARRAY_CONTAINS(ARRAY, ANY) -> BOOLEAN", nulls=CUSTOM, returns=_contains_type, coerce=_to_element,
    spark="ARRAY_CONTAINS({0}, {1})",
)  # fmt: skip
def array_contains(call: Invocation, whole: Any, needle: Any) -> Any:
    """Whether a value is among the elements; NULL is found where an element is NULL."""
    rows, codes, wanted = _with_needle(call, whole, needle)
    owners = rows.owners()
    found = np.zeros(call.n, dtype=np.bool_)
    found[owners[codes == wanted[owners]]] = True
    return make_array(found, rows.valid, pa.bool_())


@scalar(
    "ARRAY_POSITION(ARRAY, ANY) -> INT", returns=_position_type, coerce=_to_element,
    spark="CAST(ARRAY_POSITION({0}, {1}) AS INT)",
)  # fmt: skip
def array_position(call: Invocation, whole: Any, needle: Any) -> Any:
    """The place of the first element that equals a value, from 1; 0 without one, NULL for NULL."""
    rows, codes, wanted = _with_needle(call, whole, needle)
    owners, within = rows.owners(), rows.within()
    hits = np.flatnonzero(codes == wanted[owners])[::-1]
    place = np.zeros(call.n, dtype=np.int32)
    place[owners[hits]] = within[hits] + 1
    return make_array(place, both_valid(rows.valid, validity(column_of(needle, call.n))), pa.int32())


def _extreme(call: Invocation, whole: Any, largest: bool) -> Any:
    rows, values = packed(column_of(whole, call.n))
    valid = validity(values)
    order = ranks(values)
    present = np.ones(len(values), dtype=np.bool_) if valid is None else valid.copy()
    if pa.types.is_floating(values.type):
        present &= _counted_numbers(values, present, rows.owners(), call.n)
    best = greatest_places(rows, order if largest else ~order, present)
    return pc.take(values, pa.array(np.maximum(best, 0), mask=best < 0), boundscheck=False)


def _counted_numbers(values: Any, present: Any, owners: Any, n: int) -> Any:
    """Nothing is more or less than NaN: standing first it stays, standing later it never wins."""
    numbers, _ = values_and_validity(values)
    strange = np.isnan(numbers) & present
    if not strange.any():
        return present
    places = np.flatnonzero(present)
    first = np.full(n, -1, dtype=np.int64)
    first[owners[places[::-1]]] = places[::-1]
    leads = np.zeros(n, dtype=np.bool_)
    known = first >= 0
    leads[known] = strange[first[known]]
    return np.where(leads[owners], np.arange(len(numbers)) == first[owners], present & ~strange)


@scalar(
    "ARRAY_MAX(ARRAY) -> BOOLEAN", nulls=NULLABLE, check=_check_ordered, returns=_extreme_type, spark="ARRAY_MAX({0})"
)
def array_max(call: Invocation, whole: Any) -> Any:
    """The largest element, NULLs apart; NULL if there is none."""
    return _extreme(call, whole, largest=True)


@scalar(
    "ARRAY_MIN(ARRAY) -> BOOLEAN", nulls=NULLABLE, check=_check_ordered, returns=_extreme_type, spark="ARRAY_MIN({0})"
)
def array_min(call: Invocation, whole: Any) -> Any:
    """The smallest element, NULLs apart; NULL if there is none."""
    return _extreme(call, whole, largest=False)


# Adding and removing


def _beside(call: Invocation, whole: Any, needle: Any, before: bool) -> Any:
    type_ = to_arrow(call.type)
    rows, values = packed(column_of(whole, call.n))
    one = np.ones(call.n, dtype=np.int64)
    single = (Ranges(np.arange(call.n), one, rows.valid), column_of(needle, call.n).cast(values.type))
    made, flat = concatenated([single, (rows, values)] if before else [(rows, values), single])
    return make_list(flat, made.sizes, made.valid, type_)


@scalar(
    "ARRAY_APPEND(ARRAY, ANY) -> BOOLEAN", nulls=CUSTOM, returns=_grown_type, coerce=_to_element,
    spark="ARRAY_APPEND({0}, {1})",
)  # fmt: skip
def array_append(call: Invocation, whole: Any, element: Any) -> Any:
    """The array with one more element behind."""
    return _beside(call, whole, element, before=False)


@scalar(
    "ARRAY_PREPEND(ARRAY, ANY) -> BOOLEAN", nulls=CUSTOM, returns=_grown_type, coerce=_to_element,
    spark="ARRAY_PREPEND({0}, {1})",
)  # fmt: skip
def array_prepend(call: Invocation, whole: Any, element: Any) -> Any:
    """The array with one more element in front."""
    return _beside(call, whole, element, before=True)


@scalar("ARRAY_REMOVE(ARRAY, ANY) -> BOOLEAN", nulls=CUSTOM, returns=_shrunk_type, coerce=_to_element, spark=None)
def array_remove(call: Invocation, whole: Any, element: Any) -> Any:
    """The array without the elements that equal a value; NULL removes NULLs."""
    column = column_of(whole, call.n)
    rows, codes, wanted = _with_needle(call, column, element)
    _, values = packed(column)
    return keep(values, rows, codes != wanted[rows.owners()], to_arrow(call.type))


@scalar(
    "ARRAY_CONCAT(ANY...) -> BOOLEAN", check=_check_common, returns=_common_array, coerce=_to_result,
    spark=None,
)  # fmt: skip
def array_concat(call: Invocation, *wholes: Any) -> Any:
    """The elements of all arrays, one array behind another; NULL if one is NULL."""
    rows, values = concatenated([packed(column_of(whole, call.n)) for whole in wholes])
    return make_list(values, rows.sizes, rows.valid, to_arrow(call.type))


@scalar("ARRAY_REVERSE(ARRAY) -> $1", spark="REVERSE({0})")
def array_reverse(call: Invocation, whole: Any) -> Any:
    """The elements from last to first."""
    rows, values = packed(column_of(whole, call.n))
    owners = rows.owners()
    places = rows.starts[owners] + rows.sizes[owners] - 1 - rows.within()
    return make_list(pc.take(values, pa.array(places), boundscheck=False), rows.sizes, rows.valid, to_arrow(call.type))


# Sets


@scalar("ARRAY_DISTINCT(ARRAY) -> $1", spark="ARRAY_DISTINCT({0})")
def array_distinct(call: Invocation, whole: Any) -> Any:
    """Each element once, in order of first appearance."""
    rows, values = packed(column_of(whole, call.n))
    return keep(values, rows, first_places(rows, values) == np.arange(len(values)), to_arrow(call.type))


@scalar(
    "ARRAY_UNION(ANY, ANY) -> BOOLEAN", check=_check_common, returns=_common_array, coerce=_to_result,
    spark="ARRAY_UNION({0}, {1})",
)  # fmt: skip
def array_union(call: Invocation, left: Any, right: Any) -> Any:
    """The elements of both arrays, each once."""
    parts = [packed(column_of(whole, call.n)) for whole in (left, right)]
    type_ = to_arrow(call.type)
    made = united(parts)
    if made is not None:
        rows, firsts, _ = made
        values = pc.take(pa.concat_arrays([values for _, values in parts]), pa.array(firsts), boundscheck=False)
        return make_list(values, rows.sizes, rows.valid, type_)
    rows, values = concatenated(parts)
    return keep(values, rows, first_places(rows, values) == np.arange(len(values)), type_)


def _common_part(call: Invocation, left: Any, right: Any, wanted: bool) -> Any:
    (rows, values), (other, others) = packed(column_of(left, call.n)), packed(column_of(right, call.n))
    codes = element_codes(pa.concat_arrays([values, others]), Equality.HASHED)
    mine, theirs = codes[: len(values)], codes[len(values) :]
    found = are_among(rows, mine, other, theirs)
    kept = (found == wanted) & (first_places_of_codes(rows, mine) == np.arange(len(mine)))
    valid = both_valid(rows.valid, other.valid)
    if valid is not None:
        kept &= valid[rows.owners()]
    return keep(values, Ranges(rows.starts, rows.sizes, valid), kept, to_arrow(call.type))


@scalar(
    "ARRAY_INTERSECT(ANY, ANY) -> BOOLEAN", check=_check_common, returns=_common_array, coerce=_to_result,
    spark="ARRAY_INTERSECT({0}, {1})",
)  # fmt: skip
def array_intersect(call: Invocation, left: Any, right: Any) -> Any:
    """The elements that both arrays have, each once, in the order of the first."""
    return _common_part(call, left, right, wanted=True)


@scalar(
    "ARRAY_EXCEPT(ANY, ANY) -> BOOLEAN", check=_check_common, returns=_common_array, coerce=_to_result,
    spark="ARRAY_EXCEPT({0}, {1})",
)  # fmt: skip
def array_except(call: Invocation, left: Any, right: Any) -> Any:
    """The elements of the first array that the second one has not, each once."""
    return _common_part(call, left, right, wanted=False)


# Order


@scalar(
    "ARRAY_SORT(ARRAY, [BOOLEAN], [BOOLEAN]) -> BOOLEAN", returns=_sorted_type, spark=None,
)  # fmt: skip
def array_sort(call: Invocation, whole: Any, ascending: Any = None, nulls_first: Any = None) -> Any:
    """The elements in ascending order, NULLs first; FALSE sorts down, NULLs last unless the third argument is TRUE."""
    column = column_of(whole, call.n)
    up, up_valid = _flags(ascending, call.n, default=True)
    first, first_valid = (up, None) if nulls_first is None else _flags(nulls_first, call.n, default=True)
    rows, values = packed(column)
    owners = rows.owners()
    order = ranks(values)
    # The complement turns the order around, of the smallest integer too.
    keys = order if up.all() else np.where(up[owners], order, ~order)
    valid = validity(values)
    edges = np.zeros(len(values), dtype=np.int8)
    if valid is not None:
        # Within a row NULLs stand before or behind all values.
        keys = np.where(valid, keys, 0)
        edges[~valid] = np.where(first[owners[~valid]], -1, 1)
    turned = _has_both_zeros(values)
    sequence = _turned(rows, up[owners], order, edges) if turned else sorted_places(rows, keys, edges)
    made = pc.take(values, pa.array(sequence), boundscheck=False)
    kept = both_valid(rows.valid, up_valid, first_valid)
    type_ = to_arrow(call.type)
    if kept is None or kept is rows.valid:
        return make_list(made, rows.sizes, kept, type_)
    return keep(made, Ranges(rows.starts, rows.sizes, kept), kept[owners], type_)


def _has_both_zeros(values: Any) -> bool:
    """Whether there are equal elements that can be told from each other."""
    if not pa.types.is_floating(values.type):
        return False
    numbers, _ = values_and_validity(values)
    return bool(np.any(np.signbit(numbers) & (numbers == 0)))


def _turned(rows: Ranges, up: Any, order: Any, edges: Any) -> Any:
    """Places of the values in order, of which equal ones are turned around where a row sorts up, as by Flink's sort."""
    down = sorted_places(rows, ~order, np.where(up, -edges, edges).astype(np.int8))
    places = np.arange(len(order))
    return down[np.where(up, (2 * rows.starts + rows.sizes - 1)[rows.owners()] - places, places)]


def _flags(datum: Any, n: int, default: bool) -> tuple[Any, Any]:
    if datum is None:
        return np.full(n, default), None
    return values_and_validity(column_of(datum, n))


@scalar("ARRAY_SLICE(ARRAY, INTEGER, [INTEGER]) -> BOOLEAN", returns=_sliced_type, spark=None)
def array_slice(call: Invocation, whole: Any, start: Any, end: Any = None) -> Any:
    """The elements from one place to another, both from 1 and inclusive; negative ones count from the end, 0 is 1."""
    rows, values = packed(column_of(whole, call.n))
    low, low_valid = values_and_validity(column_of(start, call.n))
    high, high_valid = (rows.sizes, None) if end is None else values_and_validity(column_of(end, call.n))
    valid = both_valid(rows.valid, low_valid, high_valid)
    begin = np.maximum(_from_one(low.astype(np.int64), rows.sizes), 1)
    stop = np.minimum(rows.sizes if end is None else _from_one(high.astype(np.int64), rows.sizes), rows.sizes)
    sizes = np.maximum(stop - begin + 1, 0)
    if valid is not None:
        sizes = np.where(valid, sizes, 0)
    cut = Ranges(rows.starts + np.where(sizes > 0, begin - 1, 0), sizes, valid)
    return make_list(pc.take(values, pa.array(cut.positions()), boundscheck=False), sizes, valid, to_arrow(call.type))


def _from_one(places: Any, sizes: Any) -> Any:
    return np.where(places < 0, sizes + places + 1, np.where(places == 0, 1, places))


@scalar(
    "ARRAY_JOIN(ARRAY, STRING, [STRING]) -> STRING", returns=_texts_type, spark=None,
)  # fmt: skip
def array_join(call: Invocation, whole: Any, separator: Any, null_text: Any = None) -> Any:
    """The texts of an array with a separator between; NULLs are left out or replaced by the third argument."""
    column = column_of(whole, call.n)
    rows, values = packed(column)
    nulls = validity(values)
    if nulls is not None and null_text is None:
        lists = keep(values, rows, nulls, pa.list_(pa.string()))
    else:
        if nulls is not None:
            shown = null_text if isinstance(null_text, pa.Scalar) else pc.take(null_text, pa.array(rows.owners()))
            values = pc.fill_null(pc.coalesce(values, shown), "")
        lists = make_list(values, rows.sizes, rows.valid, pa.list_(pa.string()))
    made = pc.binary_join(lists, separator)
    if null_text is None or (isinstance(null_text, pa.Scalar) and null_text.is_valid):
        return made
    absent = pc.is_null(column_of(null_text, call.n))
    return pc.if_else(absent, pa.scalar(None, pa.string()), made)
