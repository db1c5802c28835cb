"""Columns to records in Avro's binary encoding."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import string_buffers, validity, values_and_validity
from flowsql_compute.kernels.wire import avro_encode as op
from flowsql_connectors.formats.avro.generic import UnionType, kept_fields
from flowsql_connectors.formats.avro.schema import (
    ArrayOf,
    AvroType,
    Enumeration,
    Fixed,
    MapOf,
    Primitive,
    Record,
    Union,
)
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.record import record
from flowsql_core.types.logical import (
    INT,
    ArrayType,
    BinaryStringType,
    BooleanType,
    CharacterType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    TimestampLtzType,
    TimestampType,
    TimeType,
)

Int64s = npt.NDArray[np.int64]

#: Bytes that a value takes at most besides those of a text: its branch, its length or number, the end of a list.
_MOST: Final = 24
_UNITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_DIGITS: Final = {"millis": 3, "micros": 6, "nanos": 9}


@record
class EncodedRows:
    """Rows as bytes: row i is ``data[offsets[i]:offsets[i + 1]]``, offsets (n + 1,)."""

    data: npt.NDArray[np.uint8]
    offsets: Int64s

    def messages(self) -> Any:
        """A binary column, one value a row."""
        wide = self.offsets[-1] > 2**31 - 1
        offsets = self.offsets if wide else self.offsets.astype(np.int32)
        type_ = pa.large_binary() if wide else pa.binary()
        count = len(self.offsets) - 1
        return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(offsets), pa.py_buffer(self.data)])


@record
class _Leaf:
    """Where the values of a leaf come from: ``path`` leads from the root through rows, lists and maps."""

    path: tuple[int, ...]
    operation: int
    #: Of times: the digits that are written.
    digits: int | None = None
    #: Of an enum, whose places are written: what it is called, and its words.
    enum: Enumeration | None = None
    name: str = ""
    #: Of a branch: whether it is null's.
    null_branch: bool = False
    #: Of bytes of a fixed length: how many.
    size: int = 0


class RecordEncoder:
    """Writes rows of one type in one schema.

    Args:
        schema: a record, or a union of null and one.
        row: the columns, of which the schema has the fields.
        generic: the columns are those of ``generic.columns_of_schema``: unions are written, and fixed bytes.

    Raises:
        BindError: a type of the schema is not written as its column's.
    """

    def __init__(self, schema: AvroType, row: RowType, generic: bool = False) -> None:
        self._generic = generic
        self._code: list[tuple[int, int, int, int, int, int]] = []
        self._leaves: list[_Leaf] = []
        self._levels = 1
        self._row = row
        self._write(schema, row.as_nullable(False), (), 0, "")
        self._emit(op.PUT_END)
        self._program = np.array(self._code, np.int64)

    def encode(self, columns: tuple[Any, ...], num_rows: int) -> EncodedRows:
        """The rows of a batch.

        Raises:
            ExecutionError: a text is no word of its enum.
        """
        slots: list[Int64s] = []
        valid: list[npt.NDArray[np.uint8]] = []
        texts: list[npt.NDArray[np.uint8]] = []
        base = np.zeros(len(self._leaves) + 1, np.int64)
        arrays: dict[tuple[int, ...], Any] = {(index,): array for index, array in enumerate(columns)}
        text_bytes = 0
        for number, leaf in enumerate(self._leaves):
            array = _array_at(arrays, leaf.path) if leaf.path else None
            values, text = _slots(array, leaf, num_rows, text_bytes)
            slots.append(values)
            mask = None if array is None else validity(array)
            if leaf.operation == op.PUT_BRANCH:
                mask = _has_branch(arrays, leaf)
            marks = np.ones(len(values), np.uint8)
            if mask is not None:
                marks[: len(mask)] = mask
            valid.append(marks)
            base[number + 1] = base[number] + len(values)
            if text is not None:
                texts.append(text)
                text_bytes += len(text)
        out = np.empty(int(base[-1]) * _MOST + num_rows * len(self._code) + text_bytes + 64, np.uint8)
        offsets = np.zeros(num_rows + 1, np.int64)
        levels = np.zeros(self._levels, np.int64)
        size = op.encode_avro(
            num_rows,
            self._program,
            base,
            np.concatenate(slots) if slots else np.zeros(0, np.int64),
            np.concatenate(valid) if valid else np.zeros(0, np.uint8),
            np.concatenate(texts) if texts else np.zeros(0, np.uint8),
            levels,
            levels.copy(),
            out,
            offsets,
        )
        if size < 0:
            operation = self._code[-1 - size]
            raise _no_word(self._leaves[operation[1]], arrays, int(levels[operation[3]]))
        return EncodedRows(out[:size].copy(), offsets)

    def _emit(
        self, operation: int, leaf: int = 0, argument: int = 0, level: int = 0, null: int = -1, items: int = 0
    ) -> int:
        self._code.append((operation, leaf, argument, level, null, items))
        return len(self._code) - 1

    def _leaf(self, path: tuple[int, ...], operation: int, digits: int | None = None) -> int:
        return self._add(_Leaf(path, operation, digits))

    def _add(self, leaf: _Leaf) -> int:
        self._leaves.append(leaf)
        return len(self._leaves) - 1

    def _goes_to(self, at: int) -> None:
        operation, leaf, _, level, null, items = self._code[at]
        self._code[at] = (operation, leaf, len(self._code), level, null, items)

    def _write(self, schema: AvroType, type_: LogicalType, path: tuple[int, ...], level: int, name: str) -> None:
        null = -1
        if isinstance(schema, Union):
            if isinstance(type_, UnionType):
                self._branches(schema, type_, path, level, name)
                return
            others = [branch for branch in schema.branches if branch != Primitive("null")]
            if schema.null is None or len(others) != 1:
                raise _unfit(schema, type_, name)
            null, schema = schema.null, others[0]
        match schema, type_:
            case Fixed(size=size), BinaryStringType() | DecimalType() if self._generic:
                leaf = self._add(_Leaf(path, op.PUT_FIXED, size=size))
                self._emit(op.PUT_FIXED, leaf, 0, level, null)
            case Record(), RowType():
                self._record(schema, type_, path, level, null, name)
            case ArrayOf(items=items), ArrayType(element=element):
                self._list(path, level, null, [(items, element)], name)
            case MapOf(values=values), MapType(value=value):
                key = Primitive("string"), type_.key.as_nullable(False)
                self._list(path, level, null, [key, (values, value)], name)
            case MapOf(values=values), MultisetType(element=element):
                key = Primitive("string"), element.as_nullable(False)
                self._list(path, level, null, [key, (values, INT)], name)
            case Primitive(), _:
                operation, argument = _operation(schema, type_, name)
                digits = _DIGITS.get(schema.logical.rpartition("-")[2], 3) if schema.logical else None
                self._emit(operation, self._leaf(path, operation, digits), argument, level, null)
            case Enumeration(), CharacterType():
                leaf = self._add(_Leaf(path, op.PUT_ENUM, enum=schema, name=name))
                self._emit(op.PUT_ENUM, leaf, 0, level, null)
            case _:
                raise _unfit(schema, type_, name)

    def _branches(self, schema: Union, type_: UnionType, path: tuple[int, ...], level: int, name: str) -> None:
        member = 0
        for number, branch in enumerate(schema.branches):
            is_null = branch == Primitive("null")
            of = path if is_null else (*path, member)
            begin = self._emit(
                op.PUT_BRANCH, self._add(_Leaf(of, op.PUT_BRANCH, null_branch=is_null)), 0, level, items=number
            )
            if not is_null:
                self._write(branch, type_.fields[member].type, of, level, name)
                member += 1
            self._goes_to(begin)

    def _record(self, schema: Record, row: RowType, path: tuple[int, ...], level: int, null: int, name: str) -> None:
        begin = None
        if null >= 0:
            begin = self._emit(op.PUT_RECORD, self._leaf(path, op.PUT_RECORD), 0, level, null)
        prefix = f"{name}." if name else ""
        fields = kept_fields(schema) if self._generic else schema.fields
        for at, (field, member) in enumerate(zip(fields, row.fields, strict=True)):
            self._write(field.type, member.type, (*path, at), level, prefix + field.name)
        if begin is not None:
            self._goes_to(begin)

    def _list(
        self, path: tuple[int, ...], level: int, null: int, parts: list[tuple[AvroType, LogicalType]], name: str
    ) -> None:
        items = self._levels
        self._levels += 1
        begin = self._emit(op.PUT_LIST, self._leaf(path, op.PUT_LIST), 0, level, null, items)
        body = len(self._code)
        for at, (schema, type_) in enumerate(parts):
            self._write(schema, type_, (*path, at), items, name)
        self._emit(op.PUT_NEXT, 0, body, items)
        self._goes_to(begin)


def _operation(schema: Primitive, type_: LogicalType, name: str) -> tuple[int, int]:
    match schema.name, type_:
        case "boolean", BooleanType():
            return op.PUT_BOOLEAN, 0
        case "int", IntegerType() | DateType() | TimeType():
            # A wider column than the schema's could hold what the schema does not.
            if not isinstance(type_, IntegerType) or type_.bits <= 32:
                return op.PUT_INTEGER, 0
        case "long", IntegerType() | TimestampType() | TimestampLtzType():
            return op.PUT_INTEGER, 0
        case "float", FloatType():
            return op.PUT_FLOAT, 4
        case "double", DoubleType():
            return op.PUT_DOUBLE, 8
        case "string", CharacterType():
            return op.PUT_BYTES, 0
        case "bytes", BinaryStringType():
            return op.PUT_BYTES, 0
        case "bytes", DecimalType(scale=scale):
            if schema.logical == "decimal" and schema.scale == scale:
                return op.PUT_DECIMAL, 0
    raise _unfit(schema, type_, name)


def _unfit(schema: AvroType, type_: LogicalType, name: str) -> BindError:
    where = f" in field '{name}'" if name else ""
    return BindError(
        "avro-schema-mismatch", f"{type_.as_nullable()} cannot be written as {schema.shown}{where} of the schema"
    )


def _no_word(leaf: _Leaf, arrays: dict[tuple[int, ...], Any], place: int) -> ExecutionError:
    assert leaf.enum is not None
    word = _array_at(arrays, leaf.path)[place].as_py()
    return ExecutionError(
        "avro-type-mismatch",
        f"'{word}' in field '{leaf.name}' is no symbol of {leaf.enum.shown}, which has {', '.join(leaf.enum.symbols)}.",
    )


def _has_branch(arrays: dict[tuple[int, ...], Any], leaf: _Leaf) -> npt.NDArray[np.bool_]:
    """Which values of a union are of a branch; members of a union that is NULL need not be NULL themselves."""
    union = _array_at(arrays, leaf.path if leaf.null_branch else leaf.path[:-1])
    there = np.asarray(union.is_valid())
    return ~there if leaf.null_branch else there & np.asarray(_array_at(arrays, leaf.path).is_valid())


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


def _slots(array: Any, leaf: _Leaf, num_rows: int, text_at: int) -> tuple[Int64s, npt.NDArray[np.uint8] | None]:
    """The numbers of a leaf for the kernel, and the bytes of its texts, which will stand at ``text_at``."""
    if leaf.operation in (op.PUT_RECORD, op.PUT_BRANCH):
        return np.zeros(num_rows if array is None else len(array), np.int64), None
    if not len(array):
        # The one number is where the items of no list end.
        return np.zeros(1, np.int64), None
    match leaf.operation:
        case op.PUT_LIST:
            raw = np.frombuffer(array.buffers()[1], np.int32, array.offset + len(array) + 1)[array.offset :]
            return raw.astype(np.int64), None
        case op.PUT_FIXED if pa.types.is_decimal(array.type):
            digits = np.frombuffer(array.buffers()[1], np.uint8)[16 * array.offset : 16 * (array.offset + len(array))]
            starts = np.arange(len(array), dtype=np.int64) * leaf.size + text_at
            return starts << 31 | leaf.size, digits.reshape(-1, 16)[:, leaf.size - 1 :: -1].ravel()
        case op.PUT_BYTES | op.PUT_FIXED:
            offsets, data = string_buffers(array)
            wide = offsets.astype(np.int64)
            first, last = int(wide[0]), int(wide[-1])
            return (wide[:-1] - first + text_at) << 31 | np.diff(wide), data[first:last]
    if leaf.enum is not None:
        words = pa.array(leaf.enum.symbols, array.type)
        array = pc.fill_null(pc.index_in(array, words), -1)
    values, _ = values_and_validity(array)
    match leaf.operation:
        case op.PUT_DECIMAL:
            words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
            return words, None
        case op.PUT_FLOAT:
            return np.ascontiguousarray(values).view(np.uint32).astype(np.int64), None
        case op.PUT_DOUBLE:
            return np.ascontiguousarray(values).view(np.int64), None
    numbers = values.astype(np.int64)
    if leaf.digits is not None and pa.types.is_timestamp(array.type):
        kept = _UNITS[array.type.unit]
        if kept > leaf.digits:
            numbers = numbers // 10 ** (kept - leaf.digits)
        elif kept < leaf.digits:
            numbers = numbers * 10 ** (leaf.digits - kept)
    return numbers, None
