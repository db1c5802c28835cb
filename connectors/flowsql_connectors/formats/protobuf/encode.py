"""Columns to messages of Protocol Buffers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import string_buffers, validity, values_and_validity
from flowsql_compute.kernels.wire import protobuf_encode as op
from flowsql_connectors.formats.format import MessageEncoder
from flowsql_connectors.formats.protobuf.places import (
    Place,
    is_repeated,
    java_type,
    missing_fields,
    places_of,
    required_fields,
)
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.record import record
from flowsql_core.types.logical import RowType

Int64s = npt.NDArray[np.int64]

#: Bytes that a value takes at most besides those of a text: its key, its length or number, those of the message around.
_MOST: Final = 40
_WIRE_VARINT, _WIRE_64, _WIRE_BYTES, _WIRE_32 = 0, 1, 2, 5


@record
class _Leaf:
    """Where the values of a leaf come from: ``path`` leads from the columns through rows, lists and maps."""

    path: tuple[int, ...]
    operation: int
    field: Any
    #: Texts that are NULL are the literal.
    in_list: bool


class ProtobufEncoder(MessageEncoder):
    """Writes messages of one type.

    Args:
        descriptor: of the type.
        row: the columns.
        null_literal: ``protobuf.write-null-string-literal``: texts for NULL in lists and maps.
    """

    def __init__(self, descriptor: Any, row: RowType, null_literal: str) -> None:
        self._null_literal = null_literal
        places = {member.name: place for place, member in enumerate(row.fields)}
        #: Fields that must be there, and the column of each, if there is one.
        self._required = [(own.name, places.get(own.name)) for own in required_fields(descriptor)]
        self._code: list[tuple[int, int, int, int, int, int, int]] = []
        self._leaves: list[_Leaf] = []
        self._levels = 1
        self._depth = self._deepest = 0
        self._message(places_of(descriptor, row), (), 0)
        self._emit(op.END)
        self._program = np.array(self._code, np.int64)

    def encode(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None = None) -> Any:
        """A message a row.

        Raises:
            ExecutionError: a row has no value for a field that must be there.
        """
        missing = [name for name, place in self._required if place is None or columns[place].null_count]
        if num_rows and missing:
            raise ExecutionError("protobuf-required-field", missing_fields(missing))
        arrays: dict[tuple[int, ...], Any] = {(index,): array for index, array in enumerate(columns)}
        slots: list[Int64s] = []
        valid: list[npt.NDArray[np.uint8]] = []
        parts: list[npt.NDArray[np.uint8]] = []
        base = np.zeros(len(self._leaves) + 1, np.int64)
        text_bytes = 0
        for number, leaf in enumerate(self._leaves):
            array = self._prepared(_array_at(arrays, leaf.path), leaf)
            values, text = _slots(array, leaf, text_bytes)
            mask = validity(array)
            marks = np.ones(len(values), np.uint8)
            if mask is not None:
                marks[: len(mask)] = mask
            slots.append(values)
            valid.append(marks)
            base[number + 1] = base[number] + len(values)
            if text is not None:
                parts.append(text)
                text_bytes += len(text)
        out = np.empty(int(base[-1]) * _MOST + text_bytes + 64, np.uint8)
        offsets = np.zeros(num_rows + 1, np.int64)
        begin = op.encode_protobuf(
            num_rows,
            self._program,
            base,
            np.concatenate([*slots, np.zeros(1, np.int64)]),
            np.concatenate([*valid, np.zeros(1, np.uint8)]),
            np.concatenate([*parts, np.zeros(1, np.uint8)]),
            np.zeros(self._levels, np.int64),
            np.zeros(self._levels, np.int64),
            np.zeros(self._deepest + 1, np.int64),
            out,
            offsets,
        )
        data = out[begin:].copy()
        wide = len(data) > 2**31 - 1
        bounds = (offsets - begin).astype(np.int64 if wide else np.int32)
        type_ = pa.large_binary() if wide else pa.binary()
        return pa.Array.from_buffers(type_, num_rows, [None, pa.py_buffer(bounds), pa.py_buffer(data)])

    def _emit(
        self,
        operation: int,
        leaf: int = -1,
        argument: int = 0,
        level: int = 0,
        key: int = -1,
        mode: int = 0,
        items: int = 0,
    ) -> int:
        self._code.append((operation, leaf, argument, level, key, mode, items))
        return len(self._code) - 1

    def _goes_on(self, at: int) -> None:
        operation, leaf, _, level, key, mode, items = self._code[at]
        self._code[at] = (operation, leaf, len(self._code), level, key, mode, items)

    def _leaf(self, path: tuple[int, ...], operation: int, own: Any, in_list: bool = False) -> int:
        self._leaves.append(_Leaf(path, operation, own, in_list))
        return len(self._leaves) - 1

    def _open(self, leaf: int = -1, level: int = 0, key: int = -1, mode: int = op.UNLESS_NULL) -> int:
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)
        return self._emit(op.OPEN, leaf, 0, level, key, mode)

    def _close(self, key: int) -> None:
        self._depth -= 1
        self._emit(op.CLOSE, key=key)

    def _message(self, places: list[Place], path: tuple[int, ...], level: int) -> None:
        """The fields of a message: the one with the greatest number is the last, and written first."""
        for at, place in sorted(enumerate(places), key=lambda pair: -pair[1].field.number):
            self._field(place, (*path, at), level)

    def _field(self, place: Place, path: tuple[int, ...], level: int) -> None:
        own = place.field
        if not is_repeated(own):
            presence = op.UNLESS_NULL if own.has_presence else op.UNLESS_ZERO
            self._value(place, own, path, level, presence, packed=False)
            return
        items = self._levels
        self._levels += 1
        begin = self._emit(op.LIST, self._leaf(path, op.LIST, own), 0, level, items=items)
        packed = not place.is_map and own.is_packed
        if packed:
            self._open()
        body = len(self._code)
        if place.is_map:
            self._open()
            key, value = place.below
            self._value(value, value.field, (*path, 1), items, op.ALWAYS, packed=False)
            self._value(key, key.field, (*path, 0), items, op.ALWAYS, packed=False)
            self._close(_key(own, _WIRE_BYTES))
        else:
            self._value(place, own, (*path, 0), items, op.ALWAYS, packed=packed)
        self._emit(op.NEXT, argument=body, level=items, items=items)
        if packed:
            self._close(_key(own, _WIRE_BYTES))
        self._goes_on(begin)

    def _value(self, place: Place, own: Any, path: tuple[int, ...], level: int, mode: int, packed: bool) -> None:
        if java_type(own) == "MESSAGE":
            key = _key(own, _WIRE_BYTES)
            begin = self._open(self._leaf(path, op.OPEN, own), level, key, mode)
            self._message(place.below, path, level)
            self._close(key)
            self._goes_on(begin)
            return
        operation, wire = _operation(own)
        leaf = self._leaf(path, operation, own, in_list=mode == op.ALWAYS)
        self._emit(operation, leaf, 0, level, -1 if packed else _key(own, wire), mode)

    def _prepared(self, array: Any, leaf: _Leaf) -> Any:
        if leaf.operation in (op.OPEN, op.LIST):
            return array
        kind = java_type(leaf.field)
        if kind == "ENUM" and pa.types.is_string(array.type):
            return _numbers(array, leaf.field.enum_type)
        if kind == "STRING" and leaf.in_list and array.null_count:
            return pc.fill_null(array, self._null_literal)
        return array


def _numbers(names: Any, enum: Any) -> Any:
    """The numbers of an enum's names."""
    encoded = names.dictionary_encode()
    # Python over the distinct names only.
    numbers = []
    for name in encoded.dictionary.to_pylist():
        if name not in enum.values_by_name:
            raise ExecutionError(
                "protobuf-no-such-enum",
                f"'{name}' is no value of enum {enum.full_name}.",
                hint="it has " + ", ".join(value.name for value in enum.values),
            )
        numbers.append(enum.values_by_name[name].number)
    return pa.array(numbers, pa.int32()).take(encoded.indices)


def _operation(own: Any) -> tuple[int, int]:
    match own.type:
        case own.TYPE_SINT32 | own.TYPE_SINT64:
            return op.PUT_ZIGZAG, _WIRE_VARINT
        case own.TYPE_FIXED32 | own.TYPE_SFIXED32 | own.TYPE_FLOAT:
            return op.PUT_32, _WIRE_32
        case own.TYPE_FIXED64 | own.TYPE_SFIXED64 | own.TYPE_DOUBLE:
            return op.PUT_64, _WIRE_64
        case own.TYPE_STRING | own.TYPE_BYTES:
            return op.PUT_BYTES, _WIRE_BYTES
    return op.PUT_VARINT, _WIRE_VARINT


def _key(own: Any, wire: int) -> int:
    number: int = own.number
    return number << 3 | wire


def _array_at(arrays: dict[tuple[int, ...], Any], path: tuple[int, ...]) -> Any:
    """The values at a path; those of lists are all values of all lists."""
    found = arrays.get(path)
    if found is None:
        above = _array_at(arrays, path[:-1])
        if pa.types.is_struct(above.type):
            found = above.field(path[-1])
        elif pa.types.is_map(above.type):
            found = above.keys if path[-1] == 0 else above.items
        else:
            found = above.values
        arrays[path] = found
    return found


def _slots(array: Any, leaf: _Leaf, text_at: int) -> tuple[Int64s, npt.NDArray[np.uint8] | None]:
    """The numbers of a leaf for the kernel, and the bytes of its texts, which will stand at ``text_at``."""
    if leaf.operation == op.OPEN:
        return np.zeros(len(array), np.int64), None
    if not len(array):
        return np.zeros(1, np.int64), None
    if leaf.operation == op.LIST:
        raw = np.frombuffer(array.buffers()[1], np.int32, array.offset + len(array) + 1)[array.offset :]
        return raw.astype(np.int64), None
    if leaf.operation == op.PUT_BYTES:
        offsets, data = string_buffers(array)
        wide = offsets.astype(np.int64)
        first, last = int(wide[0]), int(wide[-1])
        return (wide[:-1] - first + text_at) << 31 | np.diff(wide), data[first:last]
    values, _ = values_and_validity(array)
    match java_type(leaf.field):
        case "FLOAT":
            return np.ascontiguousarray(values).view(np.uint32).astype(np.int64), None
        case "DOUBLE":
            return np.ascontiguousarray(values).view(np.int64), None
        case "INT" if leaf.field.cpp_type == leaf.field.CPPTYPE_UINT32:
            # Java writes the 32 bits of a number below zero as one above.
            return values.astype(np.uint32).astype(np.int64), None
    return values.astype(np.int64), None
