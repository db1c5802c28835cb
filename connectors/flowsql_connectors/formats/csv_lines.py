"""Lines of csv written by kernels: the columns of large outputs put their fields straight into the rows' bytes.

Whole numbers, timestamps and texts without a character to double go this way; the texts of other columns come from
``csv_encode``. The bytes are those that ``csv_encode`` joins.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import make_strings, string_buffers, validity, values_and_validity
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_core.record import record

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

_PER_SECOND: Final = {"s": (0, 1), "ms": (3, 1_000), "us": (6, 1_000_000), "ns": (9, 1_000_000_000)}
#: Seconds from 1970 to the years 1 and 10000.
_YEAR_1: Final = -62_135_596_800
_YEAR_10000: Final = 253_402_300_800
_ALL_VALID: Final = np.zeros(0, np.uint8)
_LARGEST: Final = (1 << 31) - 1


@record
class Integers:
    """A column of whole numbers."""

    values: Int64s
    valid: Bytes

    @staticmethod
    def of(array: Any) -> Integers:
        """Of any width."""
        values, valid = values_and_validity(array)
        return Integers(for_kernel(values.astype(np.int64, copy=False)), _flags(valid))

    def add_sizes(self, null: Bytes, sizes: Int64s) -> None:
        """Bytes of the fields."""
        from flowsql_compute.kernels.lines import add_integer_sizes

        add_integer_sizes(self.values, self.valid, len(null), sizes)

    def put(self, null: Bytes, after: int, cursors: Int64s, out: Bytes) -> None:
        """Write the fields."""
        from flowsql_compute.kernels.lines import put_integers

        put_integers(self.values, self.valid, null, after, cursors, out)


@record
class Timestamps:
    """A column of timestamps; ``quote`` and ``zone`` are 0 where none is written.

    ``grouped``: fractions have 3, 6 or 9 digits, else those up to the last one that is not zero.
    """

    values: Int64s
    valid: Bytes
    digits: int
    per_second: int
    grouped: bool
    quote: int
    zone: int

    @staticmethod
    def of(array: Any, quote: str | None, grouped: bool) -> Timestamps | None:
        """None for years that do not have four digits."""
        values, valid = values_and_validity(array)
        if valid is not None:
            values = np.where(valid, values, 0)
        digits, per_second = _PER_SECOND[array.type.unit]
        if len(values) and (
            int(values.min()) // per_second < _YEAR_1 or int(values.max()) // per_second >= _YEAR_10000
        ):
            return None
        zone = 0 if array.type.tz is None else ord("Z")
        return Timestamps(for_kernel(values), _flags(valid), digits, per_second, grouped, ord(quote or "\0"), zone)

    def add_sizes(self, null: Bytes, sizes: Int64s) -> None:
        """Bytes of the fields."""
        from flowsql_compute.kernels.lines import add_timestamp_sizes

        around = (2 if self.quote else 0) + (1 if self.zone else 0)
        add_timestamp_sizes(
            self.values, self.valid, len(null), self.digits, self.per_second, self.grouped, around, sizes
        )

    def put(self, null: Bytes, after: int, cursors: Int64s, out: Bytes) -> None:
        """Write the fields."""
        from flowsql_compute.kernels.lines import put_timestamps

        put_timestamps(
            self.values,
            self.valid,
            null,
            self.digits,
            self.per_second,
            self.grouped,
            self.quote,
            self.zone,
            after,
            cursors,
            out,
        )


@record
class Texts:
    """A column of texts. ``special``: by byte, what makes quotes necessary; longer texts than ``most`` get them, too.

    ``most`` -1: the texts have what quotes they need.
    """

    offsets: npt.NDArray[np.int32]
    data: Bytes
    valid: Bytes
    quoted: Bytes
    special: Bytes
    most: int
    quote: int

    @staticmethod
    def of(array: Any, special: Bytes, most: int, quote: str | None) -> Texts:
        """Of a string array."""
        offsets, data = string_buffers(array)
        quoted = np.zeros(len(array), np.uint8)
        valid = _flags(validity(array))
        return Texts(for_kernel(offsets), for_kernel(data), valid, quoted, special, most, ord(quote or "\0"))

    def add_sizes(self, null: Bytes, sizes: Int64s) -> None:
        """Bytes of the fields."""
        from flowsql_compute.kernels.lines import add_text_sizes

        add_text_sizes(self.offsets, self.data, self.valid, len(null), self.special, self.most, self.quoted, sizes)

    def put(self, null: Bytes, after: int, cursors: Int64s, out: Bytes) -> None:
        """Write the fields."""
        from flowsql_compute.kernels.lines import put_texts

        put_texts(self.offsets, self.data, self.valid, null, self.quote, self.quoted, after, cursors, out)


def lines(columns: list[Integers | Timestamps | Texts], num_rows: int, null: str, delimiter: str) -> Any | None:
    """The rows as a string array, each with its line end; None where they are too large for one."""
    text = np.frombuffer(null.encode(), np.uint8).copy()
    sizes = np.full(num_rows, len(columns), np.int64)
    for column in columns:
        column.add_sizes(text, sizes)
    ends = np.zeros(num_rows + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    if int(ends[-1]) > _LARGEST:
        return None
    out = np.frombuffer(pa.allocate_buffer(int(ends[-1])), np.uint8)
    cursors = ends[:-1].copy()
    for at, column in enumerate(columns, start=1):
        column.put(text, ord(delimiter if at < len(columns) else "\n"), cursors, out)
    return make_strings(ends.astype(np.int32), out, None, pa.string())


def _flags(valid: npt.NDArray[np.bool_] | None) -> Bytes:
    return _ALL_VALID if valid is None else for_kernel(valid.view(np.uint8))
