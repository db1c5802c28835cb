"""Kernels of ``kernels.text`` over Arrow columns. Worth their load time from ``KERNEL_ROWS`` rows on."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import (
    Bools,
    make_array,
    make_strings,
    narrow_offsets,
    pack_validity,
    string_buffers,
    validity,
    values_and_validity,
)
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_core.arrow import compute as pc
from flowsql_core.record import record

#: Columns of fewer rows are served without Numba, whose import alone takes a fifth of a second.
KERNEL_ROWS = 4096

Int64s = npt.NDArray[np.int64]
#: Offsets of text columns have 32 bits.
_MOST_BYTES = 2**31 - 1


def pieces(text: pa.Array, mark: str, index: int) -> pa.Array:
    """The ``index``-th piece of each row between non-empty marks; NULL where there is none."""
    from flowsql_compute.kernels.text import piece_bounds, piece_bounds_of_byte

    offsets, data = string_buffers(text)
    low, high = np.empty(len(text), dtype=np.int64), np.empty(len(text), dtype=np.int64)
    marks = _bytes(mark)
    if len(marks) == 1:
        piece_bounds_of_byte(for_kernel(offsets), for_kernel(data), marks[0], index, low, high)
    else:
        piece_bounds(for_kernel(offsets), for_kernel(data), marks, index, low, high)
    return _ranges(text, data, low, high)


def without_byte(text: pa.Array, unwanted: str) -> pa.Array:
    """Every occurrence of an ASCII character deleted."""
    from flowsql_compute.kernels.text import delete_byte

    offsets, data = string_buffers(text)
    out_offsets = np.empty(len(offsets), dtype=np.int32)
    # Room: the kernel writes before it decides.
    out = np.empty(int(offsets[-1] - offsets[0]) + 64, dtype=np.uint8)
    written = delete_byte(for_kernel(offsets), for_kernel(data), ord(unwanted), out_offsets, out)
    return make_strings(out_offsets, out[:written], validity(text), pa.string())


def contains(text: pa.Array, needle: str) -> pa.Array:
    """Whether a non-empty text stands somewhere in each row."""
    return make_array(first_byte(text, needle) >= 0, validity(text), pa.bool_())


def first_byte(text: pa.Array, needle: str) -> npt.NDArray[np.int32]:
    """Byte position where a non-empty text first stands in each row, -1 where it does not."""
    from flowsql_compute.kernels.text import find_first

    offsets, data = string_buffers(text)
    found = np.empty(len(text), dtype=np.int32)
    searched = _bytes(needle)
    find_first(for_kernel(offsets), for_kernel(data), searched, _shifts(searched), found)
    return found


def nth_place(
    text: pa.Array, mark: pa.Array, start: pa.Array, nth: pa.Array, zero_finds_nothing: bool = False
) -> pa.Array:
    """Where the ``nth`` mark of each row begins, in characters from 1, searched from ``start`` on; 0 when nowhere.

    Places before the first are the first, or, ``zero_finds_nothing``, behind the last. NULL where one is NULL.
    """
    from flowsql_compute.kernels.search import find_nth

    (offsets, data), (mark_offsets, marks) = string_buffers(text), string_buffers(mark)
    first = values_and_validity(start)[0].astype(np.int64)
    first = np.where(first == 0, np.iinfo(np.int64).max, first - 1) if zero_finds_nothing else first - (first > 0)
    found = np.empty(len(text), dtype=np.int32)
    find_nth(
        for_kernel(offsets), for_kernel(data), for_kernel(mark_offsets), for_kernel(marks), first,
        for_kernel(values_and_validity(nth)[0].astype(np.int64)), found,
    )  # fmt: skip
    return make_array(found, _all_valid(text, mark, start, nth), pa.int32())


def cut(text: pa.Array, begin: Int64s, stop: Int64s) -> pa.Array:
    """Characters [begin, stop) of each row."""
    from flowsql_compute.kernels.cuts import character_bounds

    offsets, data = string_buffers(text)
    low, high = np.empty(len(text), dtype=np.int64), np.empty(len(text), dtype=np.int64)
    character_bounds(for_kernel(offsets), for_kernel(data), for_kernel(begin), for_kernel(stop), low, high)
    return gather(data, low, high, validity(text))


def overlaid(text: pa.Array, new: pa.Array, start: pa.Array, size: pa.Array) -> pa.Array | None:
    """Each text with ``size`` bytes from ``start`` on replaced, see ``kernels.cuts``; None: the column is too long."""
    from flowsql_compute.kernels.cuts import overlay_bytes

    (offsets, data), (new_offsets, new_data) = string_buffers(text), string_buffers(new)
    room = int(offsets[-1]) - int(offsets[0]) + int(new_offsets[-1]) - int(new_offsets[0])
    if room > _MOST_BYTES:
        return None
    # Larger numbers than any text is long would not fit when they are added.
    bounds = [np.clip(values_and_validity(n)[0].astype(np.int64), -_MOST_BYTES, _MOST_BYTES) for n in (start, size)]
    out_offsets, out = np.empty(len(text) + 1, dtype=np.int32), np.empty(room, dtype=np.uint8)
    written = overlay_bytes(
        for_kernel(offsets), for_kernel(data), for_kernel(new_offsets), for_kernel(new_data), *bounds, out_offsets, out
    )
    return make_strings(out_offsets, out[:written], _all_valid(text, new, start, size), pa.string())


def at_edge(text: pa.Array, mark: pa.Array, behind: bool) -> pa.Array:
    """Whether each row begins, or with ``behind`` ends, with its mark."""
    from flowsql_compute.kernels.search import stands_at_edge

    (offsets, data), (mark_offsets, marks) = string_buffers(text), string_buffers(mark)
    found = np.empty(len(text), dtype=np.bool_)
    stands_at_edge(
        for_kernel(offsets), for_kernel(data), for_kernel(mark_offsets), for_kernel(marks), behind, found
    )  # fmt: skip
    return make_array(found, _all_valid(text, mark), pa.bool_())


def _all_valid(*columns: pa.Array) -> Bools | None:
    """Where no column is NULL; None for everywhere."""
    made: Bools | None = None
    for mask in map(validity, columns):
        if mask is not None:
            made = mask if made is None else made & mask
    return made


def gather(data: npt.NDArray[np.uint8], low: Int64s, high: Int64s, valid: Bools | None) -> pa.Array:
    """Text column of byte ranges [low, high) of a buffer."""
    from flowsql_compute.kernels.text import copy_ranges

    ends = np.zeros(len(low) + 1, dtype=np.int64)
    np.cumsum(high - low, out=ends[1:])
    offsets = narrow_offsets(ends)
    out = np.empty(int(offsets[-1]), dtype=np.uint8)
    copy_ranges(for_kernel(data), for_kernel(low), offsets, out)
    return make_strings(offsets, out, valid, pa.string())


def _ranges(text: pa.Array, data: npt.NDArray[np.uint8], low: Int64s, high: Int64s) -> pa.Array:
    found = low >= 0
    nulls = validity(text)
    return gather(data, low, high, found if nulls is None else found & nulls)


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8).copy()


def _shifts(needle: npt.NDArray[np.uint8]) -> Int64s:
    """How far a search moves on by the byte under the needle's end, (256,): to where the needle has that byte next."""
    size = len(needle)
    shifts = np.full(256, size, np.int64)
    shifts[needle[:-1]] = size - 1 - np.arange(size - 1)
    return shifts


def with_left(column: pa.Array, made: pa.Array, left: Bools, slow: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """``made``, with ``slow`` of the column's rows where ``left``: what kernels left to the slow way."""
    if not left.any():
        return made
    if left.all():
        # The column itself: several paths into it share its documents.
        return slow(column)
    rows = make_array(left, None, pa.bool_())
    return pc.replace_with_mask(made, rows, slow(pc.filter(column, rows)))


# Other spellings of the same text


def url_encoded(text: pa.Array, kept: frozenset[str]) -> pa.Array | None:
    """Each text as a form field of a URL, the ASCII characters ``kept`` as they are; None: the column is too long."""
    from flowsql_compute.kernels.codecs import url_encode

    offsets, data = string_buffers(text)
    room = 3 * int(offsets[-1] - offsets[0])
    if room > _MOST_BYTES:
        return None
    bytes_kept = np.zeros(256, dtype=np.bool_)
    bytes_kept[[ord(character) for character in kept]] = True
    out_offsets, out = np.empty(len(offsets), dtype=np.int32), np.empty(room, dtype=np.uint8)
    written = url_encode(for_kernel(offsets), for_kernel(data), bytes_kept, out_offsets, out)
    return make_strings(out_offsets, out[:written], validity(text), pa.string())


def url_decoded(text: pa.Array) -> tuple[pa.Array, Bools]:
    """Form fields of URLs as texts, and the rows with escapes that are left to the slow way."""
    from flowsql_compute.kernels.codecs import url_decode

    offsets, data = string_buffers(text)
    left = np.empty(len(text), dtype=np.bool_)
    out_offsets = np.empty(len(offsets), dtype=np.int32)
    out = np.empty(int(offsets[-1] - offsets[0]), dtype=np.uint8)
    written = url_decode(for_kernel(offsets), for_kernel(data), left, out_offsets, out)
    valid = validity(text)
    return make_strings(out_offsets, out[:written], valid, pa.string()), left if valid is None else left & valid


def url_parts(text: pa.Array, part: int) -> tuple[pa.Array, Bools]:
    """A part (of ``kernels.urls``) of each plain URL, and the rows that are left to the slow way."""
    from flowsql_compute.kernels.urls import LEFT, url_part

    offsets, data = string_buffers(text)
    low, high = np.empty(len(text), dtype=np.int64), np.empty(len(text), dtype=np.int64)
    url_part(for_kernel(offsets), for_kernel(data), part, low, high)
    left = low == LEFT
    valid = validity(text)
    return _ranges(text, data, low, high), left if valid is None else left & valid


def inet_numbers_of(text: pa.Array) -> Int64s:
    """The number of each IPv4 address, (n,); -1 for other texts, anything for NULL."""
    from flowsql_compute.kernels.codecs import inet_numbers

    offsets, data = string_buffers(text)
    out = np.empty(len(text), dtype=np.int64)
    inet_numbers(for_kernel(offsets), for_kernel(data), out)
    return out


def java_hash_codes(text: pa.Array) -> pa.Array:
    """Java's hash code of each text, int32."""
    from flowsql_compute.kernels.codecs import java_hashes

    offsets, data = string_buffers(text)
    out = np.empty(len(text), dtype=np.int32)
    java_hashes(for_kernel(offsets), for_kernel(data), out)
    return make_array(out, validity(text), pa.int32())


# Regular expressions of one frequent shape


@record
class LiteralRun:
    """``(&|^)name=([^&]*)``: a literal behind certain characters, then a run up to certain others."""

    literal: str
    lead: frozenset[int] | None
    at_start: bool
    stop: frozenset[int]
    at_least: int
    group: int


_LEAD_GROUP = re.compile(r"\(((?:\\?[^\\()\[\]|*+?{}.$^]|\\[&?.]|\^)(?:\|(?:\\?[^\\()\[\]|*+?{}.$^]|\\[&?.]|\^))*)\)")
_LEAD_CLASS = re.compile(r"\[([^\\^\[\]\-][^\\^\[\]\-]*)\]")
_LITERAL = re.compile(r"(?:[A-Za-z0-9_=&:/;, \-@#%<>\"']|\\[.?*+$^|(){}\[\]/\-&=])+")
_RUN = re.compile(r"\(\[\^([^\\^\[\]\-]+)\]([*+])\)")


@lru_cache(maxsize=1024)
def literal_run(java: str) -> LiteralRun | None:
    """The shape of a pattern, or None for patterns that have another.

    >>> literal_run("(&|^)id=([^&]*)").literal
    'id='
    """
    place, lead, at_start, group = 0, None, True, 1
    found = _LEAD_GROUP.match(java)
    if found is not None:
        choices = [choice.replace("\\", "") for choice in found[1].split("|")]
        lead, at_start, group = frozenset(map(ord, set(choices) - {"^"})), "^" in choices, 2
    else:
        found = _LEAD_CLASS.match(java)
        if found is not None:
            lead, at_start = frozenset(map(ord, found[1])), False
    place = 0 if found is None else found.end()
    literal = _LITERAL.match(java, place)
    run = None if literal is None else _RUN.fullmatch(java, literal.end())
    if literal is None or run is None:
        return None
    stop = frozenset(map(ord, run[1]))
    if any(code > 127 for code in stop | (lead or frozenset())):
        return None
    return LiteralRun(literal[0].replace("\\", ""), lead, at_start, stop, int(run[2] == "+"), group)


def extract_run(text: pa.Array, shape: LiteralRun) -> pa.Array:
    """What the run's group holds in the first match of each row; NULL without a match."""
    from flowsql_compute.kernels.text import run_after_literal

    offsets, data = string_buffers(text)
    low, high = np.empty(len(text), dtype=np.int64), np.empty(len(text), dtype=np.int64)
    lead, stop = np.full(256, shape.lead is None), np.zeros(256, dtype=np.bool_)
    lead[list(shape.lead or ())] = True
    stop[list(shape.stop)] = True
    literal = _bytes(shape.literal)
    run_after_literal(
        for_kernel(offsets), for_kernel(data), literal, _shifts(literal), lead, shape.at_start, stop, shape.at_least,
        low, high,
    )  # fmt: skip
    return _ranges(text, data, low, high)


_CLASS_ITEM = r"(?:[0-9A-Za-z]-[0-9A-Za-z]|[^\\\[\]\-^&\x80-\U0010ffff]|\\[dws])"
_ONE_CLASS = re.compile(rf"(?:\[(\^?)({_CLASS_ITEM}+)\]|(\\[dws])|([0-9A-Za-z ,;:=/\"'%&#@!<>_~`-]))(\+?)")
_SHORT_CLASSES = {"d": "0-9", "w": "a-zA-Z_0-9", "s": " \t\n\x0b\f\r"}


@lru_cache(maxsize=1024)
def byte_class(java: str) -> tuple[frozenset[int], bool] | None:
    """The bytes that a pattern of one character class begins its matches with, and whether it takes whole runs.

    None for patterns of another shape.

    >>> byte_class("[0-2]+")
    (frozenset({48, 49, 50}), True)
    """
    found = _ONE_CLASS.fullmatch(java)
    if found is None:
        return None
    negated, items, short, single, runs = found.groups()
    named = re.sub(r"\\([dws])", lambda name: _SHORT_CLASSES[name[1]], items or short or "")
    if single is not None:
        codes = {ord(single)}
    elif re.search(r"([0-9A-Za-z])-([0-9A-Za-z])", named) is None:
        codes = set(map(ord, named))
    else:
        codes = set()
        for low, high, one in re.findall(r"(?s)([0-9A-Za-z])-([0-9A-Za-z])|(.)", named):
            codes |= {ord(one)} if one else set(range(ord(low), ord(high) + 1))
    if negated:
        # Characters beyond ASCII: their first byte, and in a run the others too.
        codes = (set(range(128)) - codes) | set(range(0x80 if runs else 0xC0, 256))
    return frozenset(codes), bool(runs)


def count_class(text: pa.Array, members: frozenset[int], runs: bool) -> pa.Array:
    """How often one of the bytes, or a run of them, stands in each row, int32."""
    from flowsql_compute.kernels.text import count_members

    offsets, data = string_buffers(text)
    member = np.zeros(256, dtype=np.bool_)
    member[list(members)] = True
    counts = np.empty(len(text), dtype=np.int32)
    count_members(for_kernel(offsets), for_kernel(data), member, runs, counts)
    return make_array(counts, validity(text), pa.int32())


def class_matches(text: pa.Array, members: frozenset[int], runs: bool) -> pa.Array:
    """The matches that :func:`count_class` counts, a list of texts a row; NULL of NULL."""
    from flowsql_compute.kernels.text import member_bounds

    counts, valid = values_and_validity(count_class(text, members, runs))
    sizes = counts if valid is None else np.where(valid, counts, 0)
    ends = np.cumsum(counts, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    offsets, data = string_buffers(text)
    member = np.zeros(256, dtype=np.bool_)
    member[list(members)] = True
    low, high = np.empty(total, dtype=np.int64), np.empty(total, dtype=np.int64)
    member_bounds(for_kernel(offsets), for_kernel(data), member, runs, low, high)
    if int(sizes.sum()) != total:
        # Bytes of NULL rows do not count.
        counted = np.repeat(np.ones(len(text), dtype=np.bool_) if valid is None else valid, counts)
        low, high = low[counted], high[counted]
    starts = np.zeros(len(text) + 1, dtype=np.int32)
    np.cumsum(sizes, out=starts[1:])
    buffers = [pack_validity(valid), pa.py_buffer(starts)]
    return pa.Array.from_buffers(pa.list_(pa.string()), len(text), buffers, children=[gather(data, low, high, None)])


def contains_bytes(texts: pa.StringArray, character: str) -> bool:
    """Whether any text holds a character: much quicker than a search by text. NULL texts' bytes may count."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return False
    ends = np.frombuffer(offsets, dtype=np.int32)
    return (
        bytes(memoryview(data)[int(ends[texts.offset]) : int(ends[texts.offset + len(texts)])]).find(character.encode())
        >= 0
    )
