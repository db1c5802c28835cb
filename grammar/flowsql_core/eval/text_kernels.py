"""Kernels of ``kernels.text`` over Arrow columns. Worth their load time from ``KERNEL_ROWS`` rows on."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.eval.columns import Bools, make_array, make_strings, string_buffers, validity
from flowsql_core.kernels.views import for_kernel
from flowsql_core.record import record

#: Columns of fewer rows are served without Numba, whose import alone takes a fifth of a second.
KERNEL_ROWS = 4096

Int64s = npt.NDArray[np.int64]


def pieces(text: pa.Array, mark: str, index: int) -> pa.Array:
    """The ``index``-th piece of each row between non-empty marks; NULL where there is none."""
    from flowsql_core.kernels.text import piece_bounds

    offsets, data = string_buffers(text)
    low, high = np.empty(len(text), dtype=np.int64), np.empty(len(text), dtype=np.int64)
    piece_bounds(for_kernel(offsets), for_kernel(data), _bytes(mark), index, low, high)
    return _ranges(text, data, low, high)


def without_byte(text: pa.Array, unwanted: str) -> pa.Array:
    """Every occurrence of an ASCII character deleted."""
    from flowsql_core.kernels.text import delete_byte

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
    from flowsql_core.kernels.text import find_first

    offsets, data = string_buffers(text)
    found = np.empty(len(text), dtype=np.int32)
    find_first(for_kernel(offsets), for_kernel(data), _bytes(needle), found)
    return found


def gather(data: npt.NDArray[np.uint8], low: Int64s, high: Int64s, valid: Bools | None) -> pa.Array:
    """Text column of byte ranges [low, high) of a buffer."""
    from flowsql_core.kernels.text import copy_ranges

    offsets = np.zeros(len(low) + 1, dtype=np.int32)
    np.cumsum(high - low, out=offsets[1:])
    out = np.empty(int(offsets[-1]), dtype=np.uint8)
    copy_ranges(for_kernel(data), for_kernel(low), offsets, out)
    return make_strings(offsets, out, valid, pa.string())


def _ranges(text: pa.Array, data: npt.NDArray[np.uint8], low: Int64s, high: Int64s) -> pa.Array:
    found = low >= 0
    nulls = validity(text)
    return gather(data, low, high, found if nulls is None else found & nulls)


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8).copy()


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
    from flowsql_core.kernels.text import run_after_literal

    offsets, data = string_buffers(text)
    low, high = np.empty(len(text), dtype=np.int64), np.empty(len(text), dtype=np.int64)
    lead, stop = np.full(256, shape.lead is None), np.zeros(256, dtype=np.bool_)
    lead[list(shape.lead or ())] = True
    stop[list(shape.stop)] = True
    run_after_literal(
        for_kernel(offsets), for_kernel(data), _bytes(shape.literal), lead, shape.at_start, stop, shape.at_least,
        low, high,
    )  # fmt: skip
    return _ranges(text, data, low, high)
