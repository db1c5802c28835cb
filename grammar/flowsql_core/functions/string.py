"""Text functions; positions and lengths count characters (code points), from 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.eval.columns import (
    Bools,
    make_array,
    make_strings,
    string_buffers,
    validity,
    values_and_validity,
)
from flowsql_core.eval.distinct import map_distinct, map_rows
from flowsql_core.eval.text_kernels import KERNEL_ROWS, first_byte, gather, pieces, without_byte
from flowsql_core.expr import Expr
from flowsql_core.functions.registry import CUSTOM, NULLABLE, Invocation, scalar
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import common_type, length_of

Int64s = npt.NDArray[np.int64]


def _as_varchar(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    """VARCHAR of the first argument's length."""
    return t.VarCharType(length=length_of(args[0].type))


def _column(datum: Any, n: int) -> pa.Array:
    return pa.repeat(datum, n) if isinstance(datum, pa.Scalar) else datum


def _numbers(datum: Any, n: int) -> tuple[Int64s, Bools | None]:
    values, valid = values_and_validity(_column(datum, n))
    return values.astype(np.int64), valid


# Case and length


@scalar("UPPER(STRING) -> $1", spark="UPPER({0})")
def upper(text: Any) -> Any:
    """In upper case."""
    return _recased(text, pc.utf8_upper, str.upper, _UPPER_SPECIAL)


@scalar("LOWER(STRING) -> $1", spark="LOWER({0})")
def lower(text: Any) -> Any:
    """In lower case."""
    return _recased(text, pc.utf8_lower, str.lower, _LOWER_SPECIAL)


#: Letters whose other case is several letters or depends on what stands around: Arrow maps one to one.
_UPPER_SPECIAL = "[ßŉǰΐΰևẖ-ẚὐὒὔὖᾀ-ᾯᾲ-ᾷᾼῂ-ῇῌῒΐῖῗῢΰῤῦῧῲ-ῷῼﬀ-ﬆﬓ-ﬗ]"
_LOWER_SPECIAL = "[İΣ]"


def _recased(text: Any, whole: Callable[[Any], Any], one: Callable[[str], str], special: str) -> Any:
    if pc.all(pc.string_is_ascii(text)).as_py() is False and pc.any(pc.match_substring_regex(text, special)).as_py():
        return map_distinct(text, one, pa.string())
    return whole(text)


@scalar("INITCAP(STRING) -> $1", spark=None)
def initcap(text: Any) -> Any:
    """ASCII words with a capital first letter and small others; letters beyond ASCII stay and end a word."""
    return map_distinct(text, _initcap, pa.string())


def _initcap(text: str) -> str:
    made, fresh = [], True
    for character in text:
        letter = character.isascii() and character.isalnum()
        made.append((character.upper() if fresh else character.lower()) if letter else character)
        fresh = not letter
    return "".join(made)


@scalar("CHAR_LENGTH(STRING) -> INT", aliases=("CHARACTER_LENGTH",), spark="CHAR_LENGTH({0})")
def char_length(text: Any) -> Any:
    """The number of characters."""
    # Bytes are characters where all are ASCII, and a column's offsets know them without a look at the text.
    return pc.binary_length(text) if pc.all(pc.string_is_ascii(text)).as_py() else pc.utf8_length(text)


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
        return _constant_substring(text, start.as_py(), None if length is None else length.as_py())
    column = _column(text, call.n)
    first, valid_first = _numbers(start, call.n)
    size = np.full(call.n, 2**31, dtype=np.int64)
    valid_size: Bools | None = None
    if length is not None:
        size, valid_size = _numbers(length, call.n)
    total = values_and_validity(pc.fill_null(pc.utf8_length(column), 0))[0].astype(np.int64)
    begin = np.where(first > 0, first - 1, np.where(first < 0, total + first, 0))
    stop = np.minimum(begin + size, total)
    keep = (begin >= 0) & (begin < stop)
    made = _slice_characters(column, np.where(keep, begin, 0), np.where(keep, stop, 0))
    valid = size >= 0
    for other in (valid_first, valid_size):
        valid = valid if other is None else valid & other
    return pc.if_else(pa.array(valid), made, pa.scalar(None, pa.string()))


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
    return make_strings(offsets.astype(np.int32), data[source], valid, pa.string())


@scalar("LEFT(STRING, INTEGER) -> $1", returns=_as_varchar, nulls=NULLABLE, spark=None)
def left(call: Invocation, text: Any, length: Any) -> Any:
    """The first characters; '' for a negative length."""
    column = _column(text, call.n)
    size, valid = _numbers(length, call.n)
    total = values_and_validity(pc.fill_null(pc.utf8_length(column), 0))[0].astype(np.int64)
    made = _slice_characters(column, np.zeros_like(size), np.clip(size, 0, total))
    return _where(valid, made)


@scalar("RIGHT(STRING, INTEGER) -> $1", returns=_as_varchar, nulls=NULLABLE, spark=None)
def right(call: Invocation, text: Any, length: Any) -> Any:
    """The last characters; '' for a negative length."""
    column = _column(text, call.n)
    size, valid = _numbers(length, call.n)
    total = values_and_validity(pc.fill_null(pc.utf8_length(column), 0))[0].astype(np.int64)
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
    for mark in pc.unique(separators):
        for place in pc.unique(rows):
            if mark.is_valid and place.is_valid:
                chosen = pc.fill_null(pc.and_(pc.equal(separators, mark), pc.equal(rows, place)), False)
                made = pc.if_else(chosen, split_piece(column, mark.as_py(), place.as_py()), made)
    return made


@scalar("SPLIT_INDEX(STRING, INTEGER, INTEGER) -> STRING", nulls=NULLABLE, spark=None)
def split_index_code(call: Invocation, text: Any, code: Any, index: Any) -> Any:
    """The same with the separator given as a character code."""
    mark = chr_(_column(code, 1 if isinstance(code, pa.Scalar) else call.n))
    return split_index(call, text, mark[0] if isinstance(code, pa.Scalar) else mark, index)


def split_piece(text: pa.Array, separator: str, index: int) -> pa.Array:
    """One piece of each row, NULL where there are not so many. Whole-column byte search, no row loop."""
    n, mark = len(text), separator.encode()
    if index < 0 or not n:
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


@scalar("CONCAT(STRING, STRING...) -> STRING", spark="CONCAT({0}, {1})")
def concat(*parts: Any) -> Any:
    """All behind each other; NULL when one is NULL."""
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "")


@scalar("CONCAT_WS(STRING, STRING, STRING...) -> STRING", spark=None)
def concat_ws(call: Invocation, separator: Any, *parts: Any) -> Any:
    """All parts that are not NULL, with the separator between them; NULL when that is NULL."""
    columns = [_column(part, call.n) for part in parts]
    return pc.binary_join_element_wise(*columns, separator, null_handling="skip")


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
        return map_distinct(text, lambda word: _pad_one(word, size, fill, join), pa.string())
    columns = [_column(text, call.n), length, filling]
    return map_rows(columns, lambda word, size, fill: _pad_one(word, size, fill, join), pa.string())


def _pad_one(word: str, size: int, fill: str, join: Callable[[str, str], str]) -> str | None:
    if size < 0 or (not fill and size > len(word)):
        return None
    missing = size - len(word)
    if missing <= 0:
        return word[:size]
    return join(word, (fill * (missing // len(fill) + 1))[:missing])


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


def _trimmed(call: Invocation, text: Any, characters: Any, side: str) -> Any:
    if characters is None:
        return _TRIMS[side](text, characters=" ")
    if isinstance(characters, pa.Scalar):
        if not characters.is_valid:
            return pa.nulls(call.n, pa.string())
        return _TRIMS[side](text, characters=characters.as_py())
    made = pa.nulls(call.n, pa.string())
    column = _column(text, call.n)
    for chosen in pc.unique(characters):
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
            return map_distinct(text, lambda word: word.replace("", new), pa.string())
        return replace_bytes(text, old, new)
    columns = [_column(text, call.n), search, replacement]
    return map_rows(columns, lambda word, old, new: word.replace(old, new), pa.string())


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
    columns = [datum for datum in (_column(text, call.n), replacement, start, length) if datum is not None]
    return map_rows(columns, _overlay_one, pa.string())


def _overlay_one(word: str, new: str, start: int, length: int | None = None) -> str:
    size = len(new) if length is None else length
    if start <= 0 or start > len(word):
        return word
    if start + size > len(word) or size < 0:
        return word[: start - 1] + new
    return word[: start - 1] + new + word[start - 1 + size :]


@scalar("TRANSLATE(STRING, STRING, STRING) -> STRING", aliases=("TRANSLATE3",), spark="TRANSLATE({0}, {1}, {2})")
def translate(call: Invocation, text: Any, search: Any, replacement: Any) -> Any:
    """Each character of ``search`` replaced by the one at its place; deleted where there is none."""
    columns = [_column(text, call.n), search, replacement]
    return map_rows(columns, _translate_one, pa.string())


def _translate_one(word: str, search: str, replacement: str) -> str:
    table: dict[int, str] = {}
    for place, character in enumerate(search):
        table.setdefault(ord(character), replacement[place] if place < len(replacement) else "")
    return word.translate(table)


@scalar("POSITION(STRING, STRING, [INTEGER]) -> INT", aliases=("LOCATE",), spark=None)
def position(call: Invocation, needle: Any, text: Any, start: Any = None) -> Any:
    """Where the first argument stands in the second, from ``start`` on; 0 when nowhere."""
    if isinstance(needle, pa.Array) and len(needle) == 1 and isinstance(text, pa.Scalar):
        return pa.array([_find(text.as_py(), needle[0].as_py(), 1 if start is None else start.as_py())], pa.int32())
    if start is None and isinstance(needle, pa.Scalar):
        if not needle.is_valid:
            return pa.nulls(call.n, pa.int32())
        return _first_position(text, needle.as_py())
    columns = [datum for datum in (_column(text, call.n), needle, start) if datum is not None]
    return map_rows(columns, _find, pa.int32())


def _first_position(text: pa.Array, needle: str) -> pa.Array:
    if needle and len(text) >= KERNEL_ROWS:
        found = make_array(first_byte(text, needle), validity(text), pa.int32())
    else:
        found = pc.find_substring(text, needle)
    ascii_only = pc.all(pc.string_is_ascii(text)).as_py() in (True, None)
    if ascii_only:
        return pc.add(found, pa.scalar(1, pa.int32()))
    # Bytes before the match as characters.
    return map_distinct(text, lambda word: word.find(needle) + 1, pa.int32())


def _find(word: str | None, needle: str | None, start: int | None = 1) -> int | None:
    if word is None or needle is None or start is None:
        return None
    if not needle:
        return 1
    return 0 if start <= 0 else word.find(needle, start - 1) + 1


@scalar("INSTR(STRING, STRING, [INTEGER], [INTEGER]) -> INT", spark=None)
def instr(call: Invocation, text: Any, needle: Any, start: Any = None, nth: Any = None) -> Any:
    """Where the ``nth`` occurrence stands, from ``start`` on (backwards when negative); 0 when nowhere."""
    if start is None and isinstance(needle, pa.Scalar) and needle.is_valid:
        return _first_position(text, needle.as_py())
    given = [datum for datum in (text, needle, start, nth) if datum is not None]
    return map_rows([_column(given[0], call.n), *given[1:]], _instr_one, pa.int32())


def _instr_one(word: str, needle: str, start: int = 1, nth: int = 1) -> int:
    if not needle:
        return 1
    if nth <= 0:
        raise ExecutionError("bad-argument", f"nthAppearance must be positive: {nth}")
    if start == 0:
        return 0
    if start > 0:
        place = start - 2
        for _ in range(nth):
            place = word.find(needle, place + 1)
            if place < 0:
                return 0
        return place + 1
    place = len(word) + start + len(needle)
    for _ in range(nth):
        place = word.rfind(needle, 0, max(place, 0))
        if place < 0:
            return 0
        place += len(needle) - 1
    return place - len(needle) + 2


@scalar("STARTSWITH(STRING, STRING) -> BOOLEAN", "STARTSWITH(BINARY, BINARY) -> BOOLEAN", spark=None)
def startswith(call: Invocation, text: Any, start: Any) -> Any:
    """Whether the first argument begins with the second."""
    if isinstance(start, pa.Scalar) and start.is_valid:
        return pc.starts_with(text, start.as_py())
    columns = [_column(text, call.n), start]
    return map_rows(columns, lambda word, part: word.startswith(part), pa.bool_())


@scalar("ENDSWITH(STRING, STRING) -> BOOLEAN", "ENDSWITH(BINARY, BINARY) -> BOOLEAN", spark=None)
def endswith(call: Invocation, text: Any, end: Any) -> Any:
    """Whether the first argument ends with the second."""
    if isinstance(end, pa.Scalar) and end.is_valid:
        return pc.ends_with(text, end.as_py())
    columns = [_column(text, call.n), end]
    return map_rows(columns, lambda word, part: word.endswith(part), pa.bool_())


@scalar("SPLIT(STRING, STRING) -> ARRAY<STRING>", spark=None)
def split(call: Invocation, text: Any, separator: Any) -> Any:
    """All pieces between separators; every character when the separator is empty, none of the empty text."""
    type_ = pa.list_(pa.string())

    def pieces_of(word: str, mark: str) -> list[str]:
        return [] if not word else word.split(mark) if mark else list(word)

    if isinstance(separator, pa.Scalar):
        if not separator.is_valid:
            return pa.nulls(call.n, type_)
        return map_distinct(text, lambda word: pieces_of(word, separator.as_py()), type_)
    return map_rows([_column(text, call.n), separator], pieces_of, type_)


def _choice_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    return common_type([arg.type for arg in args[1:]])


@scalar(
    "ELT(INTEGER, STRING, STRING...) -> STRING",
    "ELT(INTEGER, BINARY, BINARY...) -> BYTES",
    nulls=NULLABLE,
    returns=_choice_type,
    spark="ELT({0}, {1})",
)
def elt(call: Invocation, index: Any, *choices: Any) -> Any:
    """The argument at a position (from 1); NULL where there is none."""
    place, valid = _numbers(index, call.n)
    known = (place >= 1) & (place <= len(choices))
    known = known if valid is None else known & valid
    columns = [_column(choice, call.n) for choice in choices]
    rows = np.where(known, place - 1, 0) * call.n + np.arange(call.n)
    return pc.take(pa.concat_arrays(columns), pa.array(rows, mask=~known), boundscheck=False)
