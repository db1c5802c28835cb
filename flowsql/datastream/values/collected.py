"""What ``execute_and_collect`` hands out for values of a declared type: FLOAT as the number of its
shortest text, arrays of bytes as Java's numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowsql.common.row import Row
from flowsql.common.short_floats import shortest_float
from flowsql.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from flowsql_core.stream.functions import KeyedProcessFunction

Handed = Callable[[Any], Any]


class WithKey(KeyedProcessFunction):
    """Each value of a keyed stream as a row of its key (``f0``) and itself (``f1``)."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> list[Row]:
        """The row."""
        return [Row(f0=ctx.get_current_key(), f1=value)]


def handed_out(type_: TypeInformation) -> Handed | None:
    """What turns a value of the type into the one that a program collects; None where it is the same."""
    match type_:
        case ExternalTypeInfo():
            # Bytes of tables stay bytes; PyFlink cannot collect them.
            return _handed_out(type_.type_info, None)
        case _:
            return _handed_out(type_, _numbers)


def _numbers(value: bytes) -> list[int]:
    """Java's bytes, -128 to 127."""
    return [byte - 256 if byte > 127 else byte for byte in value]


def _handed_out(type_: TypeInformation, of_bytes: Handed | None) -> Handed | None:
    match type_:
        case BasicTypeInfo(basic_type=BasicType.FLOAT):
            return shortest_float
        case RowTypeInfo():
            fields = _fields(type_.get_field_types(), of_bytes)
            return None if fields is None else _row(fields)
        case TupleTypeInfo():
            fields = _fields(type_.get_field_types(), of_bytes)
            return None if fields is None else lambda value: tuple(_each(fields, value))
        case PrimitiveArrayTypeInfo(is_bytes=True):
            return of_bytes
        case PrimitiveArrayTypeInfo() | BasicArrayTypeInfo() | ObjectArrayTypeInfo() | ListTypeInfo():
            element = _handed_out(type_.element_type, of_bytes)
            return None if element is None else lambda value: [_optional(element, item) for item in value]
        case MapTypeInfo():
            key, item = _handed_out(type_.key_type, of_bytes), _handed_out(type_.value_type, of_bytes)
            if key is None and item is None:
                return None
            return lambda value: {_optional(key, k): _optional(item, v) for k, v in value.items()}
    return None


def _fields(types: list[TypeInformation], of_bytes: Handed | None) -> list[Handed | None] | None:
    found = [_handed_out(field, of_bytes) for field in types]
    return found if any(found) else None


def _row(fields: list[Handed | None]) -> Handed:
    def convert(value: Row) -> Row:
        made = value.copy()
        for place, item in enumerate(_each(fields, value)):
            made[place] = item
        return made

    return convert


def _each(fields: list[Handed | None], value: Any) -> list[Any]:
    return [_optional(field, item) for field, item in zip(fields, value, strict=True)]


def _optional(convert: Handed | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)
