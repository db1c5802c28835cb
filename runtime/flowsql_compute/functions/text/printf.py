"""PRINTF: Java's ``String.format``, column by column: each conversion renders its argument's column, then all join."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.cast import cast_array
from flowsql_compute.eval.columns import make_array, spread, values_and_validity
from flowsql_compute.eval.distinct import map_distinct
from flowsql_compute.eval.time.calendar import UNITS_PER_SECOND, date_text
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
from flowsql_compute.functions.text.string import upper
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.record import record
from flowsql_core.types import logical as t

_SPECIFIER = re.compile(r"%(\d+\$)?([-#+ 0,(<]*)(\d+)?(?:\.(\d+))?([tT])?([a-zA-Z%])")
_WIDE = Context(prec=1100)


@record
class Conversion:
    """One ``%`` of a format: ``argument`` counts from 0, None for ``%n`` and ``%%``; ``kind`` as written."""

    kind: str
    argument: int | None
    flags: str
    width: int | None
    precision: int | None


@scalar("PRINTF(STRING, ANY...) -> STRING", nulls=NULLABLE, costly=True, spark=None)
def printf(call: Invocation, pattern: Any, *values: Any) -> Any:
    """The arguments in a Java format; NULL where the format is malformed or does not fit them."""
    if isinstance(pattern, pa.Scalar):
        return _formatted(call, pattern.as_py(), values) if pattern.is_valid else pa.nulls(call.n, pa.string())
    made = pa.nulls(call.n, pa.string())
    for one in pc.unique(pattern):
        if one.is_valid:
            here = pc.fill_null(pc.equal(pattern, one), False)
            made = pc.if_else(here, _formatted(call, one.as_py(), values), made)
    return made


def _formatted(call: Invocation, pattern: str, values: tuple[Any, ...]) -> pa.Array:
    pieces = parse_format(pattern)
    if pieces is None:
        return pa.nulls(call.n, pa.string())
    texts: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str):
            texts.append(pa.scalar(piece))
            continue
        if piece.argument is None:
            texts.append(pa.scalar(_aligned("%", piece.width, piece.flags) if piece.kind == "%" else "\n"))
            continue
        if piece.argument >= len(values):
            return pa.nulls(call.n, pa.string())
        value = values[piece.argument]
        column = spread(value, call.n) if isinstance(value, pa.Scalar) else value
        text = _rendered(piece, column, call.arg_types[piece.argument + 1], call)
        # A conversion that does not take the type writes a NULL all the same.
        texts.append(_only_nulls(piece, column) if text is None else text)
    if not any(isinstance(text, pa.Array) for text in texts):
        return spread(pa.scalar("".join(text.as_py() for text in texts)), call.n)
    return pc.binary_join_element_wise(*texts, "")


def parse_format(pattern: str) -> list[str | Conversion] | None:
    """Texts and conversions of a format; None when it is malformed.

    >>> parse_format("a%5d")
    ['a', Conversion(kind='d', argument=0, flags='', width=5, precision=None)]
    """
    made: list[str | Conversion] = []
    place, ordinary, last = 0, 0, -1
    while place < len(pattern):
        found = pattern.find("%", place)
        if found < 0:
            made.append(pattern[place:])
            break
        if found > place:
            made.append(pattern[place:found])
        match = _SPECIFIER.match(pattern, found)
        if match is None:
            return None
        place = match.end()
        index, flags, width, precision, time, kind = match.groups()
        if len(set(flags)) < len(flags):
            return None
        if kind in "n%":
            argument = None
        elif "<" in flags:
            if last < 0:
                return None
            argument = last
        elif index:
            argument = last = int(index[:-1]) - 1
        else:
            argument = last = ordinary
            ordinary += 1
        if argument is not None and argument < 0:
            return None
        size, digits = int(width) if width else None, int(precision) if precision else None
        conversion = Conversion((time or "") + kind, argument, flags.replace("<", ""), size, digits)
        if not _allowed(conversion):
            return None
        made.append(conversion)
    return made


def _allowed(one: Conversion) -> bool:
    """Whether Java's ``Formatter`` takes the flags, width and precision of a conversion."""
    flags = set(one.flags)
    needs_width = bool(flags & {"-", "0"}) and one.width is None
    match one.kind:
        case "n":
            return not flags and one.width is None and one.precision is None
        case "%":
            return flags <= {"-"} and not needs_width and one.precision is None
        case "b" | "B" | "h" | "H" | "s" | "S":
            return flags <= {"-"} and not needs_width
        case "c" | "C":
            return flags <= {"-"} and not needs_width and one.precision is None
        case "d" | "o" | "x" | "X":
            if one.precision is not None or flags & ({"#"} if one.kind == "d" else {",", "(", "+", " "}):
                return False
        case "e" | "E":
            if "," in flags:
                return False
        case "f":
            pass
        case "g" | "G":
            if "#" in flags:
                return False
        case "a" | "A":
            if flags & {",", "("}:
                return False
        case _:
            return len(one.kind) == 2
    return not needs_width and not {"+", " "} <= flags and not {"-", "0"} <= flags


_GENERAL = frozenset("bBhHsS")
_INTEGERS = (t.IntegerType, t.DateType, t.TimeType, t.YearMonthIntervalType, t.DayTimeIntervalType)


def _rendered(one: Conversion, column: pa.Array, type_: t.LogicalType, call: Invocation) -> pa.Array | None:
    """The column's texts, NULL shown as ``null``; None where the conversion does not take the type."""
    lower = one.kind.lower()
    if isinstance(type_, t.NullType):
        plain = pa.nulls(call.n, pa.string())
        return _shown(plain, one, "false" if lower == "b" else "null")
    if lower == "b":
        truth = pc.cast(column, pa.string()) if isinstance(type_, t.BooleanType) else _where_valid(column, "true")
        return _shown(truth, one, "false")
    if one.kind[0] in "tT" and len(one.kind) == 2:
        if isinstance(type_, t.BigIntType | t.DayTimeIntervalType):
            raise NotSupportedYetError("date conversions of PRINTF")
        return None
    if lower == "s":
        return _shown(_java_text(column, type_, call), one, "null")
    if lower == "h":
        return _shown(_java_hash(column, type_), one, "null")
    if isinstance(type_, _INTEGERS) and lower in "doxc":
        return _integers(one, column, type_)
    if isinstance(type_, t.ApproximateType) and lower in "efga":
        return _rows(one, pc.cast(column, pa.float64()), lambda value: _float_text(one, value))
    return None


def _only_nulls(one: Conversion, column: pa.Array) -> pa.Array:
    """NULLs as they are written; NULL where there is a value."""
    made = pc.if_else(pc.is_null(column), pa.scalar(_missing(one)), pa.scalar(None, pa.string()))
    return upper(made) if one.kind.isupper() else made


def _missing(one: Conversion) -> str:
    return _aligned("null"[: one.precision], one.width, one.flags.replace("0", ""))


def _where_valid(column: pa.Array, text: str) -> pa.Array:
    return pc.if_else(pc.is_valid(column), pa.scalar(text), pa.scalar(None, pa.string()))


def _rows(one: Conversion, column: pa.Array, render: Callable[[Any], str | None]) -> pa.Array:
    texts = map_distinct(column, render, pa.string())
    # A value that the conversion does not take makes the whole text NULL; a NULL is written.
    made = pc.if_else(pc.is_null(column), pa.scalar(_missing(one)), texts)
    return upper(made) if one.kind.isupper() else made


def _shown(texts: pa.Array, one: Conversion, missing: str) -> pa.Array:
    """Cut to the precision and filled up to the width."""
    made = pc.fill_null(texts, missing)
    if one.precision is not None:
        made = pc.utf8_slice_codeunits(made, 0, one.precision)
    if one.width is not None:
        made = (pc.utf8_rpad if "-" in one.flags else pc.utf8_lpad)(made, one.width, padding=" ")
    return upper(made) if one.kind.isupper() else made


def _aligned(text: str, width: int | None, flags: str) -> str:
    if width is None:
        return text
    return text.ljust(width) if "-" in flags else text.rjust(width)


# Text and hash codes as Java's objects give them


def _java_text(column: pa.Array, type_: t.LogicalType, call: Invocation) -> pa.Array:
    match type_:
        case t.CharacterType():
            return column
        case t.BooleanType():
            return pc.cast(column, pa.string())
        case t.DateType() | t.TimeType():
            return pc.cast(pc.cast(column, pa.int32()), pa.string())
        case t.YearMonthIntervalType() | t.DayTimeIntervalType() | t.IntegerType():
            return pc.cast(column, pa.string())
        case t.NumericType():
            return cast_array(column, type_, t.STRING, False, call.context)
        case t.TimestampType() | t.TimestampLtzType():
            return _iso_text(column)
    raise NotSupportedYetError(f"PRINTF of {type_.as_nullable()}: Flink shows the address of a Java object")


def _iso_text(column: pa.Array) -> pa.Array:
    """``2020-01-01T00:00`` and, where they are not zero, seconds and 3, 6 or 9 digits of a fraction."""
    values, valid = values_and_validity(column)
    nanos = 1_000_000_000 // UNITS_PER_SECOND[column.type.unit]
    days, rest = np.divmod(values, 86_400 * UNITS_PER_SECOND[column.type.unit])
    dates = date_text(make_array(days.astype(np.int32), valid, pa.date32()), whole=True)
    clocks = map_distinct(make_array(rest * nanos, valid, pa.int64()), _clock_text, pa.string())
    return pc.binary_join_element_wise(dates, clocks, "T")


def _clock_text(nanos: int) -> str:
    seconds, fraction = divmod(nanos, 1_000_000_000)
    made = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if seconds % 60 or fraction:
        made += f":{seconds % 60:02d}"
    digits = f"{fraction:09d}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{made}.{digits}" if digits else made


def _java_hash(column: pa.Array, type_: t.LogicalType) -> pa.Array:
    if isinstance(type_, t.CharacterType):
        return map_distinct(column, lambda word: f"{murmur(word.encode()):x}", pa.string())
    if isinstance(type_, t.IntType | t.SmallIntType | t.TinyIntType | t.DateType | t.TimeType):
        return map_distinct(pc.cast(column, pa.int32()), lambda value: f"{value & 0xFFFFFFFF:x}", pa.string())
    if isinstance(type_, t.BigIntType):
        return map_distinct(column, lambda value: f"{(value ^ value >> 32) & 0xFFFFFFFF:x}", pa.string())
    if isinstance(type_, t.BooleanType):
        return pc.if_else(column, "4cf", "4d5")
    raise NotSupportedYetError(f"the hash code of {type_.as_nullable()} in PRINTF")


def murmur(data: bytes, seed: int = 42) -> int:
    """Flink's hash of binary strings: Murmur3 (32 bits) whose last bytes are mixed one by one."""
    made = seed
    whole = len(data) - len(data) % 4
    blocks = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    blocks += [byte if byte < 128 else byte + 0xFFFFFF00 for byte in data[whole:]]
    for block in blocks:
        mixed = block * 0xCC9E2D51 & 0xFFFFFFFF
        mixed = (mixed << 15 | mixed >> 17) & 0xFFFFFFFF
        made ^= mixed * 0x1B873593 & 0xFFFFFFFF
        made = (made << 13 | made >> 19) & 0xFFFFFFFF
        made = (made * 5 + 0xE6546B64) & 0xFFFFFFFF
    made ^= len(data)
    made = (made ^ made >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    made = (made ^ made >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return made ^ made >> 16


# Numbers


def _integers(one: Conversion, column: pa.Array, type_: t.LogicalType) -> pa.Array | None:
    plain = column if isinstance(type_, t.IntegerType) else pc.cast(column, pa.int32())
    if isinstance(type_, t.DayTimeIntervalType):
        plain = column
    bits = plain.type.bit_width
    lower = one.kind.lower()
    if lower == "c":
        return None if bits == 64 else _rows(one, plain, lambda value: _character(one, value))
    if lower == "d" and not one.flags and one.width is None:
        return pc.fill_null(pc.cast(plain, pa.string()), "null")
    if lower == "d":
        return _rows(one, plain, lambda value: _signed(one, str(abs(value)), value < 0, True))
    base = "x" if lower == "x" else "o"

    def unsigned(value: int) -> str:
        digits = format(value & ((1 << bits) - 1), base)
        if "#" in one.flags:
            digits = ("0x" if base == "x" else "0") + digits
        if "0" in one.flags and one.width is not None:
            head = "0x" if digits.startswith("0x") else ""
            return head + digits[len(head) :].rjust(one.width - len(head), "0")
        return _aligned(digits, one.width, one.flags)

    return _rows(one, plain, unsigned)


def _character(one: Conversion, code: int) -> str | None:
    if not 0 <= code <= 0x10FFFF or 0xD800 <= code < 0xE000:
        return "?" if 0xD800 <= code < 0xE000 else None
    return _aligned(chr(code), one.width, one.flags)


def _signed(one: Conversion, digits: str, negative: bool, finite: bool) -> str:
    """Grouping, sign or brackets, and the width."""
    if "," in one.flags and finite:
        whole, point, rest = digits.partition(".")
        digits = f"{int(whole):,}{point}{rest}"
    before = "-" if negative else "+" if "+" in one.flags else " " if " " in one.flags else ""
    after = ""
    if negative and "(" in one.flags:
        before, after = "(", ")"
    if "0" in one.flags and one.width is not None and finite:
        digits = digits.rjust(one.width - len(before) - len(after), "0")
    return _aligned(before + digits + after, one.width, one.flags)


def _float_text(one: Conversion, value: float) -> str:
    negative = math.copysign(1.0, value) < 0 and not math.isnan(value)
    if math.isnan(value):
        return _aligned("NaN", one.width, one.flags)
    if math.isinf(value):
        return _signed(one, "Infinity", negative, False)
    if one.kind.lower() == "a":
        return _hexadecimal(one, value, negative)
    # Java rounds the shortest decimal text of the number, half away from zero.
    number = Decimal(repr(abs(value)))
    return _signed(one, _decimal_text(one, number), negative, True)


def _decimal_text(one: Conversion, number: Decimal) -> str:
    precision = 6 if one.precision is None else one.precision
    match one.kind.lower():
        case "f":
            return _fixed(number, precision, "#" in one.flags)
        case "e":
            return _scientific(number, precision, "#" in one.flags)
    precision = max(precision, 1)
    if not number:
        return _fixed(number, precision - 1, False)
    rounded = _WIDE.plus(number).quantize(Decimal(1).scaleb(number.adjusted() - precision + 1), ROUND_HALF_UP, _WIDE)
    if Decimal("1e-4") <= rounded < Decimal(10) ** precision:
        return _fixed(number, precision - 1 - rounded.adjusted(), False)
    return _scientific(number, precision - 1, False)


def _fixed(number: Decimal, digits: int, with_point: bool) -> str:
    text = format(number.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE), "f")
    return f"{text}." if with_point and not digits else text


def _scientific(number: Decimal, digits: int, with_point: bool) -> str:
    exponent = number.adjusted() if number else 0
    mantissa = number.scaleb(-exponent, _WIDE).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE)
    if mantissa >= 10:
        exponent += 1
        mantissa = mantissa.scaleb(-1, _WIDE).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDE)
    point = "." if with_point and not digits else ""
    return f"{mantissa:f}{point}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _hexadecimal(one: Conversion, value: float, negative: bool) -> str:
    if one.precision is not None:
        raise NotSupportedYetError("a precision of %a in PRINTF")
    head, _, exponent = abs(value).hex().partition("p")
    digits = head[2:].rstrip("0") if "." in head else head[2:] + ".0"
    digits = digits + "0" if digits.endswith(".") else digits
    before = "-" if negative else "+" if "+" in one.flags else " " if " " in one.flags else ""
    body = f"{digits}p{int(exponent)}"
    if "0" in one.flags and one.width is not None:
        body = body.rjust(one.width - len(before) - 2, "0")
    return _aligned(f"{before}0x{body}", one.width, one.flags)
