"""A type of messages and the columns that are wanted of it, brought together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from flowsql_core.errors import BindError
from flowsql_core.types.logical import (
    ArrayType,
    BigIntType,
    BinaryStringType,
    BooleanType,
    CharacterType,
    DoubleType,
    FloatType,
    IntegerType,
    IntType,
    LogicalType,
    MapType,
    RowType,
)

#: By Java's name for a field's values: the types of columns that take them.
_COLUMNS: Final[dict[str, tuple[type[LogicalType], ...]]] = {
    "INT": (IntType,),
    "LONG": (BigIntType,),
    "FLOAT": (FloatType,),
    "DOUBLE": (DoubleType,),
    "BOOLEAN": (BooleanType,),
    "STRING": (CharacterType,),
    "BYTE_STRING": (BinaryStringType,),
    "ENUM": (CharacterType, IntegerType),
    "MESSAGE": (RowType,),
}


@dataclass(slots=True)
class Place:
    """A column and the field that it is. ``below``: the fields of a message; of a map, its key and value."""

    name: str
    type: LogicalType
    field: Any
    below: list[Place] = field(default_factory=list)

    @property
    def is_map(self) -> bool:
        """Whether it is a map."""
        return is_map(self.field)


def is_map(descriptor: Any) -> bool:
    """Whether a field is a map."""
    message = descriptor.message_type
    return message is not None and message.GetOptions().map_entry


def is_repeated(descriptor: Any) -> bool:
    """Whether a field, which may be a map, holds any number of values."""
    found: bool = descriptor.is_repeated
    return found


def required_fields(descriptor: Any) -> list[Any]:
    """The fields that each message of a type must have (proto2)."""
    return [own for own in descriptor.fields if own.is_required]


def missing_fields(names: Iterable[str]) -> str:
    """Java's words for a message without some of them."""
    return f"Message missing required fields: {', '.join(names)}"


def places_of(descriptor: Any, row: RowType, path: str = "") -> list[Place]:
    """The places of a row's fields.

    Raises:
        BindError: the message has no such field, or one of another type; messages in messages that are too deep.
    """
    made = []
    for member in row.fields:
        name = f"{path}{member.name}"
        own = descriptor.fields_by_name.get(member.name)
        if own is None:
            raise BindError(
                "protobuf-schema-mismatch",
                f"Column {name} does not exists in definition of proto class.",
                hint=f"{descriptor.full_name} has " + ", ".join(one.name for one in descriptor.fields),
            )
        made.append(_place(own, member.type, name))
    return made


def _place(own: Any, type_: LogicalType, name: str) -> Place:
    made = Place(name, type_, own)
    if is_map(own):
        if not isinstance(type_, MapType):
            raise _unfit(own, type_, name)
        entry = own.message_type.fields_by_name
        made.below = [
            _single(entry["key"], type_.key, name),
            _single(entry["value"], type_.value, name),
        ]
        return made
    element = type_
    if is_repeated(own):
        if not isinstance(type_, ArrayType):
            raise _unfit(own, type_, name)
        element = type_.element
    made.below = _single(own, element, name).below
    return made


def _single(own: Any, type_: LogicalType, name: str) -> Place:
    if not isinstance(type_, _COLUMNS[java_type(own)]):
        raise _unfit(own, type_, name)
    below = places_of(own.message_type, type_, f"{name}.") if isinstance(type_, RowType) else []
    return Place(name, type_, own, below)


def java_type(own: Any) -> str:
    """What Java calls the values of a field."""
    return {
        own.CPPTYPE_INT32: "INT",
        own.CPPTYPE_UINT32: "INT",
        own.CPPTYPE_INT64: "LONG",
        own.CPPTYPE_UINT64: "LONG",
        own.CPPTYPE_FLOAT: "FLOAT",
        own.CPPTYPE_DOUBLE: "DOUBLE",
        own.CPPTYPE_BOOL: "BOOLEAN",
        own.CPPTYPE_ENUM: "ENUM",
        own.CPPTYPE_MESSAGE: "MESSAGE",
    }.get(own.cpp_type) or ("BYTE_STRING" if own.type == own.TYPE_BYTES else "STRING")


def _unfit(own: Any, type_: LogicalType, name: str) -> BindError:
    shown = ("map" if is_map(own) else "repeated " * is_repeated(own)) or ""
    return BindError(
        "protobuf-schema-mismatch",
        f"Protobuf field type does not match column type, {shown}{java_type(own)}(field name: {name}) and "
        f"{type_.as_nullable()}.",
    )
