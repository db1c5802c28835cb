"""Exact numbers of two types of which no DECIMAL holds all digits, compared as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval import decimal as exact
from flowsql_compute.eval.columns import make_array
from flowsql_core.expr import Cast, Expr, Literal
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import as_decimal


def exceed_a_decimal(a: t.LogicalType, b: t.LogicalType) -> bool:
    """True if both types are exact and together have more digits than a DECIMAL."""
    left, right = as_decimal(a), as_decimal(b)
    if left is None or right is None:
        return False
    digits = max(left.precision - left.scale, right.precision - right.scale)
    return digits + max(left.scale, right.scale) > t.MAX_PRECISION


def compared_exactly(a: Any, b: Any, n: int, compare: Callable[[Any, Any], Any]) -> pa.Array:
    """Compare ``n`` numbers of two such types; NULL where one is.

    Args:
        a, b: a column or scalar each.
        compare: one of ``operator``.
    """
    (left, left_valid), (right, right_valid) = exact.unscaled(a), exact.unscaled(b)
    scale = max(exact.scale_of(a.type), exact.scale_of(b.type))
    left = exact.rescale(left, exact.scale_of(a.type), scale)
    right = exact.rescale(right, exact.scale_of(b.type), scale)
    made = np.broadcast_to(compare(left, right), (n,)).astype(np.bool_)
    valid = exact.merge_validity(left_valid, right_valid)
    if valid is not None:
        valid = np.broadcast_to(valid, (n,))
    return make_array(made, valid, pa.bool_())


def digits_kept(arg: Expr, other: Expr) -> Expr:
    """Return a FLOAT that is written as a DOUBLE of the same digits, where it meets another type; else ``arg``."""
    match arg:
        case Cast(operand=Literal(type=t.NumericType()) as number, type=t.FloatType(), safe=False, implicit=False):
            if isinstance(other.type, t.DoubleType | t.DecimalType):
                return Cast(number, t.DoubleType(nullable=arg.type.nullable), span=arg.span)
    return arg
