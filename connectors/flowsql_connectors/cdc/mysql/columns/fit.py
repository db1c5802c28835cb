"""Arrays of the values of a column, out of the log or a query, in the type that is declared."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, values_and_validity
from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.eval.text.spellings import to_base64
from flowsql_compute.eval.time.calendar import utc_to_local
from flowsql_connectors.cdc.mysql.columns.column_types import AS_HEX
from flowsql_connectors.jdbc.arrays import arrived
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.types import logical as t

_DAY_US: Final = 86_400_000_000
_PER_SECOND: Final = 1_000_000


def fitted(array: Any, column: t.Column, zone: str, binary_as: str) -> Any:
    """An array in the type of a declared column that it fits.

    Args:
        zone: of the server, in which moments are shown as TIMESTAMP.
        binary_as: how bytes are spelled as texts.

    Raises:
        ExecutionError: a value has none in that type.
    """
    kinds, type_ = pa.types, array.type
    match column.type:
        case t.DecimalType(precision=precision, scale=scale) if kinds.is_decimal(type_):
            array = _rounded(array, precision, scale)
        case t.TimestampType() if kinds.is_timestamp(type_) and type_.tz is not None:
            values, valid = values_and_validity(array)
            array = make_array(utc_to_local(values, _PER_SECOND, zone), valid, pa.timestamp("us"))
        case t.TimeType() if kinds.is_duration(type_):
            array = _time(array, column)
        case t.CharacterType() if kinds.is_binary(type_):
            array = _hex(array) if binary_as == AS_HEX else to_base64(array)
    return arrived([array], (column,), whole_seconds=False)[0]


def _rounded(array: Any, precision: int, scale: int) -> Any:
    """Rounded half up, NULL where too large, as Flink makes decimals."""
    if (array.type.precision, array.type.scale) == (precision, scale):
        return array
    if array.type.scale > scale:
        array = pc.round(array, ndigits=scale, round_mode="half_towards_infinity")
    whole = array.type.precision - array.type.scale
    if whole > precision - scale:
        limit = pa.scalar(Decimal(10 ** (precision - scale)), array.type)
        fits = pc.less(pc.abs(array), limit)
        array = pc.if_else(fits, array, pa.scalar(None, array.type))
    return array.cast(pa.decimal128(precision, scale), safe=False)


def _time(array: Any, column: t.Column) -> Any:
    values, valid = values_and_validity(array)
    outside = (values < 0) | (values >= _DAY_US)
    if valid is not None:
        outside &= valid
    if outside.any():
        micros = int(values[int(np.argmax(outside))])
        hours, rest = divmod(abs(micros) // _PER_SECOND, 3600)
        shown = f"{'-' if micros < 0 else ''}{hours:02}:{rest // 60:02}:{rest % 60:02}"
        raise ExecutionError(
            "bad-database-value",
            f"The value {shown} of column '{column.name}' of the database is no TIME, which has less than 24 hours.",
            hint="a column declared as STRING holds it",
        )
    return make_array(values, valid, pa.time64("us"))


def _hex(array: Any) -> Any:
    return map_distinct(array, bytes.hex, pa.string())
