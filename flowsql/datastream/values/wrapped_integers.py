"""Integers of ``from_collection`` that their declared type cannot hold: Java cuts them to its bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from flowsql.common.row import Row
from flowsql.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    MapTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)

_BITS: Final = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32}

Wrapped = Callable[[Any], Any]


def converted(elements: Sequence[Any], convert: Wrapped, type_: TypeInformation | None) -> list[Any]:
    """Return the elements as values of a type, whose converter is ``convert``.

    Raises:
        TypeError: an element is not of the type.
        ValueError: it does not fit.
    """
    try:
        return [convert(element) for element in elements]
    except ValueError:
        cut = None if type_ is None else wrapped(type_)
        if cut is None:
            raise
        return [convert(cut(element)) for element in elements]


def wrapped(type_: TypeInformation) -> Wrapped | None:
    """Return what cuts integers of 64 bits to the bits of BYTE, SHORT and INT within a type; None without such types.

    Whatever is no value of the type passes as it is, for the type's converter to refuse; so do integers of more than
    64 bits, LONGs and elements of lists, which PyFlink refuses as well.

    Example: ``wrapped(Types.SHORT())(43878)`` is -21658.

    Source: PyFlink 2.3, which reads pickled numbers by ``Number.shortValue`` and the like.
    """
    match type_:
        case BasicTypeInfo() if type_.basic_type in _BITS:
            return _integer(_BITS[type_.basic_type])
        case TupleTypeInfo() | RowTypeInfo():
            fields = [wrapped(field) for field in type_.get_field_types()]
            return _fields(fields) if any(fields) else None
        case BasicArrayTypeInfo():
            element = wrapped(type_.element_type)
            return None if element is None else _array(element)
        case MapTypeInfo():
            key, value = wrapped(type_.key_type), wrapped(type_.value_type)
            return None if key is None and value is None else _map(key, value)
        case _:
            return None


def _integer(bits: int) -> Wrapped:
    half, whole = 1 << bits - 1, 1 << bits

    def cut(value: Any) -> Any:
        if type(value) is not int or -half <= value < half or not -(2**63) <= value < 2**63:
            return value
        return (value + half) % whole - half

    return cut


def _fields(fields: Sequence[Wrapped | None]) -> Wrapped:
    def cut(value: Any) -> Any:
        if not isinstance(value, tuple | list | Row) or len(value) != len(fields):
            return value
        found = [_optional(field, item) for field, item in zip(fields, value, strict=True)]
        if not isinstance(value, Row):
            return tuple(found)
        made = value.copy()
        for place, item in enumerate(found):
            made[place] = item
        return made

    return cut


def _array(element: Wrapped) -> Wrapped:
    return lambda value: [element(item) for item in value] if isinstance(value, tuple | list) else value


def _map(key: Wrapped | None, value: Wrapped | None) -> Wrapped:
    def cut(found: Any) -> Any:
        if not isinstance(found, dict):
            return found
        return {_optional(key, name): _optional(value, item) for name, item in found.items()}

    return cut


def _optional(cut: Wrapped | None, value: Any) -> Any:
    return value if cut is None else cut(value)
