"""Type text to logical types: whatever ``str(LogicalType)`` prints, and the SQL spellings of DDL and casts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NoReturn

from flowsql_core.errors import BindError
from flowsql_core.types import logical as t

_TOKEN = re.compile(
    r"\s*(?:(`(?:[^`]|``)*`)|('[^']*(?:''[^']*)*')|([A-Za-z_][A-Za-z0-9_$]*)|(\d+)|(\*[A-Z]+\*)|([<>(),.]))"
)
_SIMPLE: dict[str, t.LogicalType] = {
    "BOOLEAN": t.BOOLEAN, "TINYINT": t.TINYINT, "SMALLINT": t.SMALLINT, "INT": t.INT, "INTEGER": t.INT,
    "BIGINT": t.BIGINT, "FLOAT": t.FLOAT, "DATE": t.DATE, "STRING": t.STRING, "BYTES": t.BYTES, "NULL": t.NULL,
    "DESCRIPTOR": t.DescriptorType(), "VARIANT": t.VARIANT, "BITMAP": t.BITMAP,
}  # fmt: skip
_MARKS = {mark.value: mark for mark in t.TimeAttribute if mark.value}
_DAY_TIME_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")


def parse_type(text: str) -> t.LogicalType:
    """The type that a text names, e.g. ``ROW<a INT, b STRING NOT NULL>`` or ``TIMESTAMP(3) *ROWTIME*``.

    Raises:
        BindError: the text is no type; the message quotes it.

    >>> str(parse_type("decimal(10,2) not null"))
    'DECIMAL(10, 2) NOT NULL'
    """
    parser = _Parser(text)
    made = parser.type()
    if parser.position < len(parser.tokens):
        parser.fail()
    return made


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        self.position = 0
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                self.fail()
            self.tokens.append(match[0].strip())
            at = match.end()

    def fail(self) -> NoReturn:
        raise BindError("bad-type", f"Could not parse type '{self.text}'.")

    def peek(self, ahead: int = 0) -> str:
        index = self.position + ahead
        return self.tokens[index].upper() if index < len(self.tokens) else ""

    def take(self) -> str:
        if self.position >= len(self.tokens):
            self.fail()
        self.position += 1
        return self.tokens[self.position - 1]

    def accept(self, *words: str) -> bool:
        if all(self.peek(ahead) == word for ahead, word in enumerate(words)):
            self.position += len(words)
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail()

    def type(self) -> t.LogicalType:
        made = self.nullability(self.bare())
        while self.peek() in ("ARRAY", "MULTISET"):
            collection = self.take().upper()
            inner = t.ArrayType(element=made) if collection == "ARRAY" else t.MultisetType(element=made)
            made = self.nullability(inner)
        return made

    def nullability(self, type_: t.LogicalType) -> t.LogicalType:
        type_ = self.attribute(type_)
        if self.accept("NOT", "NULL"):
            type_ = type_.as_nullable(False)
        else:
            self.accept("NULL")
        return self.attribute(type_)

    def attribute(self, type_: t.LogicalType) -> t.LogicalType:
        """The mark of a time attribute; it may stand before or behind NOT NULL."""
        if self.peek() in _MARKS and isinstance(type_, t.TimestampType | t.TimestampLtzType):
            return replace(type_, attribute=_MARKS[self.take()])
        return type_

    def bare(self) -> t.LogicalType:
        name = self.take().upper()
        if name in _SIMPLE:
            return _SIMPLE[name]
        match name:
            case "DOUBLE":
                self.accept("PRECISION")
                return t.DOUBLE
            case "DECIMAL" | "DEC" | "NUMERIC":
                precision, scale = (*self.numbers(2), 0, 0)[:2] if self.peek() == "(" else (10, 0)
                if not (1 <= precision <= t.MAX_PRECISION and scale <= precision):
                    self.fail()
                return t.DecimalType(precision=precision, scale=scale)
            case "CHAR" | "CHARACTER":
                if name == "CHARACTER" and self.accept("VARYING"):
                    return t.VarCharType(length=self.number(t.MAX_LENGTH))
                return t.CharType(length=self.number(1))
            case "VARCHAR":
                return t.VarCharType(length=self.number(t.MAX_LENGTH))
            case "BINARY":
                if self.accept("VARYING"):
                    return t.VarBinaryType(length=self.number(t.MAX_LENGTH))
                return t.BinaryType(length=self.number(1))
            case "VARBINARY":
                return t.VarBinaryType(length=self.number(t.MAX_LENGTH))
            case "TIME":
                precision = self.number(0)
                self.accept("WITHOUT", "TIME", "ZONE")
                return t.TimeType(precision=precision)
            case "TIMESTAMP" | "TIMESTAMP_LTZ":
                return self.timestamp(name)
            case "INTERVAL":
                return self.interval()
            case "STRUCTURED":
                return self.structured()
        return self.composed(name)

    def timestamp(self, name: str) -> t.LogicalType:
        precision = self.number(6)
        local = name == "TIMESTAMP_LTZ"
        if self.accept("WITH", "LOCAL", "TIME", "ZONE"):
            local = True
        else:
            self.accept("WITHOUT", "TIME", "ZONE")
        return t.TimestampLtzType(precision=precision) if local else t.TimestampType(precision=precision)

    def composed(self, name: str) -> t.LogicalType:
        match name:
            case "ARRAY" | "MULTISET":
                self.expect("<")
                element = self.type()
                self.expect(">")
                return t.ArrayType(element=element) if name == "ARRAY" else t.MultisetType(element=element)
            case "MAP":
                self.expect("<")
                key = self.type()
                self.expect(",")
                value = self.type()
                self.expect(">")
                return t.MapType(key=key, value=value)
            case "ROW":
                return self.row()
            case "RAW":
                self.expect("(")
                class_name = self.take().strip("'")
                self.expect(",")
                self.take()
                while not self.accept(")"):
                    self.take()
                return t.RawType(class_name=class_name)
        self.fail()

    def structured(self) -> t.LogicalType:
        self.expect("<")
        name = self.take()[1:-1].replace("''", "'")
        self.expect(",")
        fields: list[t.Field] = []
        while not self.accept(">"):
            if fields:
                self.expect(",")
            known = self.take()
            fields.append(t.Field(known[1:-1].replace("``", "`") if known.startswith("`") else known, self.type()))
        return t.StructuredType(class_name=name, fields=tuple(fields))

    def row(self) -> t.LogicalType:
        closing = ")" if self.accept("(") else ">"
        if closing == ">":
            self.expect("<")
        fields: list[t.Field] = []
        while not self.accept(closing):
            if fields:
                self.expect(",")
            name = self.take()
            name = name[1:-1].replace("``", "`") if name.startswith("`") else name
            type_ = self.type()
            comment = self.take()[1:-1].replace("''", "'") if self.peek().startswith("'") else None
            fields.append(t.Field(name, type_, comment))
        return t.RowType(fields=tuple(fields))

    def interval(self) -> t.LogicalType:
        unit = self.take().upper()
        first = self.number(-1)
        if unit == "MONTH":
            return t.YearMonthIntervalType(resolution="MONTH")
        if unit == "YEAR":
            resolution = "YEAR TO MONTH" if self.accept("TO", "MONTH") else "YEAR"
            return t.YearMonthIntervalType(resolution=resolution, precision=2 if first < 0 else first)
        if unit not in _DAY_TIME_UNITS:
            self.fail()
        if unit == "SECOND":
            return t.DayTimeIntervalType(resolution="SECOND", fractional_precision=6 if first < 0 else first)
        fraction = 6
        resolution = unit
        if self.accept("TO"):
            end = self.take().upper()
            if end not in _DAY_TIME_UNITS:
                self.fail()
            fraction = self.number(6)
            resolution = f"{unit} TO {end}"
        days = first if unit == "DAY" and first >= 0 else 2
        return t.DayTimeIntervalType(resolution=resolution, day_precision=days, fractional_precision=fraction)

    def number(self, default: int) -> int:
        return self.numbers(1)[0] if self.peek() == "(" else default

    def numbers(self, at_most: int) -> list[int]:
        self.expect("(")
        found: list[int] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            word = self.take()
            if not word.isdigit() or len(found) == at_most:
                self.fail()
            found.append(int(word))
        if not found:
            self.fail()
        return found
