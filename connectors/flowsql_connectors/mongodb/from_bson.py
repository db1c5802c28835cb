"""BSON values to columns, by the rules of Flink's converter: numbers, texts and moments become one another."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, NoReturn

import numpy as np
import pyarrow as pa
from bson import Binary, Code, DBRef, Decimal128, Int64, ObjectId, Regex, Timestamp, json_util
from bson.binary import OLD_UUID_SUBTYPE, UUID_SUBTYPE, UuidRepresentation
from bson.datetime_ms import DatetimeMS

from flowsql_compute.eval.text.java_numbers import java_double
from flowsql_connectors.formats.text_values import decimal_value
from flowsql_core.errors import ExecutionError
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

_DOUBLE: Final = re.compile(r"\s*[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?\s*")
_SPECIAL: Final = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
_FLAGS: Final = (("i", re.I), ("m", re.M), ("s", re.S), ("x", re.X))
#: Python types of values that Arrow takes as they are.
_PLAIN: Final[dict[type[t.LogicalType], frozenset[type]]] = {
    t.BooleanType: frozenset({bool}),
    t.IntType: frozenset({int}),
    t.BigIntType: frozenset({int, Int64}),
    t.DoubleType: frozenset({float}),
    t.CharType: frozenset({str}),
    t.VarCharType: frozenset({str}),
    t.BinaryType: frozenset({bytes}),
    t.VarBinaryType: frozenset({bytes}),
}
Converter = Callable[[Any], Any]


def column_of(values: Sequence[Any], column: t.Column, place: str) -> Any:
    """An array of a column's type.

    Args:
        values: as the client library gives them, moments as ``DatetimeMS``; None where a document has none.
        place: where they come from, for messages.

    Raises:
        ExecutionError: a value is none of the type, or NULL where the column has none.
    """
    type_ = column.type
    plain = _PLAIN.get(type(type_), frozenset())
    allowed = plain | {type(None)} if type_.nullable else plain
    try:
        if {*map(type, values)} <= allowed:
            return pa.array(values, to_arrow(type_))
        convert = _converter(type_)
        return pa.array([convert(value) for value in values], to_arrow(type_))
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise ExecutionError("bad-document", f"{error}\nin field '{column.name}' of {place}") from None


def _converter(type_: t.LogicalType) -> Converter:
    convert = _of_not_null(type_)

    def converted(value: Any) -> Any:
        if value is None or (isinstance(value, Decimal128) and value.to_decimal().is_nan()):
            if not type_.nullable:
                raise ValueError(f"Unable to convert to <{type_}> from nullable value {value}")
            return None
        return convert(value)

    return converted


def _of_not_null(type_: t.LogicalType) -> Converter:
    match type_:
        case t.BooleanType():
            return _boolean
        case t.TinyIntType() | t.SmallIntType():
            bits, name = type_.bits, "tinyint" if type_.bits == 8 else "smallint"
            return lambda value: _short(value, bits, name)
        case t.IntType() | t.YearMonthIntervalType():
            return lambda value: _whole(value, 32, "integer")
        case t.BigIntType() | t.DayTimeIntervalType():
            return lambda value: _whole(value, 64, "long")
        case t.FloatType():
            return lambda value: float(np.float32(_double(value, "float")))
        case t.DoubleType():
            return lambda value: _double(value, "double")
        case t.DecimalType():
            return lambda value: _decimal(value, type_)
        case t.CharacterType():
            return _text
        case t.BinaryStringType():
            return _bytes
        case t.TimestampType() | t.TimestampLtzType():
            unit = {"ms": 1, "us": 1_000, "ns": 1_000_000}[to_arrow(type_).unit]
            return lambda value: _moment_ms(value) * unit
        case t.ArrayType(element=element):
            of_element = _converter(element)
            return lambda value: [of_element(each) for each in _expect(value, list, "arrayType")]
        case t.MapType(value=item):
            of_item = _converter(item)
            return lambda value: [(key, of_item(each)) for key, each in _expect(value, dict, "rowType").items()]
        case t.RowType(fields=fields):
            of_fields = [(field.name, _converter(field.type)) for field in fields]
            return lambda value: _row(_expect(value, dict, "rowType"), of_fields)
    raise AssertionError(f"{type_} is refused when a statement is planned")


def _row(document: dict[str, Any], fields: Sequence[tuple[str, Converter]]) -> dict[str, Any]:
    return {name: convert(document.get(name)) for name, convert in fields}


def _expect(value: Any, kind: type, name: str) -> Any:
    return value if isinstance(value, kind) else _refuse(value, name)


def _refuse(value: Any, name: str) -> NoReturn:
    raise ValueError(f"Unable to convert to {name} from unexpected value '{value}' of type {_bson_type(value)}")


def _bson_type(value: Any) -> str:
    for kind, name in (
        (bool, "BOOLEAN"), (Int64, "INT64"), (int, "INT32"), (float, "DOUBLE"), (str, "STRING"), (dict, "DOCUMENT"),
        (list, "ARRAY"), (Decimal128, "DECIMAL128"), (ObjectId, "OBJECT_ID"), (DatetimeMS, "DATE_TIME"),
        (Timestamp, "TIMESTAMP"), (bytes, "BINARY"), (Regex, "REGULAR_EXPRESSION"), (Code, "JAVASCRIPT"),
    ):  # fmt: skip
        if isinstance(value, kind):
            return name
    return type(value).__name__


def _boolean(value: Any) -> bool:
    match value:
        case bool():
            return value
        case int():
            return value == 1
        case str():
            return value.lower() == "true"
    _refuse(value, "boolean")


def _parsed(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text):
        raise ValueError(f'For input string: "{text}"')
    return int(text)


def _short(value: Any, bits: int, name: str) -> int:
    match value:
        case bool():
            return int(value)
        case int():
            # Java's narrowing keeps the low bits.
            return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
        case str():
            number = _parsed(value)
            if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
                raise ValueError(f'Value out of range. Value:"{value}" Radix:10')
            return number
    _refuse(value, name)


def _whole(value: Any, bits: int, name: str) -> int:
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    match value:
        case bool():
            return int(value)
        case int():
            return (value - least) % (1 << bits) + least
        case float():
            return 0 if value != value else least if value < least else most if value > most else int(value)
        case Decimal128():
            number = value.to_decimal()
            if not number.is_finite():
                return least if number.is_signed() else most
            return (int(number) - least) % (1 << bits) + least
        case DatetimeMS():
            return int(value) // 1000 if bits == 32 else int(value)
        case Timestamp():
            return value.time if bits == 32 else value.time * 1000
        case str():
            parsed = _parsed(value)
            if not least <= parsed <= most:
                raise ValueError(f'For input string: "{value}"')
            return parsed
    _refuse(value, name)


def _double(value: Any, name: str) -> float:
    match value:
        case bool() | int() | float():
            return float(value)
        case Decimal128():
            return float(value.to_decimal())
        case str():
            if not _DOUBLE.fullmatch(value):
                raise ValueError(f'For input string: "{value}"')
            text = value.strip().rstrip("fFdD") if value.strip() not in _SPECIAL else value.strip()
            return _SPECIAL[text] if text in _SPECIAL else float(text)
    _refuse(value, name)


def _decimal(value: Any, type_: t.DecimalType) -> Decimal | None:
    match value:
        case bool():
            _refuse(value, "decimal")
        case int():
            return decimal_value(str(int(value)), type_)
        case float():
            if value - value != 0:
                raise ValueError(f"Unable to convert infinite bson double to Decimal type: {value}")
            return decimal_value(repr(value), type_)
        case str():
            return decimal_value(value, type_)
        case Decimal128():
            number = value.to_decimal()
            if not number.is_finite():
                raise ValueError("Unable to convert infinite bson decimal to Decimal type.")
            return decimal_value(format(number, "f"), type_)
    _refuse(value, "decimal")


def _moment_ms(value: Any) -> int:
    match value:
        case DatetimeMS():
            return int(value)
        case Timestamp():
            return value.time * 1000
    _refuse(value, "Instant")


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return bytes(value)
    raise ValueError(f"Unsupported BYTES value type: {_bson_type(value)}")


def _text(value: Any) -> str:
    match value:
        case Code():
            return str(value)
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return java_double(value)
        case Decimal128() | ObjectId():
            return str(value)
        case Binary(subtype=subtype) if subtype == UUID_SUBTYPE:
            return str(value.as_uuid())
        case Binary(subtype=subtype) if subtype == OLD_UUID_SUBTYPE:
            return str(value.as_uuid(UuidRepresentation.JAVA_LEGACY))
        case bytes():
            return value.hex()
        case DatetimeMS() | Timestamp():
            return _iso(_moment_ms(value))
        case Regex():
            options = "".join(letter for letter, flag in _FLAGS if value.flags & flag)
            return f"/{value.pattern}/{options}"
        case DBRef():
            return str(value.id)
        case dict() | list():
            return json_util.dumps(value, json_options=json_util.RELAXED_JSON_OPTIONS, ensure_ascii=False)
    _refuse(value, "string")


def _iso(milliseconds: int) -> str:
    """``OffsetDateTime`` in UTC as Java's ISO format writes it."""
    seconds = pa.scalar(milliseconds // 1000, pa.timestamp("s")).cast(pa.string()).as_py()
    fraction = f".{milliseconds % 1000:03d}".rstrip("0") if milliseconds % 1000 else ""
    return f"{seconds.replace(' ', 'T')}{fraction}Z"
