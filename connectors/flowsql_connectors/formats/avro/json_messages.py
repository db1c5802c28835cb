"""Messages, each of which is one record in Avro's JSON encoding: a value that may be NULL stands under its type's name.

``{"id":{"int":1},"name":null}``: so the rows are read and written as those of format json whose columns are rows of one
field. Source: Apache Avro specification 1.12, "JSON Encoding".
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import make_array, string_buffers, values_and_validity
from flowsql_connectors.formats.avro.decode import decimals_of
from flowsql_connectors.formats.avro.derived import message_schema
from flowsql_connectors.formats.avro.json_bytes import bytes_of_decimals, bytes_of_texts, texts_of_bytes
from flowsql_connectors.formats.avro.messages import not_null
from flowsql_connectors.formats.avro.schema import ArrayOf, AvroType, MapOf, Primitive, Record, Union
from flowsql_connectors.formats.columnar.binary_messages import BadMessageError, BinaryMessages, MessageRows
from flowsql_connectors.formats.format import (
    Columns,
    DecodeContext,
    MessageEncoder,
)
from flowsql_connectors.formats.jackson.tokens import NumberText
from flowsql_connectors.formats.json import JsonFormat
from flowsql_connectors.formats.json_decode import BadLineError, JsonLines
from flowsql_connectors.formats.json_encode import JsonEncoder
from flowsql_connectors.formats.json_shape import JsonShape
from flowsql_connectors.formats.json_values import JsonConverter, json_text
from flowsql_connectors.formats.text_values import TextDialect
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import InternalError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    ArrayType,
    BooleanType,
    CharacterType,
    Column,
    DecimalType,
    DoubleType,
    Field,
    FloatType,
    IntegerType,
    LogicalType,
    MapType,
    MultisetType,
    RowType,
    Schema,
)

_JSON = JsonFormat(
    fail_on_missing=True,
    ignore_parse_errors=False,
    dialect=TextDialect.JSON_SQL,
    plain_decimals=False,
    ignore_nulls=False,
    prefix="avro",
)
#: Bytes are texts, a character a byte.
_PLAIN = {
    "boolean": BOOLEAN, "int": INT, "long": BIGINT, "float": FLOAT, "double": DOUBLE, "string": STRING, "bytes": STRING,
}  # fmt: skip

#: Of a millisecond.
_MICROS: Final = 1000


class _Shape:
    """The columns of a table as they are, and as they stand in the messages."""

    def __init__(self, columns: Schema, legacy: bool) -> None:
        schema = message_schema(columns, legacy)
        assert isinstance(schema, Record)
        self.columns = columns
        self.schemas = [field.type for field in schema.fields]
        named = zip(columns, self.schemas, strict=True)
        self.stored = tuple(Column(column.name, _stored(schema)) for column, schema in named)


class _Exact(JsonConverter):
    """Converts values of the kinds that a schema says: format json makes texts of numbers, and numbers of texts."""

    def scalar(self, value: Any, type_: LogicalType) -> Any:
        """As in the format json, for values of the right kind alone."""
        is_number = isinstance(value, NumberText)
        match type_:
            case CharacterType():
                fits = isinstance(value, str) and not is_number
            case BooleanType():
                fits = isinstance(value, bool)
            case IntegerType() | FloatType() | DoubleType():
                fits = is_number
            case _:
                fits = True
        if not fits:
            raise ValueError(f"{json_text(value)} is no {type_}")
        return super().scalar(value, type_)


class _Lines(JsonLines):
    """Reads texts that are in memory."""

    def __init__(self, stored: Schema) -> None:
        super().__init__(_JSON, stored, tells_bad_rows=True)
        self._converter = _Exact(_JSON.dialect, ignore=False, fail_on_missing=True)
        self._shape = JsonShape(stored, complete=True, exact=True)

    def rows(self, data: bytes) -> Columns:
        """The rows of lines."""
        return self._decode(data)


class AvroJsonDecoder(BinaryMessages):
    """Reads records of the schema that Flink derives from the columns."""

    def __init__(self, context: DecodeContext, legacy: bool) -> None:
        self._shape = _Shape(context.columns, legacy)
        self._projection = context.projection
        self._lines = _Lines(self._shape.stored)

    def rows(self, messages: Any) -> MessageRows:
        """A row for each message that is not NULL."""
        present, numbers = not_null(messages)
        count = len(present)
        # Line ends are blanks in JSON: those within a message would make lines of it.
        lines = pc.replace_substring(present, b"\n", b" ")
        odd = ~np.asarray(pc.starts_with(pc.ascii_ltrim_whitespace(lines.view(pa.string())), "{"))
        try:
            if odd.any():
                raise BadLineError(int(np.argmax(odd)), "it is no object", b"")
            columns = self._lines.rows(_joined(lines)) if count else None
        except BadLineError as bad:
            number = bad.line if numbers is None else int(numbers[bad.line])
            raise BadMessageError(
                number, "bad-avro-record", f"Failed to deserialize Avro record: {bad.reason}."
            ) from bad
        if columns is None:
            nothing = tuple(pa.array([], to_arrow(self._shape.columns[index].type)) for index in self._projection)
            return MessageRows(Columns(nothing, 0), numbers)
        if columns.num_rows != count:
            raise BadMessageError(
                0, "bad-avro-record", "Failed to deserialize Avro record: a message of the batch is not one object."
            )
        self._check_nulls(columns.arrays, numbers)
        arrays = tuple(
            _unwrapped(
                columns.arrays[index],
                self._shape.schemas[index],
                self._shape.columns[index].type,
                self._shape.columns[index].name,
            )
            for index in self._projection
        )
        return MessageRows(Columns(arrays, count), numbers)

    def _check_nulls(self, arrays: tuple[Any, ...], numbers: npt.NDArray[np.int64] | None) -> None:
        for array, schema, column in zip(arrays, self._shape.schemas, self._shape.columns, strict=True):
            if array.null_count and not isinstance(schema, Union):
                row = int(np.argmax(np.asarray(pc.is_null(array))))
                raise BadMessageError(
                    row if numbers is None else int(numbers[row]),
                    "bad-avro-record",
                    f"Failed to deserialize Avro record: field '{column.name}' is null, expected is {schema.shown}.",
                )


class AvroJsonEncoder(MessageEncoder):
    """Writes records of the schema that Flink derives from the columns.

    Messages but the first of an encoder begin with a line end: Flink's writer of JSON puts one between values.
    """

    def __init__(self, columns: Schema, legacy: bool) -> None:
        self._shape = _Shape(columns, legacy)
        self._objects = JsonEncoder(_JSON, self._shape.stored)
        self._begun = False

    def encode(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None = None) -> Any:
        """A record a row."""
        named = zip(columns, self._shape.schemas, strict=True)
        texts = self._objects.objects(tuple(_wrapped(array, schema) for array, schema in named), num_rows)
        between = np.ones(num_rows, np.int8)
        if num_rows and not self._begun:
            between[0] = 0
            self._begun = True
        heads = pa.array(["", "\n"]).take(pa.array(between))
        return pc.binary_join_element_wise(heads, texts, "").cast(pa.binary())


def _joined(lines: Any) -> bytes:
    """The bytes of texts, a line end behind each."""
    offsets, data = string_buffers(pc.binary_join_element_wise(lines, b"\n", b""))
    return data[offsets[0] : offsets[-1]].tobytes()


def _branch(schema: AvroType) -> str:
    match schema:
        case Primitive(name=name) | Record(name=name):
            return name
        case ArrayOf():
            return "array"
    return "map"


def _other(schema: Union) -> AvroType:
    return next(branch for branch in schema.branches if branch != Primitive("null"))


def _stored(schema: AvroType) -> LogicalType:
    """The type of a column of format json that holds values of a schema."""
    match schema:
        case Union():
            other = _other(schema)
            return RowType(fields=(Field(_branch(other), _stored(other)),))
        case Record(fields=fields):
            return RowType(fields=tuple(Field(field.name, _stored(field.type)) for field in fields))
        case ArrayOf(items=items):
            return ArrayType(element=_stored(items))
        case MapOf(values=values):
            return MapType(key=STRING.as_nullable(False), value=_stored(values))
        case Primitive(name=name) if name in _PLAIN:
            return _PLAIN[name]
    raise InternalError(f"a derived schema has {schema.shown}")


def _unwrapped(array: Any, schema: AvroType, type_: LogicalType, name: str) -> Any:
    """A column of the table of what was read."""
    if isinstance(schema, Union):
        return _unwrapped(pc.struct_field(array, [0]), _other(schema), type_, name)
    target = to_arrow(type_)
    match schema, type_:
        case Primitive(name="bytes"), DecimalType():
            return decimals_of(bytes_of_texts(array), type_, schema, name)
        case Primitive(name="bytes"), _:
            return bytes_of_texts(array)
        case Record(fields=own), RowType(fields=fields):
            named = zip(own, fields, strict=True)
            children = [
                _unwrapped(array.field(at), avro.type, field.type, f"{name}.{field.name}")
                for at, (avro, field) in enumerate(named)
            ]
            return pa.StructArray.from_arrays(children, [field.name for field in fields], mask=pc.is_null(array))
        case ArrayOf(items=items), ArrayType(element=element):
            return _lists(array, target, _unwrapped(array.values, items, element, name))
        case MapOf(values=values), MapType(value=value):
            return _lists(array, target, _entries(target, array.keys, _unwrapped(array.items, values, value, name)))
        case MapOf(values=values), MultisetType():
            return _lists(array, target, _entries(target, array.keys, _unwrapped(array.items, values, INT, name)))
    if array.type == target:
        return array
    if pa.types.is_timestamp(target):
        return pc.cast(array.view(pa.timestamp("ms", target.tz)), target)
    if pa.types.is_date(target) or pa.types.is_time(target):
        return array.view(target)
    return pc.cast(array, target, safe=False)


def _wrapped(array: Any, schema: AvroType) -> Any:
    """What is written of a column of the table."""
    if isinstance(schema, Union):
        other = _other(schema)
        return pa.StructArray.from_arrays([_wrapped(array, other)], [_branch(other)], mask=pc.is_null(array))
    target = to_arrow(_stored(schema))
    match schema:
        case Record(fields=own):
            children = [_wrapped(array.field(at), field.type) for at, field in enumerate(own)]
            return pa.StructArray.from_arrays(children, [field.name for field in own], mask=pc.is_null(array))
        case ArrayOf(items=items):
            return _lists(array, target, _wrapped(array.values, items))
        case MapOf(values=values):
            return _lists(array, target, _entries(target, array.keys, _wrapped(array.items, values)))
    if schema == Primitive("bytes"):
        return texts_of_bytes(array)
    if pa.types.is_decimal(array.type):
        return texts_of_bytes(bytes_of_decimals(array))
    if pa.types.is_timestamp(array.type) and array.type.unit == "us":
        # Arrow's own cast cuts towards zero, and moments before 1970 are cut to the earlier millisecond.
        micros, valid = values_and_validity(array)
        return make_array(micros // _MICROS, valid, target)
    if pa.types.is_timestamp(array.type):
        return array.view(target)
    if pa.types.is_date(array.type) or pa.types.is_time(array.type):
        return array.view(target)
    return pc.cast(array, target)


def _entries(target: Any, keys: Any, items: Any) -> Any:
    return pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])


def _lists(array: Any, target: Any, values: Any) -> Any:
    return pa.Array.from_buffers(target, len(array), array.buffers()[:2], offset=array.offset, children=[values])
