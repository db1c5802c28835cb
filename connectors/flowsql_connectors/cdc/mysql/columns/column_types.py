"""Types of MySQL's columns and the declared types that they are read as, as Flink CDC's connector maps them."""

from __future__ import annotations

import re
from typing import Final

from flowsql_connectors.jdbc.mysql import logical_type
from flowsql_connectors.jdbc.native import fits
from flowsql_core.types import logical as t

_SPELLED: Final = re.compile(r"(\w+)(?:\(([^)]*)\))?")
_GEOMETRIES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
     "geometrycollection", "geomcollection"}
)  # fmt: skip
_BINARY: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_STRINGS: Final = t.ArrayType(element=t.STRING)
#: How ``debezium.binary.handling.mode`` spells bytes.
AS_BYTES, AS_BASE64, AS_HEX = "bytes", "base64", "hex"


def base_name(spelled: str) -> str:
    """The first word of a type, e.g. ``int`` of ``int(11) unsigned``."""
    return spelled.partition("(")[0].partition(" ")[0].lower()


def digits_of(spelled: str) -> list[int]:
    """The numbers behind the first word."""
    found = _SPELLED.match(spelled)
    return [int(part) for part in ((found[2] if found else None) or "").split(",") if part.strip().isdigit()]


def is_unsigned(spelled: str) -> bool:
    """Whether numbers have no sign."""
    return "unsigned" in spelled or "zerofill" in spelled


def members_of(spelled: str) -> tuple[str, ...]:
    """The values of an ENUM or SET."""
    inside = spelled[spelled.index("(") + 1 : spelled.rindex(")")]
    return tuple(one.replace("''", "'") for one in re.findall(r"'((?:[^']|'')*)'", inside))


def natural_types(spelled: str, binary_as: str = AS_BYTES) -> tuple[t.LogicalType, ...]:
    """The types that hold all values of a column, the first of them as Flink CDC's documentation has it; none where the
    values cannot be read."""
    name, digits = base_name(spelled), digits_of(spelled)
    precision = digits[0] if digits else 0
    if name == "tinyint" and digits == [1]:
        return t.BOOLEAN, t.SMALLINT if is_unsigned(spelled) else t.TINYINT
    if name == "bit":
        return (t.BOOLEAN, t.BYTES) if precision <= 1 else (t.BYTES,)
    if name == "year":
        return t.INT, t.SMALLINT
    if name == "decimal":
        exact = logical_type(re.sub(r"\).*", ")", spelled))
        return (t.STRING,) if exact is None else (exact, t.STRING)
    if name == "bigint" and is_unsigned(spelled):
        return t.DecimalType(precision=20, scale=0), t.BIGINT
    if name == "timestamp":
        return t.TimestampType(precision=precision), t.TimestampLtzType(precision=precision)
    if name == "time":
        return t.TimeType(precision=precision), t.STRING
    if name == "set":
        return _STRINGS, t.STRING
    if name in _GEOMETRIES:
        return (t.STRING,)
    if name in _BINARY and binary_as != AS_BYTES:
        return (t.STRING,)
    known = logical_type(spelled)
    return () if known is None else (known,)


def suits(spelled: str, declared: t.LogicalType, binary_as: str) -> bool:
    """Whether values of a column may be read as a declared type."""
    return any(fits(natural, declared) for natural in natural_types(spelled, binary_as))
