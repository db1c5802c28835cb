"""Lines of plain JSON as a column of texts, and what stands in them, without parsing them into rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.eval.json.plain_documents import ARRAY, OBJECT, ODD, STRING, find
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_compute.kernels.json.lines import names_within
from flowsql_core.arrow import compute as pc

_NEWLINE = 0x0A
Bools = npt.NDArray[np.bool_]


def _texts(data: bytes, starts: npt.NDArray[np.int64]) -> pa.StringArray:
    """The bytes from each start to the next one."""
    offsets = np.append(starts, len(data)).astype(np.int32)
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(offsets.tobytes()), pa.py_buffer(data))


def _line_starts(data: bytes) -> npt.NDArray[np.int64]:
    behind = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE) + 1
    return np.concatenate([[0], behind[behind < len(data)]])


def without_lines(data: bytes, field: str, wanted: Callable[[str], bool]) -> bytes:
    """The lines, blank ones in place of those whose ``field`` is a text that is not wanted."""
    lines = _texts(data, _line_starts(data))
    found = find(lines, [field])
    texts = found.text(found.kind == STRING).dictionary_encode()
    # Python over the distinct texts only: a file has few of them.
    refused = pa.array([not wanted(text) for text in texts.dictionary.to_pylist()], pa.bool_())
    dropped = pc.fill_null(refused.take(texts.indices), False)
    if not pc.any(dropped).as_py():
        return data
    kept = pc.if_else(dropped, "\n", lines)
    return bytes(kept.buffers()[2])


def names_in_lines(data: bytes, rows: int, field: str, names: Sequence[str]) -> Bools | None:
    """Whether each line's ``field`` holds a member of each name, however deep: shape (rows, names).

    ``rows``: how many lines are not blank. None where that is not told by plain JSON alone.
    """
    starts = _line_starts(data)
    if len(starts) != rows:
        blank = _blank(data, starts)
        starts = starts[~blank]
        if len(starts) != rows:
            return None
    found = find(_texts(data, starts), [field])
    if (found.kind == ODD).any():
        return None
    nested = (found.kind == OBJECT) | (found.kind == ARRAY)
    words = [name.encode() for name in names]
    offsets = np.cumsum([0, *map(len, words)], dtype=np.int32)
    marks = np.zeros(rows * len(words), np.uint8)
    plain = names_within(
        for_kernel(found.data),
        np.where(nested, found.low, 0),
        np.where(nested, found.high, 0),
        offsets,
        np.frombuffer(b"".join(words) + b"\0", np.uint8),
        marks,
    )
    return marks.view(np.bool_).reshape(rows, len(words)) if plain == 0 else None


def shown_lines(data: bytes) -> npt.NDArray[np.int64]:
    """Numbers of the lines that hold more than blanks."""
    return np.flatnonzero(~_blank(data, _line_starts(data)))


def _blank(data: bytes, starts: npt.NDArray[np.int64]) -> Bools:
    """Whether each line holds nothing but blanks."""
    shown = np.frombuffer(data, np.uint8) > 0x20
    return np.logical_not(np.logical_or.reduceat(shown, starts))


def codes(texts: pa.StringArray, numbers: dict[str, int], otherwise: int) -> npt.NDArray[np.int8]:
    """A number for each text, ``otherwise`` for others and for NULL."""
    encoded = texts.dictionary_encode()
    # Python over the distinct texts only.
    known = np.array([numbers.get(text, otherwise) for text in encoded.dictionary.to_pylist()] + [otherwise], np.int8)
    places, valid = values_and_validity(encoded.indices)
    return known[places if valid is None else np.where(valid, places, len(known) - 1)]
