"""Constants of the IR as Arrow scalars and columns, and back."""

from __future__ import annotations

import decimal
import math
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.columns import spread
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import Literal
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import timestamp_unit, to_arrow

_NANOS_PER = {"ms": 1_000_000, "us": 1000, "ns": 1}


def literal_scalar(literal: Literal) -> pa.Scalar:
    """The constant as an Arrow scalar of its type's physical form."""
    type_ = to_arrow(literal.type)
    value = _physical(literal.value, literal.type)
    if pa.types.is_timestamp(type_) and value is not None and not -(2**63) <= value < 2**63:
        raise NotSupportedYetError(
            f"a {literal.type.as_nullable()} outside of the years 1678 to 2261",
            literal.span,
            "write at most six fractional digits",
        )
    return pa.scalar(value, type_)


def literal_array(literal: Literal, n: int) -> pa.Array:
    """A column of ``n`` rows that all hold the constant."""
    return spread(literal_scalar(literal), n)


def scalar_to_literal(scalar: pa.Scalar, type_: t.LogicalType) -> Literal:
    """The constant of an Arrow scalar; NULL makes the literal's type nullable."""
    if not scalar.is_valid:
        return Literal(None, type_.as_nullable())
    return Literal(_logical(scalar, type_), type_)


def constant_float(value: float) -> float:
    """Return what the planner keeps of a FLOAT that it computed: seven digits."""
    if not math.isfinite(value) or value == 0:
        return value
    return float(_SEVEN_DIGITS.create_decimal_from_float(value))


#: Java's ``MathContext.DECIMAL32``.
_SEVEN_DIGITS = decimal.Context(prec=7, rounding=decimal.ROUND_HALF_EVEN, Emin=-9999, Emax=9999)


def is_literal_type(type_: t.LogicalType) -> bool:
    """Whether values of the type can stand in a ``Literal``: scalars, no collections, rows or objects."""
    nested = t.VariantType | t.ArrayType | t.MapType | t.MultisetType | t.RowType | t.RawType | t.DescriptorType
    return not isinstance(type_, nested)


def _physical(value: Any, type_: t.LogicalType) -> Any:
    if value is None:
        return None
    match type_:
        case t.TimestampType(precision=precision) | t.TimestampLtzType(precision=precision):
            return int(value) // _NANOS_PER[timestamp_unit(precision)]
        case t.DecimalType(scale=scale):
            return decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-scale), context=_WIDE)
        case t.ApproximateType():
            # SQL's literals know no negative zero.
            return float(value) + 0.0
    return value


def _logical(scalar: pa.Scalar, type_: t.LogicalType) -> Any:
    match type_:
        case t.TimestampType(precision=precision) | t.TimestampLtzType(precision=precision):
            return scalar.value * _NANOS_PER[timestamp_unit(precision)]
        case t.DateType() | t.TimeType():
            return scalar.value
    return scalar.as_py()


_WIDE = decimal.Context(prec=77, rounding=decimal.ROUND_HALF_UP)
