"""Records in Avro's binary encoding to columns."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, pack_validity, string_buffers, validity
from flowsql_compute.eval.nested.lists import Ranges, make_map
from flowsql_compute.eval.nested.map_order import as_hashed
from flowsql_compute.kernels.wire import avro_decode as op
from flowsql_compute.kernels.wire.varints import words_of_big_endian
from flowsql_connectors.formats.avro.resolved import DecodeProgram, Place
from flowsql_connectors.formats.avro.schema import AvroType, Enumeration, Fixed, Primitive
from flowsql_connectors.formats.columnar.ranges import texts
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    ArrayType,
    CharacterType,
    DateType,
    DecimalType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    TimestampLtzType,
    TimestampType,
    TimeType,
)

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

#: Digits of the fraction that each logical type keeps.
_DIGITS: Final = {"millis": 3, "micros": 6, "nanos": 9}
_UNITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
#: Of a range of bytes.
_LENGTH: Final = 0x7FFFFFFF
_REASONS: Final = {
    op.ENDS_EARLY: "its bytes do not hold what the schema says",
    op.NO_SUCH_BRANCH: "a branch of a union, or a symbol of an enum, is not there",
    op.REFUSED: "its value has no place in the column's type",
}


class BadRecordError(Exception):
    """A record that cannot be read: its number among those that were to be read, the column, and why."""

    def __init__(self, record_: int, column: str, reason: str) -> None:
        super().__init__(reason)
        self.record = record_
        self.column = column
        self.reason = reason


@record
class _Slots:
    """What the kernel wrote."""

    base: Int64s
    sizes: Int64s
    slots: Int64s
    valid: Bytes

    def values(self, leaf: int) -> Int64s:
        return self.slots[self.base[leaf] : self.base[leaf] + self.sizes[leaf]]

    def validity(self, leaf: int) -> npt.NDArray[np.bool_] | None:
        valid = self.valid[self.base[leaf] : self.base[leaf] + self.sizes[leaf]]
        return None if valid.all() else valid.view(np.bool_)


class RecordDecoder:
    """Runs one program.

    Args:
        program: of the writer's schema and the wanted columns.
        plain_millis: a ``long`` without a logical type is a time in milliseconds; else it has the column's unit.
    """

    def __init__(self, program: DecodeProgram, plain_millis: bool) -> None:
        self._program = program
        self._plain_millis = plain_millis

    def block(self, data: Bytes, count: int) -> tuple[Any, ...]:
        """``count`` records that follow each other.

        Raises:
            BadRecordError: one of them cannot be read, or bytes are left.
        """
        bounds = np.array([0]), np.array([len(data)])
        arrays, end = self._decode(data, count, *bounds, contiguous=True)
        if end != len(data):
            raise BadRecordError(count, "", "bytes are left behind the last record of a block")
        return arrays

    def each(self, data: Bytes, starts: Int64s, stops: Int64s) -> tuple[Any, ...]:
        """A record in each range of bytes.

        Raises:
            BadRecordError: one of them cannot be read.
        """
        if not len(starts):
            return tuple(pa.array([], to_arrow(place.type)) for place in self._program.places)
        return self._decode(data, len(starts), starts, stops, contiguous=False)[0]

    def _decode(
        self, data: Bytes, count: int, starts: Int64s, stops: Int64s, contiguous: bool
    ) -> tuple[tuple[Any, ...], int]:
        program = self._program
        sizes = np.full(program.leaves, count, np.int64)
        state = np.zeros(3, np.int64)
        left = np.zeros(program.depth + 1, np.int64)
        base = np.zeros(program.leaves, np.int64)

        def run(cursor: Int64s, slots: Int64s, valid: Bytes, fill: bool) -> None:
            items = np.zeros(program.leaves, np.int64)
            done = op.decode_avro(
                data, count, starts, stops, contiguous, program.code, program.jumps, base, cursor, items, left, fill,
                slots, valid, state,
            )  # fmt: skip
            if done < count:
                raise BadRecordError(done, program.names[state[2]], _REASONS[int(state[0])])

        nothing = np.zeros(0, np.int64), np.zeros(0, np.uint8)
        if program.lists:
            sizes = np.zeros(program.leaves, np.int64)
            run(sizes, *nothing, fill=False)
        base[1:] = np.cumsum(sizes)[:-1]
        total = int(sizes.sum())
        slots, valid = np.empty(total, np.int64), np.empty(total, np.uint8)
        run(np.zeros(program.leaves, np.int64), slots, valid, fill=True)
        made = _Slots(base, sizes, slots, valid)
        return tuple(self._array(place, made, data) for place in program.places), int(state[1])

    def _array(self, place: Place, made: _Slots, data: Bytes) -> Any:
        values, valid = made.values(place.leaf), made.validity(place.leaf)
        target = to_arrow(place.type)
        if place.default is not None:
            return pa.repeat(pa.scalar(place.default, target), len(values))
        match place.type:
            case RowType(fields=fields):
                children = [self._array(below, made, data) for below in place.below]
                mask = None if valid is None else pa.array(~valid)
                return pa.StructArray.from_arrays(children, [field.name for field in fields], mask=mask)
            case ArrayType():
                offsets = np.zeros(len(values) + 1, np.int32)
                offsets[1:] = values
                buffers = [pack_validity(valid), pa.py_buffer(offsets)]
                child = self._array(place.below[0], made, data)
                return pa.Array.from_buffers(target, len(values), buffers, children=[child])
            case MapType() | MultisetType():
                keys, items = (self._array(below, made, data) for below in place.below)
                sizes = np.diff(values, prepend=0)
                return as_hashed(make_map(keys, items, Ranges(values - sizes, sizes, valid), target))
        if place.of is None:
            return pa.nulls(len(values), target)
        return self._scalars(values, valid, place.type, place.of, data, place.name)

    def _scalars(
        self,
        values: Int64s,
        valid: npt.NDArray[np.bool_] | None,
        type_: LogicalType,
        of: AvroType,
        data: Bytes,
        name: str,
    ) -> Any:
        target = to_arrow(type_)
        if isinstance(of, Enumeration):
            places = pa.array(values, mask=None if valid is None else ~valid)
            return pa.array(of.symbols, target).take(places)
        if isinstance(type_, DecimalType):
            return _decimals(values, valid, type_, of, data, name)
        if isinstance(of, Fixed) or (isinstance(of, Primitive) and of.name in ("bytes", "string")):
            return texts(values, valid, data, target, isinstance(type_, CharacterType))
        assert isinstance(of, Primitive)
        numbers: npt.NDArray[Any] = values
        match of.name:
            case "boolean":
                numbers = values.astype(np.bool_)
            case "float":
                numbers = values.astype(np.uint32).view(np.float32)
            case "double":
                numbers = values.view(np.float64)
        match type_:
            case TimestampType() | TimestampLtzType():
                numbers = _rescaled(numbers, self._digits(of, target), _UNITS[target.unit])
            case TimeType():
                numbers = _rescaled(numbers, _logical_digits(of, 3), 3)
            case DateType():
                pass
        if pa.types.is_floating(target):
            numbers = numbers.astype(target.to_pandas_dtype())
        return make_array(numbers, valid, target)

    def _digits(self, of: Primitive, target: Any) -> int:
        return _logical_digits(of, 3 if self._plain_millis else _UNITS[target.unit])


def _logical_digits(of: Primitive, otherwise: int) -> int:
    return otherwise if of.logical is None else _DIGITS.get(of.logical.rpartition("-")[2], otherwise)


def _rescaled(values: npt.NDArray[Any], digits: int, wanted: int) -> npt.NDArray[Any]:
    """Times in another unit; what the wanted one does not hold is cut off."""
    if digits == wanted:
        return values
    rescaled: npt.NDArray[Any] = (
        values * 10 ** (wanted - digits) if wanted > digits else values // 10 ** (digits - wanted)
    )
    return rescaled


def decimals_of(array: Any, type_: DecimalType, of: AvroType, name: str) -> Any:
    """A binary column, each value the digits of a number as Avro has them, as decimals.

    Args:
        of: the schema that the numbers were written with.
        name: of the column, for errors.

    Raises:
        ExecutionError: a number does not fit the type.
    """
    offsets, data = string_buffers(array)
    starts = offsets.astype(np.int64)
    return _decimals(starts[:-1] << 31 | np.diff(starts), validity(array), type_, of, data, name)


def _decimals(
    ranges: Int64s, valid: npt.NDArray[np.bool_] | None, type_: DecimalType, of: AvroType, data: Bytes, name: str
) -> Any:
    empty = (ranges & _LENGTH) == 0
    if (empty if valid is None else empty & valid).any():
        raise ExecutionError("avro-type-mismatch", f"A number in field '{name}' has no bytes.")
    words = np.zeros((len(ranges), 2), np.int64)
    too_long = words_of_big_endian(data, np.ascontiguousarray(ranges), words)
    scale = of.scale if isinstance(of, Primitive | Fixed) and of.logical == "decimal" else type_.scale
    target = pa.decimal128(type_.precision, type_.scale)
    written = make_array(words, valid, pa.decimal128(38, scale))
    try:
        if too_long >= 0:
            raise pa.ArrowInvalid("more than 38 digits")
        return pc.cast(written, target)
    except pa.ArrowInvalid as error:
        raise ExecutionError(
            "avro-type-mismatch", f"A number in field '{name}' does not fit {type_.as_nullable()}: {error}"
        ) from error
