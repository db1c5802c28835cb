"""Python values to columns, a whole column at a time: what a row-wise function returned, checked against its type.

Where every value is of the one class that fits, Arrow makes the column at once. Else each value is looked at: other
classes that say the same are taken (NumPy's numbers, ``bytearray``), anything else is an error that names the row.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import numbers
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import dtype_of, make_array, pack_validity
from flowsql_core.arrow import compute as pc
from flowsql_core.column_bytes import joined
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.python.values_in import row_class, tzinfo_of

#: A list of Python values as a column.
Writer = Callable[[Sequence[Any]], pa.Array]
_Fit = Callable[[Any], Any]

_MILLISECOND: Final = datetime.timedelta(milliseconds=1)
_NONE: Final = type(None)
_NUMBERS: Final[dict[type[t.LogicalType], type]] = {
    t.TinyIntType: int,
    t.SmallIntType: int,
    t.IntType: int,
    t.BigIntType: int,
    t.DoubleType: float,
}


class WrongValueError(Exception):
    """A value that is none of its type. ``row``: from 0, in the list that was written."""

    def __init__(self, row: int, value: Any, type_: t.LogicalType, reason: str = "") -> None:
        super().__init__(reason)
        self.row = row
        self.value = value
        self.type = type_
        self.reason = reason


class _DoesNotFitError(Exception):
    """One value does not fit; the text says more, where more is to say."""


def writer(type_: t.LogicalType, zone: str) -> Writer:
    """What makes columns of a type.

    Raises:
        NotSupportedYetError: values of the type have no Python form.
    """
    made = _writer(type_, zone)
    if type_.nullable:
        return made

    def write(values: Sequence[Any]) -> pa.Array:
        column = made(values)
        if column.null_count:
            raise WrongValueError(values.index(None), None, type_)
        return column

    return write


def _writer(type_: t.LogicalType, zone: str) -> Writer:
    arrow_type = to_arrow(type_) if not isinstance(type_, t.RawType | t.DescriptorType) else None
    match type_:
        case t.BooleanType():
            return _scalars(type_, arrow_type, {bool}, _boolean)
        case t.IntegerType():
            return _scalars(type_, arrow_type, {int}, _integer(type_.bits))
        case t.YearMonthIntervalType():
            return _scalars(type_, arrow_type, {int}, _integer(32))
        case t.ApproximateType():
            return _scalars(type_, arrow_type, {float, int}, _float)
        case t.CharacterType():
            return _scalars(type_, arrow_type, {str}, _text)
        case t.BinaryStringType():
            return _scalars(type_, arrow_type, {bytes}, _bytes)
        case t.DecimalType():
            return _scalars(type_, arrow_type, {decimal.Decimal}, _decimal(type_.precision, type_.scale))
        case t.DateType():
            return _scalars(type_, arrow_type, {datetime.date}, _date)
        case t.TimeType():
            return _counted(type_, arrow_type, pa.int32(), _milliseconds_of_day)
        case t.DayTimeIntervalType():
            return _counted(type_, arrow_type, pa.int64(), _milliseconds)
        case t.TimestampType(precision=precision):
            return _moments(type_, arrow_type, precision, _local)
        case t.TimestampLtzType(precision=precision):
            return _moments(type_, arrow_type, precision, _instant(zone))
        case t.ArrayType(element=element):
            return _lists(type_, arrow_type, writer(element, zone))
        case t.MapType(key=key, value=value):
            return _maps(type_, arrow_type, writer(key.as_nullable(False), zone), writer(value, zone))
        case t.MultisetType(element=element):
            count = writer(t.INT.as_nullable(False), zone)
            return _maps(type_, arrow_type, writer(element.as_nullable(False), zone), count)
        case t.RowType():
            return _rows(type_, arrow_type, [writer(field.type, zone) for field in type_.fields])
    raise NotSupportedYetError(f"{type_.as_nullable()} in Python functions")


# Scalars


def _scalars(type_: t.LogicalType, arrow_type: pa.DataType, fitting: set[type], fit: _Fit) -> Writer:
    plain = {*fitting, _NONE}
    number = _NUMBERS.get(type(type_))

    def write(values: Sequence[Any]) -> pa.Array:
        found = set(map(type, values))
        if found <= plain:
            try:
                if number is not None and found == {number}:
                    # NumPy reads numbers of one class in a third of the time.
                    return make_array(np.array(values, dtype=dtype_of(arrow_type)), None, arrow_type)
                return one_array(pa.array(values, arrow_type))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
                pass  # some value is too large, or says more digits than the type has: each is looked at
        return one_array(pa.array(_fitted(values, type_, fit), arrow_type))

    return write


def one_array(made: Any) -> pa.Array:
    """What Arrow made of values: it begins a new chunk where they are too many bytes; wide (``column_bytes``) then."""
    if not isinstance(made, pa.ChunkedArray):
        return made
    return joined(made.chunks) if made.num_chunks else made.combine_chunks()


def _fitted(values: Sequence[Any], type_: t.LogicalType, fit: _Fit) -> list[Any]:
    made: list[Any] = []
    for row, value in enumerate(values):
        if value is None:
            made.append(None)
            continue
        try:
            made.append(fit(value))
        except (_DoesNotFitError, TypeError, ValueError, OverflowError, decimal.InvalidOperation) as error:
            reason = str(error) if isinstance(error, _DoesNotFitError) else ""
            raise WrongValueError(row, value, type_, reason) from None
    return made


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_ | int):
        raise _DoesNotFitError
    return bool(value)


def _integer(bits: int) -> _Fit:
    end = 1 << (bits - 1)

    def fit(value: Any) -> int:
        # PyFlink takes a float for a whole number; what it would cut off is an error here.
        whole = isinstance(value, float | np.floating) and float(value).is_integer()
        made = int(value) if whole else operator.index(value)
        if not -end <= made < end:
            raise _DoesNotFitError("out of range")
        return made

    return fit


def _float(value: Any) -> float:
    if not isinstance(value, numbers.Real | decimal.Decimal):
        raise _DoesNotFitError
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _DoesNotFitError
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _DoesNotFitError("a text with a lone surrogate") from None
    return str(value)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _DoesNotFitError
    return bytes(value)


def _decimal(precision: int, scale: int) -> _Fit:
    unit = decimal.Decimal(1).scaleb(-scale)
    # Digits beyond the scale are rounded half to even, as PyFlink does.
    context = decimal.Context(prec=precision, rounding=decimal.ROUND_HALF_EVEN)

    def fit(value: Any) -> decimal.Decimal:
        if not isinstance(value, decimal.Decimal):
            value = decimal.Decimal(operator.index(value))
        if not value.is_finite():
            raise _DoesNotFitError
        try:
            made: decimal.Decimal = value.quantize(unit, context=context)
            return made
        except decimal.InvalidOperation:
            raise _DoesNotFitError("too many digits") from None

    return fit


def _date(value: Any) -> datetime.date:
    if isinstance(value, np.datetime64):
        value = value.astype("M8[D]").item()
    if not isinstance(value, datetime.date):
        raise _DoesNotFitError
    return value.date() if isinstance(value, datetime.datetime) else value


# Times, as counts


def _counted(type_: t.LogicalType, arrow_type: pa.DataType, counts: pa.DataType, fit: _Fit) -> Writer:
    def write(values: Sequence[Any]) -> pa.Array:
        return pc.cast(pa.array(_fitted(values, type_, fit), counts), arrow_type)

    return write


def _milliseconds_of_day(value: Any) -> int:
    if not isinstance(value, datetime.time):
        raise _DoesNotFitError
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def _milliseconds(value: Any) -> int:
    if isinstance(value, np.timedelta64):
        return int(value.astype("m8[ms]").astype(np.int64))
    if not isinstance(value, datetime.timedelta):
        raise _DoesNotFitError
    return value // _MILLISECOND


def _moments(type_: t.LogicalType, arrow_type: pa.DataType, precision: int, fit: _Fit) -> Writer:
    """Timestamps as microseconds, digits beyond the precision cut off."""
    kept = 10 ** (6 - min(precision, 6))
    micros = pa.timestamp("us", arrow_type.tz)
    local = arrow_type.tz is None

    def write(values: Sequence[Any]) -> pa.Array:
        plain = local and {datetime.datetime, _NONE}.issuperset(map(type, values))
        if not plain or any(value is not None and value.tzinfo is not None for value in values):
            values = _fitted(values, type_, fit)
        made = pa.array(values, micros)
        if kept > 1:
            counts = pc.cast(made, pa.int64())
            # Towards the past, also before 1970.
            whole = pc.subtract(counts, _floor_mod(counts, kept))
            made = pc.cast(whole, micros)
        return pc.cast(made, arrow_type, safe=False)

    return write


def _floor_mod(counts: pa.Array, unit: int) -> pa.Array:
    quotient = pc.divide(counts, unit)
    rest = pc.subtract(counts, pc.multiply(quotient, unit))
    return pc.if_else(pc.less(rest, 0), pc.add(rest, unit), rest)


def _datetime(value: Any) -> datetime.datetime:
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
    if not isinstance(value, datetime.datetime):
        raise _DoesNotFitError
    if type(value) is not datetime.datetime:  # pandas.Timestamp, which may be NaT
        if value != value:
            raise _DoesNotFitError
        return datetime.datetime(
            value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, value.tzinfo,
            fold=value.fold,
        )  # fmt: skip
    return value


def _local(value: Any) -> datetime.datetime:
    """The wall clock, whatever the zone says."""
    return _datetime(value).replace(tzinfo=None)


def _instant(zone: str) -> _Fit:
    where = tzinfo_of(zone)

    def fit(value: Any) -> datetime.datetime:
        moment = _datetime(value)
        return (moment.replace(tzinfo=where) if moment.tzinfo is None else moment).astimezone(datetime.UTC)

    return fit


# Nested


def _offsets(sizes: list[int]) -> Any:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _present(values: Sequence[Any]) -> Any:
    """Arrow's validity bitmap of a list of values."""
    return pack_validity(np.fromiter((value is not None for value in values), dtype=np.bool_, count=len(values)))


def _lists(type_: t.LogicalType, arrow_type: pa.DataType, element: Writer) -> Writer:
    def write(values: Sequence[Any]) -> pa.Array:
        sizes: list[int] = []
        flat: list[Any] = []
        for row, value in enumerate(values):
            if isinstance(value, np.ndarray):
                value = value.tolist()
            if value is not None and not isinstance(value, list | tuple):
                raise WrongValueError(row, value, type_)
            items = value or ()
            flat.extend(items)
            sizes.append(len(items))
        offsets = _offsets(sizes)
        child = _inner(element, flat, offsets, values, type_)
        buffers = [_present(values), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(arrow_type, len(values), buffers, children=[child])

    return write


def _inner(write: Writer, flat: list[Any], offsets: Any, values: Sequence[Any], type_: t.LogicalType) -> pa.Array:
    """The children of collections; a wrong one is told by the row that holds it."""
    try:
        return write(flat)
    except WrongValueError as error:
        row = int(np.searchsorted(offsets, error.row, side="right")) - 1
        raise WrongValueError(row, values[row], type_, _within(error)) from None


def _within(error: WrongValueError) -> str:
    if error.value is None:
        return "NULL in it"
    reason = f": {error.reason}" if error.reason else ""
    return f"{error.value!r} in it is no {error.type.as_nullable()}{reason}"


def _maps(type_: t.LogicalType, arrow_type: pa.DataType, key: Writer, item: Writer) -> Writer:
    def write(values: Sequence[Any]) -> pa.Array:
        sizes: list[int] = []
        keys: list[Any] = []
        items: list[Any] = []
        for row, value in enumerate(values):
            if value is not None and not isinstance(value, Mapping):
                raise WrongValueError(row, value, type_)
            held: Mapping[Any, Any] = value or {}
            keys.extend(held.keys())
            items.extend(held.values())
            sizes.append(len(held))
        offsets = _offsets(sizes)
        columns = [_inner(key, keys, offsets, values, type_), _inner(item, items, offsets, values, type_)]
        entries = pa.StructArray.from_arrays(columns, fields=[arrow_type.key_field, arrow_type.item_field])
        buffers = [_present(values), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(arrow_type, len(values), buffers, children=[entries])

    return write


def _rows(type_: t.RowType, arrow_type: pa.DataType, fields: Sequence[Writer]) -> Writer:
    names = [field.name for field in type_.fields]

    def write(values: Sequence[Any]) -> pa.Array:
        rows = [_row(row, value, names, type_) for row, value in enumerate(values)]
        held = [place for place, fitted in enumerate(rows) if fitted is not None]
        columns = []
        for index, write_field in enumerate(fields):
            try:
                columns.append(_field(write_field, index, rows, held))
            except WrongValueError as error:
                reason = f"field {names[index]}: {_within(error)}"
                raise WrongValueError(error.row, values[error.row], type_, reason) from None
        return pa.Array.from_buffers(arrow_type, len(values), [_present(values)], children=columns)

    return write


def _field(write: Writer, index: int, rows: Sequence[Any], held: list[int]) -> pa.Array:
    """One field of rows; of NULL rows nothing is written, so that a NOT NULL field is none of theirs."""
    try:
        made = write([rows[place][index] for place in held])
    except WrongValueError as error:
        raise WrongValueError(held[error.row], error.value, error.type, error.reason) from None
    if len(held) == len(rows):
        return made
    where = np.full(len(rows), -1, dtype=np.int64)
    where[held] = np.arange(len(held))
    return pc.take(made, pa.array(where, mask=where < 0), boundscheck=False)


def row_fields(value: Any, names: Sequence[str]) -> Any:
    """The values of a ``Row``, a mapping or an instance of a data class; anything else as it is."""
    if isinstance(value, row_class()):
        return value.get_fields_by_names(names) if value.has_names(names) else tuple(value)
    if isinstance(value, Mapping):
        return tuple(value.get(name) for name in names)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(getattr(value, name, None) for name in names)
    return value


def _row(row: int, value: Any, names: list[str], type_: t.RowType) -> Sequence[Any] | None:
    if value is None:
        return None
    value = row_fields(value, names)
    if not isinstance(value, list | tuple):
        raise WrongValueError(row, value, type_)
    if len(value) != len(names):
        raise WrongValueError(row, value, type_, f"{len(value)} fields instead of {len(names)}")
    return value
