"""Kernels of ``kernels.json.bytes`` and ``kernels.json.strings`` over Arrow columns.

They read plain documents. Every function here gives NULL for rows that it leaves to parsed documents and says which
they are; :func:`with_left` fills them in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_strings, string_buffers, validity
from flowsql_compute.eval.json.path import ModePath
from flowsql_compute.eval.text.columns import KERNEL_ROWS, Int64s, gather, with_left
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_compute.kernels.json.bytes import (
    ARRAY,
    DECIMAL,
    DEEPEST,
    ESCAPED,
    INTEGER,
    MISSING,
    MOST_MEMBERS,
    NULL,
    OBJECT,
    ODD,
    STRANGE_NUMBER,
    STRING,
    TRUTH,
    find_path,
    write_compact,
)
from flowsql_compute.kernels.json.strings import quote, unquote
from flowsql_core.record import record

__all__ = ["ARRAY", "DECIMAL", "INTEGER", "MISSING", "NULL", "OBJECT", "ODD", "SCALARS", "STRING", "TRUTH", "Bools",
           "with_left"]  # fmt: skip

SCALARS = frozenset([NULL, TRUTH, INTEGER, DECIMAL, STRING, STRANGE_NUMBER, ESCAPED])

Kinds = npt.NDArray[np.int8]
#: The longest output of a kernel; offsets of text columns have 32 bits.
_MOST_BYTES = 2**31 - 1


def is_large(column: Any) -> bool:
    """Whether kernels are worth their load time for a column."""
    return isinstance(column, pa.Array) and len(column) >= KERNEL_ROWS


def plain_steps(path: ModePath) -> tuple[str | int, ...] | None:
    """Keys and indexes of a path of nothing else; None for paths that kernels do not follow."""
    steps = None if path.path is None else path.path.plain
    # Kernels count no index from the end, and no deeper than documents that they read.
    if steps is None or len(steps) > 32 or any(isinstance(step, int) and step < 0 for step in steps):
        return None
    return steps


@record
class Found:
    """What stands at a path in each row: ``kind`` (n,) of ``kernels.json.bytes``, bytes [low, high) of ``data``.

    NULL rows have the kind ``ODD`` and are not ``left``.
    """

    data: npt.NDArray[np.uint8]
    low: Int64s
    high: Int64s
    kind: Kinds
    valid: Bools | None

    def text(self, rows: Bools) -> pa.Array:
        """The bytes of the rows given, NULL in the others."""
        return gather(self.data, np.where(rows, self.low, 0), np.where(rows, self.high, 0), rows)

    def left(self, rows: Bools) -> Bools:
        """Those of the rows that hold a document."""
        return rows if self.valid is None else rows & self.valid


def find(column: pa.Array, steps: Sequence[str | int]) -> Found:
    """What stands at a plain path in each document of a text column."""
    offsets, data = string_buffers(column)
    n = len(column)
    words = [step.encode() if isinstance(step, str) else b"" for step in steps]
    places = np.array([-1 if isinstance(step, str) else step for step in steps], dtype=np.int64)
    name_offsets = np.zeros(len(words) + 1, dtype=np.int32)
    np.cumsum([len(word) for word in words], out=name_offsets[1:])
    low, high, kind = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int8)
    names = np.frombuffer(b"".join(words), dtype=np.uint8).copy()
    counts = np.empty(len(words) + 1, dtype=np.int64)
    find_path(for_kernel(offsets), for_kernel(data), places, name_offsets, names, counts, low, high, kind)
    valid = validity(column)
    if valid is not None:
        kind[~valid] = ODD
    return Found(data, low, high, kind, valid)


@record
class Compact:
    """Texts without blanks; ``state`` (n,): 0 left, 1 written, 2 written otherwise than it was."""

    text: pa.Array
    state: Kinds


def compact(data: npt.NDArray[np.uint8], low: Int64s, high: Int64s, ordered: bool, trimmed: bool) -> Compact:
    """JSON texts at bytes [low, high) without blanks, as ``kernels.json.bytes.write_compact``; ``low`` -1: none."""
    n = len(low)
    sizes = np.where(low < 0, 0, high - low)
    longest = int(sizes.max(initial=0)) + 1
    offsets, out = np.empty(n + 1, dtype=np.int32), np.empty(int(sizes.sum()) + 1, dtype=np.uint8)
    state = np.empty(n, dtype=np.int8)
    write_compact(
        for_kernel(data), for_kernel(low), for_kernel(high), ordered, trimmed, np.empty(longest, dtype=np.int64),
        np.empty(DEEPEST + 2, dtype=np.int64), np.empty(MOST_MEMBERS, dtype=np.int64),
        np.empty(longest, dtype=np.uint8), state, offsets, out,
    )  # fmt: skip
    return Compact(make_strings(offsets, out[: offsets[-1]], state > 0, pa.string()), state)


def member_names(column: pa.Array, skipped: Bools) -> tuple[pa.Array, Bools]:
    """The names in each document as ``kernels.json.names.member_names``, '' in rows skipped; which are left."""
    # What reads no part of a VARIANT does not load it.
    from flowsql_compute.kernels.json.names import MOST_NAMES
    from flowsql_compute.kernels.json.names import member_names as find_names

    offsets, data = string_buffers(column)
    n = len(column)
    starts, ends = np.empty(MOST_NAMES, dtype=np.int64), np.empty(MOST_NAMES, dtype=np.int64)
    left = np.empty(n, dtype=np.bool_)
    out_offsets, out = np.empty(n + 1, dtype=np.int32), np.empty(int(offsets[-1] - offsets[0]) + 1, dtype=np.uint8)
    find_names(for_kernel(offsets), for_kernel(data), for_kernel(skipped), starts, ends, left, out_offsets, out)
    return make_strings(out_offsets, out[: out_offsets[-1]], None, pa.string()), left


def whole(column: pa.Array) -> tuple[npt.NDArray[np.uint8], Int64s, Int64s]:
    """Data, low and high of all bytes of each row, -1 for NULL."""
    offsets, data = string_buffers(column)
    bounds = offsets.astype(np.int64)
    valid = validity(column)
    return data, bounds[:-1] if valid is None else np.where(valid, bounds[:-1], -1), bounds[1:]


def quoted(column: pa.Array, short: dict[str, str]) -> pa.Array | None:
    """Each text as an ASCII JSON string, ``short`` being the escapes of one letter; None: the column is too long."""
    offsets, data = string_buffers(column)
    room = 4 * int(offsets[-1] - offsets[0]) + 2 * len(column)
    if room > _MOST_BYTES:
        return None
    letters = np.zeros(128, dtype=np.uint8)
    for character, escape in short.items():
        letters[ord(character)] = ord(escape[1])
    out_offsets, out = np.empty(len(offsets), dtype=np.int32), np.empty(room, dtype=np.uint8)
    written = quote(for_kernel(offsets), for_kernel(data), letters, out_offsets, out)
    return make_strings(out_offsets, out[:written], validity(column), pa.string())


def unquoted(column: pa.Array, long: dict[str, str]) -> tuple[pa.Array, Bools]:
    """Each text without quotes and escapes, ``long`` being what escapes of one letter mean, and which rows are left."""
    offsets, data = string_buffers(column)
    letters = np.zeros(128, dtype=np.uint8)
    for letter, character in long.items():
        letters[ord(letter)] = ord(character)
    left = np.empty(len(column), dtype=np.bool_)
    out_offsets = np.empty(len(offsets), dtype=np.int32)
    out = np.empty(int(offsets[-1] - offsets[0]), dtype=np.uint8)
    written = unquote(for_kernel(offsets), for_kernel(data), letters, left, out_offsets, out)
    valid = validity(column)
    return make_strings(out_offsets, out[:written], valid, pa.string()), left if valid is None else left & valid
