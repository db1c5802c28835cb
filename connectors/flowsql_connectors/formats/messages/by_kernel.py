"""Messages of texts, of which a kernel reads the plain ones where they lie; the others are read as lines, and put
between the rest."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import all_ascii, make_array, string_buffers
from flowsql_connectors.formats.columnar.ranges import texts
from flowsql_connectors.formats.format import Columns, MessageDecoder, Messages
from flowsql_connectors.formats.messages.lines import LineMessages
from flowsql_core.arrow import compute as pc
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import BooleanType, IntegerType, LogicalType

#: After a batch that was mostly odd, so many batches are read as lines.
_PATIENCE: Final = 8


@record
class Slots:
    """What a kernel made of messages.

    ``values`` (columns, messages), int64: whole numbers, truth values, ranges of ``data`` (start << 31 | length).
    ``valid``, of the same shape, and ``odd`` (messages): uint8, 1 or 0.
    """

    values: npt.NDArray[np.int64]
    valid: npt.NDArray[np.uint8]
    odd: npt.NDArray[np.uint8]

    @staticmethod
    def of(columns: int, messages: int) -> Slots:
        """Room for them."""
        shape = columns, messages
        return Slots(np.zeros(shape, np.int64), np.zeros(shape, np.uint8), np.zeros(messages, np.uint8))


class KernelMessages(MessageDecoder):
    """Decodes messages that are mostly a plain row each.

    Args:
        types: of the wanted columns.
        lines: reads what is odd.
    """

    def __init__(self, types: list[LogicalType], lines: LineMessages) -> None:
        self._types = types
        self._lines = lines
        self._distrust = 0

    @abstractmethod
    def fill(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32], slots: Slots) -> int:
        """Run the kernel; how many messages are odd."""

    @abstractmethod
    def parsed(self, found: Any, type_: LogicalType) -> Any | None:
        """Texts as values of a type; None where the lines' rules are needed for one of them."""

    def decode(self, messages: Messages) -> Columns:
        """A row for each plain message; what lines give for the others."""
        values = messages.values
        if self._distrust or not len(values) or not _is_utf8(values):
            self._distrust = max(0, self._distrust - 1)
            return self._lines.decode(messages)
        offsets, data = string_buffers(values)
        slots = Slots.of(len(self._types), len(values))
        odd = self.fill(data, offsets, slots)
        if 2 * odd > len(values):
            self._distrust = _PATIENCE
        plain = np.flatnonzero(slots.odd == 0)
        if odd:
            slots = Slots(slots.values.take(plain, axis=1), slots.valid.take(plain, axis=1), slots.odd)
        arrays = [self._array(type_, slots, i, data) for i, type_ in enumerate(self._types)]
        if any(array is None for array in arrays):
            return self._lines.decode(messages)
        read = Columns(tuple(arrays), len(plain), None, plain)
        return self._with_odd(read, np.flatnonzero(slots.odd), messages) if odd else read

    def _array(self, type_: LogicalType, slots: Slots, index: int, data: npt.NDArray[np.uint8]) -> Any | None:
        """A column; None where a text in it is odd."""
        values, valid = slots.values[index], slots.valid[index].view(np.bool_)
        if isinstance(type_, IntegerType):
            return make_array(values, valid, to_arrow(type_))
        if isinstance(type_, BooleanType) and self.reads_truth:
            return make_array(values.astype(np.bool_), valid, to_arrow(type_))
        return self.parsed(texts(values, None if valid.all() else valid, data, pa.string(), characters=True), type_)

    #: Whether slots of truth values hold them, not their texts.
    reads_truth: bool = False

    def _with_odd(self, read: Columns, places: npt.NDArray[np.int64], messages: Messages) -> Columns:
        values = messages.values.take(pa.array(places))
        others = self._lines.decode(Messages(values, lambda index: messages.place(int(places[index]))))
        if not others.num_rows:
            return read
        assert others.lines is not None
        others = replace(others, lines=places[others.lines])
        if not read.num_rows:
            return others
        both = Columns.joined([read, others])
        assert both.lines is not None
        order = np.argsort(both.lines, kind="stable")
        return Columns(
            tuple(array.take(pa.array(order)) for array in both.arrays), both.num_rows, None, both.lines[order]
        )


def limits(type_: LogicalType) -> tuple[int, int]:
    """The least and the largest whole number of a type; zeros for types that are no whole numbers."""
    if not isinstance(type_, IntegerType):
        return 0, 0
    found = np.iinfo(to_arrow(type_).to_pandas_dtype())
    return int(found.min), int(found.max)


def _is_utf8(values: Any) -> bool:
    if all_ascii(values):
        return True
    try:
        pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        return False
    return True
