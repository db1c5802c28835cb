"""Objects of user-defined types as values of their SQL types."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from flowsql.common.row import Row
from flowsql.table.types import ArrayType, DataType, MapType, RowType, UserDefinedType

_Serialize: TypeAlias = Callable[[Any], Any]


def serializer(type_: DataType, name: str) -> _Serialize | None:
    """What makes values for a column of those that a program gave; None where no type is user-defined.

    Args:
        type_: of the column.
        name: of what holds the value, for messages: ``field a``.
    """
    match type_:
        case UserDefinedType():
            return _of_object(type_, name)
        case ArrayType():
            item = serializer(type_.element_type, f"element in array {name}")
            return None if item is None else _optional(lambda value: [item(one) for one in value])
        case MapType():
            keys = serializer(type_.key_type, f"key of map {name}") or _same
            values = serializer(type_.value_type, f"value of map {name}") or _same
            if keys is _same and values is _same:
                return None
            return _optional(lambda value: {keys(key): values(item) for key, item in value.items()})
        case RowType():
            found = {field.name: serializer(field.data_type, f"field {field.name} in {name}") for field in type_.fields}
            changed = {field: change for field, change in found.items() if change is not None}
            places = [found[field] or _same for field in type_.names]
            return _optional(lambda value: _row(value, changed, places)) if changed else None
    return None


def _of_object(type_: UserDefinedType, name: str) -> _Serialize:
    def serialize(value: Any) -> Any:
        if value is None:
            return None
        if getattr(value, "__UDT__", None) != type_:
            raise ValueError(f"{name}: {value!r} is not an instance of type {type_!r}")
        return type_.serialize(value)

    return serialize


def serialized(value: Any) -> Any:
    """A value with the objects in it whose classes name a user-defined type as values of SQL types."""
    own = getattr(value, "__UDT__", None)
    if isinstance(own, UserDefinedType):
        return own.serialize(value)
    match value:
        case Row():
            made = value.copy()
            for index, item in enumerate(value):
                made[index] = serialized(item)
            return made
        case array():
            return value
        case list():
            return [serialized(item) for item in value]
        case dict():
            return {serialized(key): serialized(item) for key, item in value.items()}
    return value


def _row(value: Any, changed: Mapping[str, _Serialize], places: list[_Serialize]) -> Any:
    if isinstance(value, dict):
        return {key: changed.get(key, _same)(item) for key, item in value.items()}
    if isinstance(value, Row) and value._names is not None:
        made = value.copy()
        for name in value._names:
            made[name] = changed.get(name, _same)(value[name])
        return made
    if isinstance(value, list | tuple | Row) and len(value) == len(places):
        return tuple(change(item) for change, item in zip(places, value, strict=True))
    return value


def _optional(change: _Serialize) -> _Serialize:
    return lambda value: None if value is None else change(value)


def _same(value: Any) -> Any:
    return value
