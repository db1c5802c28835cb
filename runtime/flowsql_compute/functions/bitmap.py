"""Functions over BITMAP: compressed sets of 32-bit integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, pack_validity, spread, validity
from flowsql_compute.eval.nested.bitmaps import (
    Sets,
    bitmap_text,
    cardinality,
    combined,
    read_sets,
    sets_of_lists,
    write_sets,
)
from flowsql_compute.functions.registry import Invocation, implicit_cast, scalar
from flowsql_core.expr import Expr
from flowsql_core.types import logical as t


def _column(datum: Any, n: int) -> pa.Array:
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


def _list_of_ints(args: Any, options: dict[str, Any]) -> t.LogicalType | None:
    type_ = args[0].type
    fits = isinstance(type_, t.ArrayType) and isinstance(type_.element, t.IntegerType) and type_.element.bits <= 32
    return t.BITMAP if fits else None


def _as_ints(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    return (implicit_cast(args[0], t.ArrayType(element=t.INT)),)


@scalar("BITMAP_BUILD(ARRAY) -> BITMAP", returns=_list_of_ints, coerce=_as_ints, spark=None)
def bitmap_build(numbers: Any) -> Any:
    """The set of an array's INTs; NULL elements are left out, negative ones stand for themselves plus 2 to the 32."""
    return write_sets(sets_of_lists(numbers))


@scalar("BITMAP_FROM_BYTES(BINARY) -> BITMAP", raises=True, spark=None)
def bitmap_from_bytes(data: Any) -> Any:
    """The set of a RoaringBitmap in its portable form. Fails on other bytes."""
    return write_sets(read_sets(data))


@scalar("BITMAP_TO_BYTES(BITMAP) -> BYTES", spark=None)
def bitmap_to_bytes(bitmap: Any) -> Any:
    """The RoaringBitmap in its portable form."""
    return bitmap


@scalar("BITMAP_TO_ARRAY(BITMAP) -> ARRAY<INT>", spark=None)
def bitmap_to_array(bitmap: Any) -> Any:
    """The values, ascending as unsigned numbers."""
    sets = read_sets(bitmap)
    child = make_array(sets.values.view(np.int32), None, pa.int32())
    offsets = pa.py_buffer(sets.starts.astype(np.int32))
    return pa.Array.from_buffers(
        pa.list_(pa.int32()), len(bitmap), [pack_validity(sets.valid), offsets], children=[child]
    )


@scalar("BITMAP_TO_STRING(BITMAP) -> STRING", spark=None)
def bitmap_to_string(bitmap: Any) -> Any:
    """The values as text: ``{1,2,3}``."""
    return bitmap_text(bitmap)


@scalar("BITMAP_CARDINALITY(BITMAP) -> BIGINT", spark=None)
def bitmap_cardinality(bitmap: Any) -> Any:
    """How many values there are."""
    return make_array(cardinality(bitmap), validity(bitmap), pa.int64())


def _set_function(name: str, kept: int, doc: str) -> None:
    def kernel(call: Invocation, a: Any, b: Any) -> Any:
        return write_sets(combined(_sets(a, call.n), _sets(b, call.n), kept))

    kernel.__doc__ = doc
    scalar(f"{name}(BITMAP, BITMAP) -> BITMAP", spark=None)(kernel)


def _sets(datum: Any, n: int) -> Sets:
    return read_sets(_column(datum, n))


for _name, _kept, _doc in (
    ("BITMAP_AND", 4, "The values of both."),
    ("BITMAP_OR", 7, "The values of one or both."),
    ("BITMAP_XOR", 3, "The values of exactly one."),
    ("BITMAP_ANDNOT", 1, "The values of the first that the second lacks."),
):
    _set_function(_name, _kept, _doc)
