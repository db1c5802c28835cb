"""Text made of text: joining, repeating, filling up, trimming, replacing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import all_ascii, make_strings, spread, string_buffers, validity
from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.java.utf16 import joined, units
from flowsql_compute.eval.text.columns import KERNEL_ROWS, overlaid, without_byte
from flowsql_compute.functions.registry import CUSTOM, Invocation, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.expr import Expr
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import length_of


def _as_varchar(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    """VARCHAR of the first argument's length."""
    return t.VarCharType(length=length_of(args[0].type))


def _column(datum: Any, n: int) -> pa.Array:
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


# Joining and repeating


def _joined_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    types = [arg.type for arg in args]
    total = min(sum(length_of(type_) for type_ in types), t.MAX_LENGTH)
    nullable = any(type_.nullable for type_ in types)
    if isinstance(types[0], t.BinaryStringType):
        return t.VarBinaryType(length=total, nullable=nullable)
    if all(isinstance(type_, t.CharType) for type_ in types):
        return t.CharType(length=total, nullable=nullable)
    return t.VarCharType(length=total, nullable=nullable)


@scalar("||(STRING, STRING) -> STRING", "||(BINARY, BINARY) -> BYTES", nulls=CUSTOM, returns=_joined_type,
        spark="({0} || {1})")  # fmt: skip
def concatenate(a: Any, b: Any) -> Any:
    """Both behind each other."""
    return pc.binary_join_element_wise(a, b, "" if pa.types.is_string(a.type) else b"")


@scalar("CONCAT(STRING, STRING...) -> STRING", spark="CONCAT({..., })")
def concat(*parts: Any) -> Any:
    """All behind each other; NULL when one is NULL."""
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")


@scalar("CONCAT_WS(STRING, STRING, STRING...) -> STRING", spark=None)
def concat_ws(call: Invocation, separator: Any, *parts: Any) -> Any:
    """All parts that are not NULL, with the separator between them; NULL when that is NULL."""
    columns = [_column(part, call.n) for part in parts]
    # A constant separator may have come as a column of one row.
    marks = separator[0] if isinstance(separator, pa.Array) and len(separator) == 1 else separator
    if len(columns) == 1:
        made = pc.fill_null(columns[0], "")
    else:
        if all(column.null_count for column in columns):
            # Arrow leaves out rows that have nothing but NULLs: they get an empty text.
            nothing = functools.reduce(pc.and_, [pc.is_null(column) for column in columns])
            columns[0] = pc.if_else(nothing, "", columns[0])
        made = pc.binary_join_element_wise(*columns, pc.fill_null(marks, ""), null_handling="skip")
    return pc.if_else(pc.is_valid(separator), made, pa.scalar(None, pa.string()))


@scalar("REPEAT(STRING, INTEGER) -> STRING", spark="REPEAT({0}, {1})")
def repeat(call: Invocation, text: Any, times: Any) -> Any:
    """``text`` written ``times`` times; '' for 0 and less."""
    return pc.binary_repeat(text, pc.max_element_wise(times, pa.scalar(0, times.type), skip_nulls=False))


@scalar("LPAD(STRING, INTEGER, STRING) -> STRING", nulls=CUSTOM,
        returns=lambda args, options: _pad_type(args), spark=None)  # fmt: skip
def lpad(call: Invocation, text: Any, length: Any, filling: Any) -> Any:
    """Filled up on the left to ``length`` characters, or cut to them; NULL for a negative length or empty filling."""
    return _padded(call, text, length, filling, lambda word, fill: fill + word)


@scalar("RPAD(STRING, INTEGER, STRING) -> STRING", nulls=CUSTOM,
        returns=lambda args, options: _pad_type(args), spark=None)  # fmt: skip
def rpad(call: Invocation, text: Any, length: Any, filling: Any) -> Any:
    """Filled up on the right to ``length`` characters, or cut to them; NULL for a negative length or empty filling."""
    return _padded(call, text, length, filling, lambda word, fill: word + fill)


def _pad_type(args: Sequence[Expr]) -> t.LogicalType:
    return t.VarCharType(nullable=any(arg.type.nullable for arg in args))


def _padded(call: Invocation, text: Any, length: Any, filling: Any, join: Callable[[str, str], str]) -> pa.Array:
    if isinstance(length, pa.Scalar) and isinstance(filling, pa.Scalar) and length.is_valid and filling.is_valid:
        size, fill = length.as_py(), filling.as_py()
        plain = len(fill) == 1 and fill.isascii() and size >= 0
        if plain and all_ascii(text):
            pad = pc.utf8_lpad if join("a", "b") == "ba" else pc.utf8_rpad
            return pc.utf8_slice_codeunits(pad(text, size, padding=fill), 0, size)
        return map_distinct(text, lambda word: _pad_one(word, size, fill, join), pa.string())
    columns = [_column(text, call.n), length, filling]
    return map_rows(columns, lambda word, size, fill: _pad_one(word, size, fill, join), pa.string())


def _pad_one(word: str, size: int, fill: str, join: Callable[[str, str], str]) -> str | None:
    word, fill = units(word), units(fill)
    if size < 0 or not fill:
        return None
    missing = size - len(word)
    if missing <= 0:
        return joined(word[:size])
    return joined(join(word, (fill * (missing // len(fill) + 1))[:missing]))


# Trimming


@scalar("TRIM(STRING) -> $1", "TRIM(STRING, STRING) -> $1", returns=_as_varchar, spark=None)
def trim(call: Invocation, text: Any, characters: Any = None) -> Any:
    """Without the given characters (blanks) at the side(s) ``side``: BOTH, LEADING, TRAILING."""
    return _trimmed(call, text, characters, call.option("side", "BOTH"))


@scalar("LTRIM(STRING) -> $1", "LTRIM(STRING, STRING) -> $1", returns=_as_varchar, spark=None)
def ltrim(call: Invocation, text: Any, characters: Any = None) -> Any:
    """Without the given characters (blanks) at the start."""
    return _trimmed(call, text, characters, "LEADING")


@scalar("RTRIM(STRING) -> $1", "RTRIM(STRING, STRING) -> $1", returns=_as_varchar, spark=None)
def rtrim(call: Invocation, text: Any, characters: Any = None) -> Any:
    """Without the given characters (blanks) at the end."""
    return _trimmed(call, text, characters, "TRAILING")


@scalar("BTRIM(STRING) -> STRING", "BTRIM(STRING, STRING) -> STRING", spark=None)
def btrim(call: Invocation, text: Any, characters: Any = None) -> Any:
    """Without the given characters (blanks) at both ends."""
    return _trimmed(call, text, characters, "BOTH")


_TRIMS: dict[str, Callable[..., Any]] = {
    "BOTH": pc.utf8_trim,
    "LEADING": pc.utf8_ltrim,
    "TRAILING": pc.utf8_rtrim,
}


_STRIPS: dict[str, Callable[[str, str], str]] = {"BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip}
#: Passes over a column before one distinct row after another is faster.
_MOST_PASSES = 16


def _trimmed(call: Invocation, text: Any, characters: Any, side: str) -> Any:
    if characters is None:
        return _TRIMS[side](text, characters=" ")
    if isinstance(characters, pa.Scalar):
        if not characters.is_valid:
            return pa.nulls(call.n, pa.string())
        return _TRIMS[side](text, characters=characters.as_py())
    made = pa.nulls(call.n, pa.string())
    column = _column(text, call.n)
    choices = pc.unique(characters)
    if len(choices) > _MOST_PASSES:
        return map_rows([column, characters], _STRIPS[side], pa.string())
    for chosen in choices:
        if chosen.is_valid:
            here = pc.fill_null(pc.equal(characters, chosen), False)
            made = pc.if_else(here, _TRIMS[side](column, characters=chosen.as_py()), made)
    return made


# Searching and replacing


@scalar("REPLACE(STRING, STRING, STRING) -> STRING", spark=None)
def replace(call: Invocation, text: Any, search: Any, replacement: Any) -> Any:
    """Every occurrence replaced; an empty search stands between all characters."""
    if isinstance(search, pa.Scalar) and isinstance(replacement, pa.Scalar) and isinstance(text, pa.Array):
        if not search.is_valid or not replacement.is_valid:
            return pa.nulls(call.n, pa.string())
        old, new = search.as_py(), replacement.as_py()
        if not old:
            return map_distinct(text, lambda word: _replace_one(word, "", new), pa.string())
        return replace_bytes(text, old, new)
    columns = [_column(text, call.n), search, replacement]
    return map_rows(columns, _replace_one, pa.string())


def _replace_one(word: str, old: str, new: str) -> str:
    return word.replace(old, new) if old else joined(units(word).replace("", new))


def replace_bytes(text: pa.Array, old: str, new: str) -> pa.Array:
    """Every occurrence of a non-empty constant replaced by another."""
    if new or len(old.encode()) != 1:
        return pc.replace_substring(text, old, new)
    if len(text) >= KERNEL_ROWS:
        return without_byte(text, old)
    # Deleting one byte: keep the others, and count how many went before each row's end.
    offsets, data = string_buffers(text)
    base, end = int(offsets[0]), int(offsets[-1])
    used = data[base:end]
    kept = used != ord(old)
    before = np.zeros(len(used) + 1, dtype=np.int32)
    np.cumsum(kept, out=before[1:])
    return make_strings(before[offsets - base], used[kept], validity(text), pa.string())


def _overlay_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    total = length_of(args[0].type) + length_of(args[1].type)
    return t.VarCharType(length=min(total, t.MAX_LENGTH))


@scalar("OVERLAY(STRING, STRING, INTEGER) -> STRING", "OVERLAY(STRING, STRING, INTEGER, INTEGER) -> STRING",
        returns=_overlay_type, spark=None)  # fmt: skip
def overlay(call: Invocation, text: Any, replacement: Any, start: Any, length: Any = None) -> Any:
    """``length`` characters from ``start`` on replaced; as it is where ``start`` lies outside."""
    column = _column(text, call.n)
    given = [datum for datum in (replacement, start, length) if datum is not None]
    constant = all(isinstance(datum, pa.Scalar) and datum.is_valid for datum in given)
    if constant and start.as_py() > 0 and all_ascii(column):
        new, place = replacement.as_py(), min(start.as_py() - 1, _MOST)
        size = len(units(new)) if length is None else length.as_py()
        made = pc.utf8_replace_slice(column, place, min(place + size, _MOST) if size > 0 else _MOST, new)
        return pc.if_else(pc.greater(pc.binary_length(column), place), made, column)
    new = _column(replacement, call.n)
    if call.n >= KERNEL_ROWS and all(all_ascii(datum) for datum in (column, new)):
        size = pc.binary_length(new) if length is None else _column(length, call.n)
        made = overlaid(column, new, _column(start, call.n), size)
        if made is not None:
            return made
    return map_rows([column, *given], _overlay_one, pa.string())


#: No text has more characters.
_MOST = 2**31 - 1


def _overlay_one(word: str, new: str, start: int, length: int | None = None) -> str:
    size = len(units(new)) if length is None else length
    word = units(word)
    if start <= 0 or start > len(word):
        return joined(word)
    if start + size > len(word) or size <= 0:
        return joined(word[: start - 1]) + new
    return joined(word[: start - 1]) + new + joined(word[start - 1 + size :])


def _translated_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    return t.VarCharType(nullable=args[0].type.nullable)


@scalar("TRANSLATE(STRING, STRING, STRING) -> STRING", aliases=("TRANSLATE3",), nulls=CUSTOM, returns=_translated_type,
        spark="TRANSLATE({0}, COALESCE({1}, ''), COALESCE({2}, ''))")  # fmt: skip
def translate(call: Invocation, text: Any, search: Any, replacement: Any) -> Any:
    """Each character of ``search`` replaced by the one at its place; deleted where there is none.

    A list that is NULL is an empty one.
    """
    search, replacement = pc.fill_null(search, ""), pc.fill_null(replacement, "")
    columns = [_column(text, call.n), search, replacement]
    if all(isinstance(datum, pa.Scalar) for datum in (search, replacement)):
        old, new = search.as_py(), replacement.as_py()
        # One ASCII character by another is one byte by another, whatever stands around.
        if old.isascii() and new.isascii() and len(new) >= len(old):
            table = np.frombuffer(_translate_one(bytes(range(128)).decode(), old, new).encode(), dtype=np.uint8)
            offsets, data = string_buffers(columns[0])
            used = data[int(offsets[0]) : int(offsets[-1])]
            made = np.concatenate((table, np.arange(128, 256, dtype=np.uint8)))[used]
            return make_strings(offsets - offsets[0], made, validity(columns[0]), pa.string())
    return map_rows(columns, _translate_one, pa.string())


def _translate_one(word: str, search: str, replacement: str) -> str:
    table: dict[int, str] = {}
    for place, character in enumerate(search):
        table.setdefault(ord(character), replacement[place] if place < len(replacement) else "")
    return word.translate(table)
