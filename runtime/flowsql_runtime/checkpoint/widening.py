"""Types of state that grew: which values of one type are values of another, and how stored columns become wider."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.text import parse_type

_UNITS: Final = ("s", "ms", "us", "ns")
_DECIMAL: Final = re.compile(r"decimal128\((\d+), (\d+)\)")
_TIMESTAMP: Final = re.compile(r"timestamp\[(\w+)(, tz=UTC)?\]")
#: Constants with their type (``3:BIGINT``), and those that a cast gives one.
_NUMBER: Final = r"(?<![\w.])(null|-?\d+(?:\.\d+)?)"
_SQL_TYPE: Final = r"[A-Z]+(?:\(\d+(?:, \d+)?\))?"
_QUOTED: Final = re.compile(r"('(?:[^']|'')*')")
_TYPED: Final = re.compile(rf"{_NUMBER}:{_SQL_TYPE}")
_CAST_CONSTANT: Final = re.compile(rf"CAST\({_NUMBER} AS {_SQL_TYPE}(?: NOT NULL)?\)")
_TYPE: Final = re.compile(rf"({_SQL_TYPE})(?: NOT NULL)?\)")
_INTEGER: Final = re.compile(r"int(8|16|32|64)")


def is_wider(old: t.LogicalType, new: t.LogicalType) -> bool:
    """Whether each value of a type is a value of the other one, and means the same there.

    Integers, DECIMALs with no fewer digits on either side of the point, VARCHAR and VARBINARY of more characters,
    timestamps of more digits, and whatever is made of them. FLOAT is no DOUBLE: 0.1 is another number there.
    """
    if old.nullable and not new.nullable:
        return False
    match old, new:
        case t.IntegerType(), t.IntegerType():
            return old.bits <= new.bits
        case t.DecimalType(), t.DecimalType():
            # Of 38 digits only those behind the point can grow: what does not fit is found when it is read.
            full = old.precision == new.precision == t.MAX_PRECISION
            return old.scale <= new.scale and (full or old.precision - old.scale <= new.precision - new.scale)
        case t.VarCharType(), t.VarCharType():
            return old.length <= new.length
        case t.VarBinaryType(), t.VarBinaryType():
            return old.length <= new.length
        case t.TimestampType(), t.TimestampType():
            return old.precision <= new.precision
        case t.TimestampLtzType(), t.TimestampLtzType():
            return old.precision <= new.precision
        case t.ArrayType(), t.ArrayType():
            return is_wider(old.element, new.element)
        case t.MultisetType(), t.MultisetType():
            return is_wider(old.element, new.element)
        case t.MapType(), t.MapType():
            return is_wider(old.key, new.key) and is_wider(old.value, new.value)
        case t.RowType(), t.RowType():
            return [one.name for one in old.fields] == [one.name for one in new.fields] and all(
                is_wider(one.type, other.type) for one, other in zip(old.fields, new.fields, strict=True)
            )
    return old.same(new)


def narrowing(old: str, new: str) -> bool:
    """Whether a column of one SQL type may have held what the other one does not hold."""
    return old != new and not is_wider(parse_type(old), parse_type(new))


def collections_differ(old: str, new: str) -> bool:
    """Whether values have collections, which state keeps as bytes, and their elements have other Arrow types."""
    before, after = parse_type(old), parse_type(new)
    return _holds_collection(after) and to_arrow(before) != to_arrow(after)


def _holds_collection(type_: t.LogicalType) -> bool:
    match type_:
        case t.ArrayType() | t.MapType() | t.MultisetType():
            return True
        case t.RowType(fields=fields):
            return any(_holds_collection(one.type) for one in fields)
    return False


class PlainTexts:
    """Canonical texts without what types alone put into them: types of constants, casts that change no value.

    Args:
        types: SQL types of columns, by their text.
    """

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = types

    def of(self, text: str) -> str:
        """The text, shorter."""
        parts = _QUOTED.split(text)
        parts[::2] = (_TYPED.sub(r"\1", _CAST_CONSTANT.sub(r"\1", part)) for part in parts[::2])
        text = "".join(parts)
        for column, type_ in self._types.items():
            start = f"CAST({column} AS "
            while start in text:
                before, _, rest = text.partition(start)
                into = _TYPE.match(rest)
                if into is None or not is_wider(parse_type(type_).as_nullable(), parse_type(into[1])):
                    break
                text = before + column + rest[into.end() :]
        return text


def casts(old: str, new: str) -> bool:
    """Whether a stored column of an Arrow type, by its text, can be cast to another one without loss."""
    if old == new:
        return True
    ints = _INTEGER.fullmatch(old), _INTEGER.fullmatch(new)
    if ints[0] and ints[1]:
        return int(ints[0][1]) <= int(ints[1][1])
    decimals = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    if decimals[0] and decimals[1]:
        (digits, scale), (more, further) = (tuple(map(int, one.groups())) for one in decimals if one)
        # Sums have all the digits that there are, so that only those behind the point can grow.
        return scale <= further and (digits - scale <= more - further or more == digits == t.MAX_PRECISION)
    times = _TIMESTAMP.fullmatch(old), _TIMESTAMP.fullmatch(new)
    if times[0] and times[1]:
        return times[0][2] == times[1][2] and _UNITS.index(times[0][1]) <= _UNITS.index(times[1][1])
    return False


def widened(column: Any, type_: Any, of: tuple[str, str] | None) -> Any:
    """A stored column as one of a wider type.

    Args:
        column: an Arrow column.
        type_: of the new store.
        of: SQL types, old and new, of collections that are stored as bytes; None: the column is what it seems.

    Raises:
        pyarrow.ArrowInvalid: a value has more digits than the wider type holds.
    """
    if of is not None:
        # Few jobs keep collections in state.
        from flowsql_compute.eval.nested.value_bytes import from_bytes, to_bytes

        old, new = (to_arrow(parse_type(text)) for text in of)
        chunks = [to_bytes(from_bytes(chunk, old).cast(new)) for chunk in column.chunks]
        return pa.chunked_array(chunks, type_)
    return column if column.type == type_ else column.cast(type_)
