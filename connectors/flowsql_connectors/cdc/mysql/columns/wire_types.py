"""Types of columns as the binary log tells them in its table maps.

Source: MySQL internals, ``Table_map_event`` and ``field_types.h``; of MariaDB ``sql/field.h``.
"""

from __future__ import annotations

import enum
from typing import Final

from flowsql_core.record import record


class Wire(enum.IntEnum):
    """Codes of types in table maps; of columns that are CHAR, ENUM or SET the code behind the common one."""

    DECIMAL = 0
    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    NULL = 6
    TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    TIME = 11
    DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    NEWDECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


#: Bytes of values that have always as many.
_FIXED: Final = {
    Wire.TINY: 1, Wire.SHORT: 2, Wire.INT24: 3, Wire.LONG: 4, Wire.LONGLONG: 8, Wire.FLOAT: 4, Wire.DOUBLE: 8,
    Wire.YEAR: 1, Wire.DATE: 3, Wire.NEWDATE: 3, Wire.TIME: 3, Wire.TIMESTAMP: 4, Wire.DATETIME: 8, Wire.NULL: 0,
}  # fmt: skip
_MOMENTS: Final = {Wire.TIMESTAMP2: 4, Wire.DATETIME2: 5, Wire.TIME2: 3}
#: Bytes of a table map's metadata of a column.
_METADATA: Final = {
    Wire.FLOAT: 1, Wire.DOUBLE: 1, Wire.BLOB: 1, Wire.GEOMETRY: 1, Wire.JSON: 1, Wire.VECTOR: 1,
    Wire.TIMESTAMP2: 1, Wire.DATETIME2: 1, Wire.TIME2: 1, Wire.VARCHAR: 2, Wire.VAR_STRING: 2, Wire.BIT: 2,
    Wire.NEWDECIMAL: 2, Wire.STRING: 2, Wire.BLOB_COMPRESSED: 1, Wire.VARCHAR_COMPRESSED: 2,
}  # fmt: skip
#: Types of texts and of bytes, which tell a character set.
CHARACTER: Final = frozenset(
    {Wire.VARCHAR, Wire.VAR_STRING, Wire.STRING, Wire.BLOB, Wire.BLOB_COMPRESSED, Wire.VARCHAR_COMPRESSED}
)
#: Types of numbers, which tell whether they have a sign.
NUMERIC: Final = frozenset(
    {Wire.TINY, Wire.SHORT, Wire.INT24, Wire.LONG, Wire.LONGLONG, Wire.FLOAT, Wire.DOUBLE, Wire.NEWDECIMAL, Wire.YEAR}
)


@record
class WireType:
    """A type with what its table map says of it.

    ``size``: most bytes of texts and bytes; of numbers, ENUM, SET and BIT all of them. ``precision``, ``scale``: of
    decimals; ``precision`` also of moments: digits behind the second.
    """

    code: int
    size: int = 0
    precision: int = 0
    scale: int = 0

    @property
    def width(self) -> int:
        """Bytes of each value; -n where a length of n bytes stands before it."""
        code = self.code
        if code in _FIXED:
            return _FIXED[Wire(code)]
        if code in _MOMENTS:
            return _MOMENTS[Wire(code)] + (self.precision + 1) // 2
        if code == Wire.NEWDECIMAL:
            return decimal_size(self.precision, self.scale)
        if code in (Wire.ENUM, Wire.SET, Wire.BIT):
            return self.size
        if code in (Wire.VARCHAR, Wire.VAR_STRING, Wire.STRING, Wire.VARCHAR_COMPRESSED):
            return -2 if self.size > 255 else -1
        return -self.size


def decimal_size(precision: int, scale: int) -> int:
    """Bytes of a DECIMAL."""
    whole = precision - scale
    return whole // 9 * 4 + (whole % 9 + 1) // 2 + scale // 9 * 4 + (scale % 9 + 1) // 2


def wire_types(codes: bytes, metadata: bytes) -> list[WireType]:
    """The types of a table map's columns.

    Raises:
        ValueError: a code is of no type.
    """
    found = []
    at = 0
    for code in codes:
        size = _METADATA.get(Wire(code), 0)
        found.append(_wire_type(code, metadata[at : at + size]))
        at += size
    return found


def _wire_type(code: int, about: bytes) -> WireType:
    match code:
        case Wire.NEWDECIMAL:
            return WireType(code, precision=about[0], scale=about[1])
        case Wire.BIT:
            return WireType(code, about[1] + (about[0] > 0), precision=about[1] * 8 + about[0])
        case Wire.STRING:
            if about[0] & 0x30 != 0x30:
                # CHAR of more than 255 bytes: two bits of its length are where the type is.
                return WireType(about[0] | 0x30, about[1] | ((about[0] & 0x30) ^ 0x30) << 4)
            return WireType(about[0], about[1])
        case Wire.VARCHAR | Wire.VAR_STRING | Wire.VARCHAR_COMPRESSED:
            return WireType(code, int.from_bytes(about, "little"))
        case Wire.TIMESTAMP2 | Wire.DATETIME2 | Wire.TIME2:
            return WireType(code, precision=about[0])
    return WireType(code, about[0] if about else _FIXED.get(Wire(code), 0))
