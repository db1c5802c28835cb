"""Ranges of bytes, as kernels of binary formats tell them, to columns of texts and bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import make_strings
from flowsql_compute.eval.text.format import decode_utf8
from flowsql_compute.kernels.wire.varints import gather_ranges

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_LENGTH: Final = 0x7FFFFFFF


def texts(ranges: Int64s, valid: npt.NDArray[np.bool_] | None, data: Bytes, target: Any, characters: bool) -> Any:
    """Ranges of bytes as a column of them; what is no UTF-8 in texts becomes U+FFFD, as in Java."""
    offsets = np.zeros(len(ranges) + 1, np.int64)
    np.cumsum(ranges & _LENGTH, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    made = make_strings(offsets, out, valid, target if not characters else pa.binary())
    gather_ranges(data, ranges, np.frombuffer(made.buffers()[1], np.int32), out)
    if not characters:
        return made
    if len(out) and int(out.max()) > 127:
        return decode_utf8(made)
    return made.view(pa.string())
