"""Text functions; positions and lengths count characters (code points), from 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import (
    Bools,
    all_ascii,
    make_array,
    make_strings,
    spread,
    string_buffers,
    validity,
    values_and_validity,
)
from flowsql_compute.eval.distinct import map_distinct, map_rows
from flowsql_compute.eval.text.columns import KERNEL_ROWS, cut, gather, pieces
from flowsql_compute.functions.registry import NULLABLE, Invocation, scalar
from flowsql_core.arrow import compute as pc
from flowsql_core.expr import Expr
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import length_of

Int64s = npt.NDArray[np.int64]


def _as_varchar(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    """VARCHAR of the first argument's length."""
    return t.VarCharType(length=length_of(args[0].type))


def _column(datum: Any, n: int) -> pa.Array:
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum


def _numbers(datum: Any, n: int) -> tuple[Int64s, Bools | None]:
    values, valid = values_and_validity(_column(datum, n))
    return values.astype(np.int64), valid


# Case and length


@scalar("UPPER(STRING) -> $1", spark="UPPER({0})")
def upper(text: Any) -> Any:
    """In upper case."""
    return _recased(text, pc.ascii_upper, pc.utf8_upper, str.upper, _UPPER_SPECIAL)


@scalar("LOWER(STRING) -> $1", spark="LOWER({0})")
def lower(text: Any) -> Any:
    """In lower case."""
    return _recased(text, pc.ascii_lower, pc.utf8_lower, str.lower, _LOWER_SPECIAL)


#: Letters whose other case is several letters or depends on what stands around: Arrow maps one to one.
_UPPER_SPECIAL = "[ßŉǰΐΰևẖ-ẚὐὒὔὖᾀ-ᾯᾲ-ᾷᾼῂ-ῇῌῒΐῖῗῢΰῤῦῧῲ-ῷῼﬀ-ﬆﬓ-ﬗ]"
_LOWER_SPECIAL = "[İΣ]"


def _recased(
    text: Any, plain: Callable[[Any], Any], whole: Callable[[Any], Any], one: Callable[[str], str], special: str
) -> Any:
    if all_ascii(text):
        return plain(text)
    if pc.any(pc.match_substring_regex(text, special)).as_py():
        return map_distinct(text, one, pa.string())
    return whole(text)


@scalar("INITCAP(STRING) -> $1", spark=None)
def initcap(text: Any) -> Any:
    """ASCII words with a capital first letter and small others; letters beyond ASCII stay and end a word."""
    offsets, data = string_buffers(text)
    base = int(offsets[0])
    used = data[base : int(offsets[-1])]
    inside = _WORD_BYTES[used]
    # A byte starts a word when nothing of a word stands before it, in its own row.
    fresh = np.ones(len(used), dtype=np.bool_)
    fresh[1:] = ~inside[:-1]
    starts = offsets[:-1] - base
    fresh[starts[starts < len(used)]] = True
    made = np.where(fresh, _UPPER_BYTES[used], _LOWER_BYTES[used])
    return make_strings(offsets - base, made, validity(text), pa.string())


_BYTES = np.arange(256, dtype=np.uint8)
_CAPITALS, _SMALLS = (_BYTES >= 65) & (_BYTES <= 90), (_BYTES >= 97) & (_BYTES <= 122)
_WORD_BYTES = _CAPITALS | _SMALLS | ((_BYTES >= 48) & (_BYTES <= 57))
_UPPER_BYTES = np.where(_SMALLS, _BYTES - 32, _BYTES).astype(np.uint8)
_LOWER_BYTES = np.where(_CAPITALS, _BYTES + 32, _BYTES).astype(np.uint8)


@scalar("CHAR_LENGTH(STRING) -> INT", aliases=("CHARACTER_LENGTH",), spark="CHAR_LENGTH({0})")
def char_length(text: Any) -> Any:
    """The number of characters."""
    # Bytes are characters where all are ASCII, and a column's offsets know them without a look at the text.
    return pc.binary_length(text) if all_ascii(text) else pc.utf8_length(text)


@scalar("REVERSE(STRING) -> STRING", nulls=NULLABLE, spark="REVERSE({0})")
def reverse(text: Any) -> Any:
    """The characters in reverse order."""
    return pc.utf8_reverse(text)


@scalar("ASCII(STRING) -> INT", spark=None)
def ascii_(text: Any) -> Any:
    """The first byte as a number (negative from 128 on), 0 of the empty string."""
    offsets, data = string_buffers(text)
    filled = np.diff(offsets) > 0
    made = np.zeros(len(text), dtype=np.int32)
    made[filled] = data[offsets[:-1][filled]].view(np.int8)
    return make_array(made, validity(text), pa.int32())


@scalar("CHR(INTEGER) -> STRING", nulls=NULLABLE, spark=None)
def chr_(code: Any) -> Any:
    """The character of a code modulo 256; '' of negative codes."""
    values, valid = _numbers(code, len(code))
    table = pa.array([chr(number) for number in range(256)] + [""], pa.string())
    index = np.where(values < 0, 256, values & 255)
    return pc.take(table, pa.array(index, mask=None if valid is None else ~valid))


# Parts


@scalar("SUBSTRING(STRING, INTEGER) -> $1", "SUBSTRING(STRING, INTEGER, INTEGER) -> $1", returns=_as_varchar,
        nulls=NULLABLE, aliases=("SUBSTR",), spark=None)  # fmt: skip
def substring(call: Invocation, text: Any, start: Any, length: Any = None) -> Any:
    """Characters from ``start`` (counted from the end when negative); NULL when ``length`` is negative."""
    constant = isinstance(start, pa.Scalar) and (length is None or isinstance(length, pa.Scalar))
    if constant and start.is_valid and (length is None or length.is_valid):
        first = min(max(start.as_py(), -_LONGEST), _LONGEST)
        return _constant_substring(text, first, None if length is None else min(length.as_py(), _LONGEST))
    column = _column(text, call.n)
    first, valid_first = _numbers(start, call.n)
    first = np.clip(first, -_LONGEST, _LONGEST)
    size = np.full(call.n, _LONGEST, dtype=np.int64)
    valid_size: Bools | None = None
    if length is not None:
        size, valid_size = _numbers(length, call.n)
        size = np.minimum(size, _LONGEST)
    total = _lengths(column)
    begin = np.where(first > 0, first - 1, np.where(first < 0, total + first, 0))
    stop = np.minimum(begin + size, total)
    keep = (begin >= 0) & (begin < stop)
    made = _slice_characters(column, np.where(keep, begin, 0), np.where(keep, stop, 0))
    valid = size >= 0
    for other in (valid_first, valid_size):
        valid = valid if other is None else valid & other
    return pc.if_else(pa.array(valid), made, pa.scalar(None, pa.string()))


def _lengths(column: pa.Array) -> Int64s:
    """Characters of each row, 0 of NULL."""
    return values_and_validity(pc.fill_null(char_length(column), 0))[0].astype(np.int64)


#: More characters than any text has.
_LONGEST = 2**31


def _constant_substring(text: Any, start: int, length: int | None) -> Any:
    if length is not None and length < 0:
        return pa.nulls(len(text), pa.string())
    if start >= 0:
        begin = max(start - 1, 0)
        return pc.utf8_slice_codeunits(text, begin, None if length is None else begin + length)
    made = pc.utf8_slice_codeunits(text, start, None)
    # Positions before the first character give nothing.
    made = pc.if_else(pc.less(pc.utf8_length(text), -start), "", made)
    return made if length is None else pc.utf8_slice_codeunits(made, 0, length)


def _slice_characters(text: pa.Array, begin: Int64s, stop: Int64s) -> pa.Array:
    """Characters [begin, stop) of each row, bounds within the row."""
    if len(text) >= KERNEL_ROWS:
        return cut(text, begin, stop)
    offsets, data = string_buffers(text)
    # Where each character starts; rows are contiguous, so character k of row i is the (first[i] + k)-th of all.
    base, end = int(offsets[0]), int(offsets[-1])
    used = data[base:end]
    starts = np.append(np.flatnonzero((used & 0xC0) != 0x80), len(used)).astype(np.int64)
    first = np.searchsorted(starts, offsets[:-1].astype(np.int64) - base)
    low, high = starts[first + begin], starts[np.minimum(first + stop, len(starts) - 1)]
    empty = begin >= stop
    low, high = np.where(empty, 0, low), np.where(empty, 0, high)
    return gather_bytes(used, low, high, validity(text))


def gather_bytes(data: npt.NDArray[np.uint8], low: Int64s, high: Int64s, valid: Bools | None) -> pa.Array:
    """Text column of byte ranges [low, high) of a buffer."""
    if len(low) >= KERNEL_ROWS:
        return gather(data, low, high, valid)
    sizes = high - low
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    source = np.repeat(low - offsets[:-1], sizes) + np.arange(offsets[-1])
    return make_strings(offsets, data[source], valid, pa.string())


@scalar("LEFT(STRING, INTEGER) -> $1", returns=_as_varchar, nulls=NULLABLE, spark=None)
def left(call: Invocation, text: Any, length: Any) -> Any:
    """The first characters; '' for a negative length."""
    column = _column(text, call.n)
    if isinstance(length, pa.Scalar) and length.is_valid:
        return pc.utf8_slice_codeunits(column, 0, max(length.as_py(), 0))
    size, valid = _numbers(length, call.n)
    total = _lengths(column)
    made = _slice_characters(column, np.zeros_like(size), np.clip(size, 0, total))
    return _where(valid, made)


@scalar("RIGHT(STRING, INTEGER) -> $1", returns=_as_varchar, nulls=NULLABLE, spark=None)
def right(call: Invocation, text: Any, length: Any) -> Any:
    """The last characters; '' for a negative length."""
    column = _column(text, call.n)
    if isinstance(length, pa.Scalar) and length.is_valid and length.as_py() > 0:
        return pc.utf8_slice_codeunits(column, -length.as_py(), None)
    size, valid = _numbers(length, call.n)
    total = _lengths(column)
    made = _slice_characters(column, total - np.clip(size, 0, total), total)
    return _where(valid, made)


def _where(valid: Bools | None, made: pa.Array) -> pa.Array:
    return made if valid is None else pc.if_else(pa.array(valid), made, pa.scalar(None, made.type))


@scalar("SPLIT_INDEX(STRING, STRING, INTEGER) -> STRING", nulls=NULLABLE, spark=None)
def split_index(call: Invocation, text: Any, separator: Any, index: Any) -> Any:
    """The piece at ``index`` (from 0) between separators; NULL when there is none."""
    if isinstance(separator, pa.Scalar) and isinstance(index, pa.Scalar) and isinstance(text, pa.Array):
        if not separator.is_valid or not index.is_valid:
            return pa.nulls(call.n, pa.string())
        return split_piece(text, separator.as_py(), index.as_py())
    rows = _column(index, call.n)
    made = pa.nulls(call.n, pa.string())
    column, separators = _column(text, call.n), _column(separator, call.n)
    marks, places = pc.unique(separators), pc.unique(rows)
    if len(marks) * len(places) > _MOST_PASSES:
        return map_rows([column, separators, rows], _piece_of, pa.string())
    for mark in marks:
        for place in places:
            if mark.is_valid and place.is_valid:
                chosen = pc.fill_null(pc.and_(pc.equal(separators, mark), pc.equal(rows, place)), False)
                made = pc.if_else(chosen, split_piece(column, mark.as_py(), place.as_py()), made)
    return made


#: Passes over a column before one distinct row after another is faster.
_MOST_PASSES = 16


def _piece_of(word: str, mark: str, index: int) -> str | None:
    if not word or index < 0:
        return None
    parts = word.split(mark) if mark else [word]
    return parts[index] if index < len(parts) else None


@scalar("SPLIT_INDEX(STRING, INTEGER, INTEGER) -> STRING", nulls=NULLABLE, spark=None)
def split_index_code(call: Invocation, text: Any, code: Any, index: Any) -> Any:
    """The same with the separator given as a character code."""
    codes = _column(code, 1 if isinstance(code, pa.Scalar) else call.n)
    known = pc.and_(pc.greater(codes, 0), pc.less_equal(codes, 255))
    mark = pc.if_else(known, chr_(codes), pa.scalar(None, pa.string()))
    return split_index(call, text, mark[0] if isinstance(code, pa.Scalar) else mark, index)


def split_piece(text: pa.Array, separator: str, index: int) -> pa.Array:
    """One piece of each row, NULL where there are not so many. Whole-column byte search, no row loop."""
    n, mark = len(text), separator.encode()
    if not n or not 0 <= index <= len(text.buffers()[2] or b""):
        return pa.nulls(n, pa.string())
    if mark and n >= KERNEL_ROWS:
        return pieces(text, separator, index)
    offsets, data = string_buffers(text)
    base, end = int(offsets[0]), int(offsets[-1])
    used = data[base:end]
    starts = (offsets - base).astype(np.int64)
    valid = validity(text)
    filled = np.diff(starts) > 0
    valid = filled if valid is None else valid & filled
    if not mark:
        return _where(valid & (index == 0), text)
    hits = find_bytes(used, mark)
    if len(mark) > 1 and len(hits):
        # A mark that reaches over a row's end is none, and must not hide one that follows.
        hits = hits[hits + len(mark) <= starts[np.searchsorted(starts, hits, side="right")]]
        hits = _without_overlaps(hits, len(mark))
    # Row i's separators are hits[first[i]:first[i + 1]].
    first = np.searchsorted(hits, starts)
    count = np.diff(first)
    valid = valid & (index <= count)
    padded = np.append(hits, 0)
    low = starts[:-1] if index == 0 else padded[np.where(valid, first[:-1] + index - 1, -1)] + len(mark)
    high = np.where(index < count, padded[np.minimum(first[:-1] + index, len(hits))], starts[1:])
    return gather_bytes(used, np.where(valid, low, 0), np.where(valid, high, 0), valid)


def find_bytes(data: npt.NDArray[np.uint8], mark: bytes) -> Int64s:
    """Every position where ``mark`` stands, overlapping ones too."""
    if len(data) < len(mark):
        return np.zeros(0, dtype=np.int64)
    hits = np.flatnonzero(data[: len(data) - len(mark) + 1] == mark[0])
    for place in range(1, len(mark)):
        hits = hits[data[hits + place] == mark[place]]
    return hits.astype(np.int64)


def _without_overlaps(hits: Int64s, size: int) -> Int64s:
    """Matches from left to right: one that starts inside the one before is none (``aa`` in ``aaa``)."""
    if not np.any(np.diff(hits) < size):
        return hits
    kept, free = [], -1
    for hit in hits.tolist():
        # Only texts with marks that overlap themselves come here.
        if hit >= free:
            kept.append(hit)
            free = hit + size
    return np.array(kept, dtype=np.int64)
