"""SQL types of columns as SQLAlchemy reflects them."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import types as sa

from flowsql_connectors.jdbc.alchemy.kinds import ANY_TYPE
from flowsql_core.types import logical as t

_UNSIGNED_BIGINT: Final = t.DecimalType(precision=20, scale=0)
#: Without digits of its own. What Python has of moments ends with microseconds.
_MICROSECONDS: Final = 6
#: By the names of classes: dialects derive them from ``Integer``, whatever they hold.
_BY_NAME: Final[dict[str, t.LogicalType | None]] = {
    "TINYINTEGER": t.TINYINT,
    "UTINYINTEGER": t.SMALLINT,
    "USMALLINTEGER": t.INT,
    "UINTEGER": t.BIGINT,
    "UBIGINTEGER": _UNSIGNED_BIGINT,
    "HUGEINTEGER": None,
    "UHUGEINTEGER": None,
    "VARINT": None,
    "CITEXT": None,
    "SMALLDATETIME": t.TimestampType(precision=0),
    "BINARY_FLOAT": t.FLOAT,
}
#: An INTEGER, and one without a sign, by SQLAlchemy's classes, the narrower ones first.
_INTEGERS: Final[tuple[tuple[type[Any], t.LogicalType, t.LogicalType], ...]] = (
    (sa.SmallInteger, t.SMALLINT, t.INT),
    (sa.BigInteger, t.BIGINT, _UNSIGNED_BIGINT),
    (sa.Integer, t.INT, t.BIGINT),
)
#: Digits that always fit an integer type.
_DIGITS: Final = ((2, t.TINYINT), (4, t.SMALLINT), (9, t.INT), (18, t.BIGINT))


def logical_type(type_: Any, kind: str) -> t.LogicalType | None:
    """The SQL type that holds all values of a reflected one; None where only their texts have one.

    Args:
        kind: the name of the dialect.
    """
    name = type(type_).__name__.upper()
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name == "DOMAIN":
        return logical_type(type_.data_type, kind)
    if name in ("TINYINT", "MEDIUMINT", "BIT") or (kind == "oracle" and isinstance(type_, sa.Integer | sa.Numeric)):
        return _own(type_, name, kind)
    match type_:
        case sa.Boolean():
            return t.BOOLEAN
        case sa.Integer():
            return _integer(type_, kind)
        # Of SQLAlchemy 2.0, whose Float is a Numeric.
        case sa.Float():
            return _float(type_, name, kind)
        case sa.Numeric():
            return _decimal(type_.precision, type_.scale)
        case sa.Enum():
            # Elsewhere they cannot be compared with any text.
            return t.STRING if kind in ("mysql", "mariadb") else None
        case sa.String():
            return t.STRING if kind in ANY_TYPE else _text(type_, name)
        case sa.DateTime():
            return _timestamp(type_, name)
        case sa.Date():
            return t.DATE
        case sa.Time():
            return None if type_.timezone else t.TimeType(precision=_fraction(type_))
        case sa.ARRAY():
            element = logical_type(type_.item_type, kind) if type_.dimensions in (None, 1) else None
            return None if element is None else t.ArrayType(element=element)
    return t.BYTES if _is_binary(type_) else None


def _own(type_: Any, name: str, kind: str) -> t.LogicalType | None:
    """Types of one name that are others in other databases."""
    if kind == "oracle":
        # Its INTEGER has 38 digits.
        if isinstance(type_, sa.Float):
            return t.DOUBLE
        precision, scale = getattr(type_, "precision", None), getattr(type_, "scale", None)
        if precision is None:
            return t.DecimalType(precision=38, scale=0 if name == "INTEGER" else 18)
        if scale == 0:
            return next((fixed for digits, fixed in _DIGITS if precision <= digits), _decimal(precision, 0))
        return _decimal(precision, scale)
    unsigned = getattr(type_, "unsigned", False)
    match name:
        case "TINYINT" if getattr(type_, "display_width", None) == 1:
            return t.BOOLEAN
        case "TINYINT":
            return t.SMALLINT if unsigned or kind == "mssql" else t.TINYINT
        case "MEDIUMINT":
            return t.INT
    # BIT is BOOLEAN in SQL Server; bits of MySQL are one or many, those of PostgreSQL texts.
    single = kind in ("mysql", "mariadb") and getattr(type_, "length", None) in (None, 1)
    return t.BOOLEAN if single or isinstance(type_, sa.Boolean) else None


def _integer(type_: Any, kind: str) -> t.LogicalType:
    if kind == "sqlite":
        return t.BIGINT
    signed, unsigned = next(found for class_, *found in _INTEGERS if isinstance(type_, class_))
    return unsigned if getattr(type_, "unsigned", False) else signed


def _float(type_: Any, name: str, kind: str) -> t.LogicalType:
    if kind in ("mysql", "mariadb"):
        return t.FLOAT if name == "FLOAT" and (type_.precision or 0) <= 24 else t.DOUBLE
    return t.FLOAT if name == "REAL" and kind != "sqlite" else t.DOUBLE


def _decimal(precision: int | None, scale: int | None) -> t.LogicalType | None:
    if precision is None:
        return t.DecimalType(precision=38, scale=18)
    digits = scale or 0
    fitting = 0 < precision <= t.MAX_PRECISION and 0 <= digits <= precision
    return t.DecimalType(precision=precision, scale=digits) if fitting else None


def _text(type_: Any, name: str) -> t.LogicalType:
    if not type_.length:
        return t.STRING
    return t.CharType(length=type_.length) if name in ("CHAR", "NCHAR") else t.VarCharType(length=type_.length)


def _timestamp(type_: Any, name: str) -> t.LogicalType:
    zoned = type_.timezone or getattr(type_, "local_timezone", False) or name == "DATETIMEOFFSET"
    precision = 0 if name == "DATE" else _fraction(type_)
    return t.TimestampLtzType(precision=precision) if zoned else t.TimestampType(precision=precision)


def _fraction(type_: Any) -> int:
    """Digits of a fraction of a second; MySQL's types have none unless they say so."""
    if hasattr(type_, "fsp"):
        return type_.fsp or 0
    precision = getattr(type_, "precision", None)
    return _MICROSECONDS if precision is None else min(int(precision), _MICROSECONDS)


def _is_binary(type_: Any) -> bool:
    try:
        return type_.python_type is bytes
    except NotImplementedError:
        return False
