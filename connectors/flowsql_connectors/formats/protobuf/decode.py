"""Messages of Protocol Buffers to columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, pack_validity, string_buffers
from flowsql_compute.eval.nested.lists import Ranges, make_map
from flowsql_compute.eval.nested.map_order import as_hashed
from flowsql_compute.kernels.wire import protobuf_decode as op
from flowsql_connectors.formats.columnar.binary_messages import BadMessageError, BinaryMessages, MessageRows
from flowsql_connectors.formats.columnar.ranges import texts
from flowsql_connectors.formats.format import Columns
from flowsql_connectors.formats.protobuf.places import (
    Place,
    is_repeated,
    java_type,
    missing_fields,
    places_of,
    required_fields,
)
from flowsql_connectors.spi.counters import ROWS_SKIPPED, Lose
from flowsql_core.arrow import compute as pc
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import BYTES, CharacterType, LogicalType, RowType

Int64s = npt.NDArray[np.int64]

#: What Java calls a number that its enum does not know.
_UNRECOGNIZED: Final = "UNRECOGNIZED"


@dataclass(slots=True)
class _Leaves:
    """Where values of a place are kept. ``ends``: where lists end; -1 for a place that holds one value."""

    place: Place
    value: int
    ends: int = -1
    below: list[_Leaves] = field(default_factory=list)


class ProtobufDecoder(BinaryMessages):
    """Reads messages of one type.

    Args:
        descriptor: of the type.
        row: the wanted columns.
        read_defaults: ``protobuf.read-default-values``.
        ignore_errors: ``protobuf.ignore-parse-errors``.
        lose: takes the number of messages that are left out.
    """

    def __init__(self, descriptor: Any, row: RowType, read_defaults: bool, ignore_errors: bool, lose: Lose) -> None:
        self._read_defaults = read_defaults
        self._ignore_errors = ignore_errors
        self._lose = lose
        self._owners: list[int] = []
        self._lists: list[bool] = []
        self._fields: list[tuple[int, int, int, int, int, int]] = []
        self._nodes: list[tuple[int, int, int, int]] = []
        self._first_leaves: list[int] = []
        #: Fields of proto2 that each message must have, some of which nobody asks for.
        self._required = required_fields(descriptor)
        known = {member.name for member in row.fields}
        unasked = [Place(own.name, BYTES, own) for own in self._required if own.name not in known]
        leaves = self._node([*places_of(descriptor, row), *unasked], -1)[1]
        self._leaves = leaves[: len(row.fields)]
        by_name = {one.place.field.name: one for one in leaves}
        self._required_leaves = [by_name[own.name] for own in self._required]
        self._tables = (
            np.array(self._fields, np.int64).reshape(-1, 6),
            np.array(self._nodes, np.int64).reshape(-1, 4),
            np.array(self._first_leaves or [0], np.int64),
            np.array(self._lists, np.int64).reshape(-1, 1),
        )

    def _leaf(self, owner: int, is_list: bool = False) -> int:
        """``owner``: the list whose items a leaf belongs to, -1: the messages themselves."""
        self._owners.append(owner)
        self._lists.append(is_list)
        return len(self._owners) - 1

    def _node(self, places: list[Place], owner: int) -> tuple[int, list[_Leaves]]:
        """A message with these fields; its number, and where they are kept."""
        number = len(self._nodes)
        self._nodes.append((0, 0, 0, 0))
        made = []
        rows = []
        for place in places:
            leaves, node = self._place(place, owner)
            made.append(leaves)
            rows.append((place.field.number, _kind(place.field), leaves.value, leaves.ends, node, _oneof(place.field)))
        rows += _others_of_oneofs(places)
        first = len(self._fields)
        self._fields += rows
        initial = [leaf for leaves in made for leaf in _begun_with(leaves)]
        begin = len(self._first_leaves)
        self._first_leaves += initial
        self._nodes[number] = (first, len(self._fields), begin, len(self._first_leaves))
        return number, made

    def _place(self, place: Place, owner: int) -> tuple[_Leaves, int]:
        listed = self._leaf(owner, is_list=True) if is_repeated(place.field) else -1
        inner = owner if listed < 0 else listed
        made = _Leaves(place, self._leaf(inner), listed)
        node = -1
        if _kind(place.field) == op.MESSAGE:
            node, made.below = self._node(place.below, inner)
        return made, node

    def rows(self, messages: Any) -> MessageRows:
        """A row for each message that is not NULL; with ``ignore_errors`` also not for those that cannot be read."""
        numbers = None
        if messages.null_count:
            numbers = np.flatnonzero(np.asarray(pc.is_valid(messages)))
            messages = messages.drop_null()
        offsets, data = string_buffers(messages)
        bounds = offsets.astype(np.int64)
        starts, stops = bounds[:-1].copy(), bounds[1:].copy()
        while True:
            sizes, bad = self._run(data, starts, stops, None)
            reason = "its bytes are not those of a message."
            if not bad.any():
                counts = np.array([len(starts) if owner < 0 else sizes[owner] for owner in self._owners], np.int64)
                made = _Slots(counts)
                self._run(data, starts, stops, made)
                missing = self._missing(made, len(starts))
                bad = np.logical_or.reduce(missing, axis=0)
                lacking = np.flatnonzero(missing[:, int(np.argmax(bad))]) if bad.any() else ()
                reason = missing_fields(self._required[number].name for number in lacking)
            if not bad.any():
                arrays = tuple(self._array(leaves, made, data) for leaves in self._leaves)
                return MessageRows(Columns(arrays, len(starts)), numbers)
            first = int(np.argmax(bad))
            number = first if numbers is None else int(numbers[first])
            if not self._ignore_errors:
                raise BadMessageError(
                    number,
                    "bad-protobuf-message",
                    f"Failed to deserialize PB object: {reason}",
                    hint="'protobuf.ignore-parse-errors' = 'true' leaves such messages out",
                )
            self._lose(ROWS_SKIPPED, int(bad.sum()), partial("message {} of a batch".format, number + 1))
            numbers = np.flatnonzero(~bad) if numbers is None else numbers[~bad]
            starts, stops = starts[~bad], stops[~bad]

    def _missing(self, made: _Slots, count: int) -> npt.NDArray[np.bool_]:
        """Which of the required fields (rows) each message (column) lacks."""
        found = np.zeros((len(self._required), count), np.bool_)
        for row, leaves in zip(found, self._required_leaves, strict=True):
            there = made.of(leaves.value)[1]
            if there is not None:
                row[:] = ~there
        return found

    def _run(
        self, data: Any, starts: Int64s, stops: Int64s, made: _Slots | None
    ) -> tuple[Int64s, npt.NDArray[np.bool_]]:
        """How many items each list has, and which messages cannot be read; values go to ``made``."""
        found = made or _Slots(np.zeros(len(self._owners), np.int64))
        items = np.zeros(len(self._owners), np.int64)
        stack = np.zeros((4, op.DEEPEST), np.int64)
        bad = np.zeros(len(starts), np.uint8)
        op.decode_protobuf(
            data,
            starts,
            stops,
            *self._tables,
            found.base,
            items,
            made is not None,
            found.slots,
            found.valid,
            stack,
            bad,
        )
        return items, bad.view(np.bool_)

    def _array(self, leaves: _Leaves, made: _Slots, data: Any) -> Any:
        place = leaves.place
        if leaves.ends < 0:
            return self._values(leaves, place.field, place.type, made, data)
        ends, there = made.of(leaves.ends)
        sizes = np.diff(ends, prepend=0)
        valid = None if self._read_defaults or there is None else there
        target = to_arrow(place.type)
        if place.is_map:
            # An entry without a key or value has their defaults.
            keys, values = (
                _filled(self._values(below, below.place.field, below.place.type, made, data), below.place)
                for below in leaves.below
            )
            return as_hashed(make_map(keys, values, Ranges(ends - sizes, sizes, valid), target))
        element = place.type.element  # type: ignore[attr-defined]
        items = self._values(leaves, place.field, element, made, data)
        offsets = np.zeros(len(ends) + 1, np.int32)
        offsets[1:] = ends
        return pa.Array.from_buffers(target, len(ends), [pack_validity(valid), pa.py_buffer(offsets)], children=[items])

    def _values(self, leaves: _Leaves, own: Any, type_: LogicalType, made: _Slots, data: Any) -> Any:
        numbers, valid = made.of(leaves.value)
        if isinstance(type_, RowType):
            children = [self._array(below, made, data) for below in leaves.below]
            mask = None if valid is None or self._read_defaults else pa.array(~valid)
            return pa.StructArray.from_arrays(children, [one.name for one in type_.fields], mask=mask)
        array = _scalars(numbers, valid, own, type_, data)
        if self._read_defaults or not own.has_presence or _is_proto3(own.file):
            return _filled(array, Place("", type_, own))
        return array


class _Slots:
    """What the kernel writes; ``counts``: of values, by leaf."""

    def __init__(self, counts: Int64s) -> None:
        self.base = np.zeros(len(counts), np.int64)
        self.base[1:] = np.cumsum(counts)[:-1]
        self._counts = counts
        total = int(counts.sum())
        self.slots = np.zeros(total, np.int64)
        self.valid = np.zeros(total, np.uint8)

    def of(self, leaf: int) -> tuple[Int64s, npt.NDArray[np.bool_] | None]:
        """Values and validity of a leaf; None where all are valid."""
        part = slice(self.base[leaf], self.base[leaf] + self._counts[leaf])
        valid = self.valid[part]
        return self.slots[part], None if valid.all() else valid.view(np.bool_)


def _begun_with(leaves: _Leaves) -> list[int]:
    """The leaves of which each message has one."""
    if leaves.ends >= 0:
        return [leaves.ends]
    return [leaves.value, *(leaf for below in leaves.below for leaf in _begun_with(below))]


def _kind(own: Any) -> int:
    match own.type:
        case own.TYPE_SINT32 | own.TYPE_SINT64:
            return op.ZIGZAG
        case own.TYPE_FIXED32 | own.TYPE_SFIXED32 | own.TYPE_FLOAT:
            return op.FIXED_32
        case own.TYPE_FIXED64 | own.TYPE_SFIXED64 | own.TYPE_DOUBLE:
            return op.FIXED_64
        case own.TYPE_STRING | own.TYPE_BYTES:
            return op.BYTES
        case own.TYPE_MESSAGE:
            return op.MESSAGE
    return op.VARINT


def _oneof(own: Any) -> int:
    """The number of the oneof, from 1, that a field shares with others; 0: none."""
    group = own.containing_oneof
    return 0 if group is None or len(group.fields) < 2 else group.index + 1


def _others_of_oneofs(places: list[Place]) -> list[tuple[int, int, int, int, int, int]]:
    """Rows of the fields that nobody asks for and that take the place of one that is asked for."""
    known = {place.field.number for place in places}
    groups = {_oneof(place.field): place.field.containing_oneof for place in places if _oneof(place.field)}
    return [
        (own.number, _kind(own), -1, -1, -1, number)
        for number, group in groups.items()
        for own in group.fields
        if own.number not in known
    ]


@lru_cache(maxsize=256)
def _is_proto3(file: Any) -> bool:
    """Whether a file is of proto3, whose fields always have a value."""
    from google.protobuf import descriptor_pb2

    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    return bool(proto.syntax == "proto3")


def _filled(array: Any, place: Place) -> Any:
    """The array with the field's default for NULL."""
    if not array.null_count or isinstance(place.type, RowType):
        return array
    default = place.field.default_value
    if java_type(place.field) == "ENUM" and isinstance(place.type, CharacterType):
        default = place.field.enum_type.values_by_number[default].name
    return pc.fill_null(array, pa.scalar(default, array.type))


def _scalars(numbers: Int64s, valid: npt.NDArray[np.bool_] | None, own: Any, type_: LogicalType, data: Any) -> Any:
    target = to_arrow(type_)
    match java_type(own):
        case "STRING" | "BYTE_STRING":
            return texts(numbers, valid, data, target, isinstance(type_, CharacterType))
        case "FLOAT":
            return make_array(numbers.astype(np.uint32).view(np.float32), valid, target)
        case "DOUBLE":
            return make_array(numbers.view(np.float64), valid, target)
        case "BOOLEAN":
            return make_array(numbers != 0, valid, target)
        case "ENUM":
            return _enums(numbers.astype(np.int32), valid, own.enum_type, target)
    return make_array(numbers.astype(target.to_pandas_dtype()), valid, target)


def _enums(numbers: Any, valid: npt.NDArray[np.bool_] | None, enum: Any, target: Any) -> Any:
    known = enum.values_by_number
    if enum.is_closed:
        # A number that such an enum does not know is no value of the field.
        meant = np.isin(numbers, np.array(list(known), np.int32))
        valid = meant if valid is None else meant & valid
    if not pa.types.is_string(target):
        return make_array(numbers.astype(target.to_pandas_dtype()), valid, target)
    different, places = np.unique(numbers, return_inverse=True)
    names = [known[number].name if number in known else _UNRECOGNIZED for number in different.tolist()]
    return pa.array(names, target).take(pa.array(places, mask=None if valid is None else ~valid))
