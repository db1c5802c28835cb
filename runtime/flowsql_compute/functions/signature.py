"""``"REPEAT(STRING, INT) -> STRING"`` as a matcher: which arguments fit, which casts they need, what comes out.

A parameter is a type family in upper case (see ``FAMILIES``). ``[P]`` is optional, ``P...`` repeats; ``T`` parameters
meet in one common type. The result is a type text, ``T``, or ``$1`` (the type of the first argument).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import common_type
from flowsql_core.types.text import parse_type


@record
class Family:
    """A set of types; ``target`` is the type that members are cast to, None to leave them as they are."""

    shown: str
    members: tuple[type[t.LogicalType], ...]
    target: t.LogicalType | None = None


_TIMESTAMPS = (t.TimestampType, t.TimestampLtzType)

FAMILIES: dict[str, Family] = {
    "ANY": Family("ANY", (t.LogicalType,)),
    "T": Family("ANY", (t.LogicalType,)),
    "COMPARABLE": Family("COMPARABLE_TYPE", (t.LogicalType,)),
    "BOOLEAN": Family("BOOLEAN", (t.BooleanType,)),
    "NUMERIC": Family("NUMERIC", (t.NumericType,)),
    "EXACT": Family("EXACT_NUMERIC", (t.ExactNumericType,)),
    "INTEGER": Family("INTEGER", (t.IntegerType,)),
    "INT": Family("INTEGER", (t.IntegerType,), t.INT),
    "BIGINT": Family("INTEGER", (t.IntegerType,), t.BIGINT),
    "DOUBLE": Family("NUMERIC", (t.NumericType,), t.DOUBLE),
    "STRING": Family("CHARACTER", (t.CharacterType,)),
    "BINARY": Family("BINARY", (t.BinaryStringType,)),
    "DATE": Family("DATE", (t.DateType,)),
    "TIME": Family("TIME", (t.TimeType,)),
    "TIMESTAMP": Family("TIMESTAMP", _TIMESTAMPS),
    "TIMESTAMP_NTZ": Family("TIMESTAMP", (t.TimestampType,)),
    "DATETIME": Family("DATETIME", (t.DateTimeType,)),
    "DAY_TIME": Family("DATETIME_INTERVAL", (t.DayTimeIntervalType,)),
    "INTERVAL": Family("DATETIME_INTERVAL", (t.DayTimeIntervalType, t.YearMonthIntervalType)),
    "ARRAY": Family("ARRAY", (t.ArrayType,)),
    "MAP": Family("MAP", (t.MapType,)),
    "ROW": Family("ROW", (t.RowType,)),
    "BITMAP": Family("BITMAP", (t.BitmapType,)),
    "VARIANT": Family("VARIANT", (t.VariantType,)),
    "MULTISET": Family("MULTISET", (t.MultisetType,)),
}
#: Families in which a bare NULL stands for a value of whatever type the others have.
_TAKE_NULL = ("ANY", "T", "COMPARABLE")


@record
class Signature:
    """One way to call a function."""

    name: str
    params: tuple[str, ...]
    required: int
    variadic: bool
    result: str

    @property
    def max_args(self) -> int | None:
        """Most arguments, or None for any number."""
        return None if self.variadic else len(self.params)

    def accepts_count(self, n: int) -> bool:
        """Whether so many arguments may be given."""
        return n >= self.required and (self.variadic or n <= len(self.params))

    def param(self, index: int) -> str:
        """The family of an argument by position (the last one repeats)."""
        return self.params[min(index, len(self.params) - 1)]

    def matches(self, types: Sequence[t.LogicalType]) -> tuple[t.LogicalType, ...] | None:
        """The types that the arguments must have, nullability of the given ones kept; None when they do not fit."""
        if not self.accepts_count(len(types)):
            return None
        wanted: list[t.LogicalType] = []
        for index, type_ in enumerate(types):
            name = self.param(index)
            family = FAMILIES[name]
            if isinstance(type_, t.NullType):
                if name not in _TAKE_NULL:
                    return None
            elif not isinstance(type_, family.members):
                return None
            wanted.append(type_ if family.target is None else family.target.as_nullable(type_.nullable))
        shared = [index for index in range(len(types)) if self.param(index) == "T"]
        if shared:
            meet = common_type([types[index] for index in shared])
            if meet is None:
                return None
            for index in shared:
                wanted[index] = meet.as_nullable(types[index].nullable)
        return tuple(wanted)

    def result_type(self, wanted: Sequence[t.LogicalType]) -> t.LogicalType:
        """The declared result (nullable) for matched argument types."""
        if self.result.startswith("$"):
            return wanted[int(self.result[1:]) - 1].as_nullable()
        if self.result == "T":
            return next(wanted[i] for i in range(len(wanted)) if self.param(i) == "T").as_nullable()
        return parse_type(self.result)

    def form(self) -> str:
        """As messages show it: ``ROUND(<NUMERIC>, <INTEGER>)``, ``<NUMERIC> + <NUMERIC>``."""
        return call_text(self.name, [f"<{FAMILIES[name].shown}>" for name in self.params])


def parse_signature(text: str) -> Signature:
    """The matcher of a text.

    >>> parse_signature("LPAD(STRING, INT, STRING) -> STRING").form()
    'LPAD(<CHARACTER>, <INTEGER>, <CHARACTER>)'
    """
    match = re.fullmatch(r"\s*(.+?)\((.*)\)\s*->\s*(.+?)\s*", text)
    if match is None:
        raise ValueError(f"not a signature: {text}")
    params, required, variadic = [], 0, False
    for part in filter(None, (piece.strip() for piece in match[2].split(","))):
        optional = part.startswith("[")
        variadic = part.endswith("...")
        name = part.strip("[].").removesuffix("...")
        if name not in FAMILIES:
            raise ValueError(f"unknown type family {name} in {text}")
        params.append(name)
        required += 0 if optional or variadic else 1
    return Signature(match[1], tuple(params), required, variadic, match[3])


def call_text(name: str, operands: Sequence[str]) -> str:
    """A call as Flink's messages write it: operators between or before their operands."""
    if name[0].isalpha() and name not in ("AND", "OR"):
        if name == "NOT":
            return f"NOT{operands[0]}"
        if name.startswith("IS ") and len(operands) == 1:
            return f"{operands[0]} {name}"
        if name.startswith("IS "):
            return f"{operands[0]} {name} {operands[1]}"
        return f"{name}({', '.join(operands)})"
    return f"{name}{operands[0]}" if len(operands) == 1 else f" {name} ".join(operands)


def summary(type_: t.LogicalType) -> str:
    """A type as messages show it: ``INTEGER``, ``VARCHAR(2147483647)``."""
    text = t.without_attribute(type_).as_nullable().text()
    spelled = {
        "INT": "INTEGER",
        "STRING": f"VARCHAR({t.MAX_LENGTH})",
        "BYTES": f"VARBINARY({t.MAX_LENGTH})",
    }
    return spelled.get(text, text)


def family_name(type_: t.LogicalType) -> str:
    """The family that ``No match found for function signature`` shows for a type."""
    match type_:
        case t.NumericType():
            return "NUMERIC"
        case t.CharacterType():
            return "CHARACTER"
        case t.BinaryStringType():
            return "BINARY"
        case t.TimestampType() | t.TimestampLtzType():
            return "TIMESTAMP"
        case t.DayTimeIntervalType():
            return "INTERVAL_DAY_TIME"
        case t.YearMonthIntervalType():
            return "INTERVAL_YEAR_MONTH"
        case t.TimeType():
            return "TIME"
    return type_.root
