"""Columns of texts by Java date patterns of a fixed layout, without a look at each distinct text."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, string_buffers, validity
from flowsql_compute.eval.java.date_pattern import pattern_tokens
from flowsql_compute.eval.text.columns import KERNEL_ROWS
from flowsql_compute.kernels.contiguous import for_kernel

Int64s = npt.NDArray[np.int64]

#: Letters and how often they stand; the numbers are the kinds of ``kernels.moments``.
_KINDS = {"yyyy": 1, "uuuu": 1, "MM": 2, "LL": 2, "dd": 3, "HH": 4, "mm": 5, "ss": 6}
_LITERAL, _FRACTION = 0, 7
#: The first year whose dates are the same in Java's old calendar.
_GREGORIAN = 1583


def read_fixed(text: pa.Array, pattern: str, per_second: int, lenient: bool) -> tuple[Int64s, Bools] | None:
    """Moments of a string column: units since 1970 and which rows are neither NULL nor of the plain form.

    Plain texts mean the same to ``DateTimeFormatter`` and, with ``lenient``, to ``SimpleDateFormat``. None for short
    columns, patterns that have no fixed layout, and units finer than a microsecond.
    """
    pieces = _layout(pattern, lenient)
    if pieces is None or len(text) < KERNEL_ROWS or per_second > 1_000_000:
        return None
    from flowsql_compute.kernels.moments import ODD, read_moments

    offsets, data = string_buffers(text)
    values = np.empty(len(text), dtype=np.int64)
    layout = np.array(pieces, dtype=np.int64)
    length, first_year = int(layout[:, 1].sum()), _GREGORIAN if lenient else 1
    if not read_moments(for_kernel(offsets), for_kernel(data), layout, length, first_year, per_second, values):
        return values, np.zeros(len(text), dtype=np.bool_)
    odd: Bools = values == ODD
    values[odd] = 0
    valid = validity(text)
    return values, odd if valid is None else odd & valid


@lru_cache(maxsize=256)
def _layout(pattern: str, lenient: bool) -> tuple[tuple[int, int, int], ...] | None:
    """Kind, bytes and byte of each piece; None where a letter's width may vary."""
    pieces: list[tuple[int, int, int]] = []
    for token in pattern_tokens(pattern):
        if not token.letter:
            # A digit behind a number could be taken for a part of it.
            if token.count or any(character.isdigit() for character in token.text):
                return None
            pieces += [(_LITERAL, 1, byte) for byte in token.text.encode()]
            continue
        kind = _KINDS.get(token.letter * token.count)
        if token.letter == "S" and (token.count == 3 or (token.count <= 9 and not lenient)):
            kind = _FRACTION
        if kind is None or kind in (piece[0] for piece in pieces):
            return None
        pieces.append((kind, token.count, 0))
    return tuple(pieces) if any(piece[0] for piece in pieces) else None
