"""Messages whose format is one of lines: joined to lines, read by the decoder of files, and told apart again.

A message is a line where its format lets a line feed be a blank (JSON), else it is a row (csv). Where a message is bad,
or holds more or fewer rows than one and the decoder does not say which, messages are halved until it stands alone.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.format import (
    Columns,
    DecodeContext,
    Decoder,
    FileEncoder,
    FileView,
    MessageDecoder,
    MessageEncoder,
    Messages,
    Range,
)
from flowsql_connectors.spi.counters import ROWS_SKIPPED
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.record import record

#: Bytes of lines that are decoded at once.
_BLOCK_BYTES: Final = 8 << 20
#: Messages of JSON without a line feed inside of a text; a text of JSON.
_NO_RAW_FEED: Final = r'(?s)^[^"]*(?:"(?:[^"\\\n]|\\.)*"[^"]*)*$'
_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
#: What messages without rows are decoded to.
NO_ROWS: Final = Columns((), 0, None, np.empty(0, np.int64))


@record
class _Loss:
    """What a decoder left out of some messages: a counter's name, how many."""

    name: str
    count: int


class EmptyMessage(enum.Enum):
    """What a message without bytes is."""

    NOTHING = enum.auto()
    BAD = enum.auto()
    #: A bad one that is left out, as options say.
    SKIPPED = enum.auto()


class LineMessages(MessageDecoder):
    """Decodes messages of a format of lines.

    Args:
        make_decoder: the format's decoder of files.
        context: what is read.
        empty: what messages without bytes are.
        newline: what stands for a line feed inside of a message; None: it stays, and may be part of a value.
        row_a_message: a message is its first row; else a decoder tells the lines of its rows.
    """

    def __init__(
        self,
        make_decoder: Callable[[DecodeContext], Decoder],
        context: DecodeContext,
        empty: EmptyMessage,
        newline: str | None = None,
        row_a_message: bool = False,
    ) -> None:
        self._lose = context.lose
        self._lost: list[_Loss] = []
        self._decoder = make_decoder(replace(context, lose=self._note, tells_lines=not row_a_message))
        self._empty = empty
        self._newline = newline
        self._row_a_message = row_a_message

    def decode(self, messages: Messages) -> Columns:
        """The rows of all messages that have bytes."""
        values = messages.values
        lengths = np.asarray(pc.fill_null(pc.binary_length(values), 0))
        places = np.flatnonzero(lengths)
        if len(places) < len(values):
            if self._empty is not EmptyMessage.NOTHING:
                self._account_for_empty(messages, lengths)
            values = values.take(pa.array(places))
        if self._newline is not None:
            if _line_feeds(values):
                values = pc.replace_substring(_escaped_in_texts(values), "\n", self._newline)
        elif _line_feeds(values):
            values = pc.replace_substring_regex(values, r"\r?\n$", "")
        parts = list(self._parts(values, places, messages.place))
        return Columns.joined(parts) if parts else NO_ROWS

    def _account_for_empty(self, messages: Messages, lengths: npt.NDArray[Any]) -> None:
        """NULL is no row; a message of no bytes is a bad one."""
        valid = np.asarray(messages.values.is_valid())
        empty = np.flatnonzero(valid & (lengths == 0))
        if not len(empty):
            return
        first = int(empty[0])
        if self._empty is EmptyMessage.BAD:
            raise ExecutionError("empty-message", f"The message is empty\nin {messages.place(first)}")
        self._lose(ROWS_SKIPPED, len(empty), lambda: messages.place(first))

    def _parts(self, values: Any, places: npt.NDArray[np.int64], place: Callable[[int], str]) -> Iterator[Columns]:
        """Rows of blocks of messages. ``places``: where each value is among all messages."""
        ends = np.cumsum(np.asarray(pc.binary_length(values)), dtype=np.int64)
        start = 0
        while start < len(values):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _BLOCK_BYTES, side="right")))
            yield from self._halved(values.slice(start, stop - start), places[start:stop], place)
            start = stop

    def _halved(self, values: Any, places: npt.NDArray[np.int64], place: Callable[[int], str]) -> Iterator[Columns]:
        """A stack, not recursion: order is that of the messages."""
        left = [(0, len(values))]
        while left:
            start, stop = left.pop()
            first, last = int(places[start]), int(places[stop - 1])
            whole = self._attempt(values.slice(start, stop - start), places[start:stop], place(first))
            if whole is None:
                middle = (start + stop) // 2
                left += [(middle, stop), (start, middle)]
                continue
            for loss in self._lost:
                self._lose(loss.name, loss.count, partial(_between, place, first, last))
            if whole.num_rows:
                yield whole

    def _attempt(self, values: Any, places: npt.NDArray[np.int64], place: str) -> Columns | None:
        """None: they are to be halved."""
        self._lost = []
        try:
            rows = self._rows(values, places, place)
        except ExecutionError:
            if len(values) == 1:
                raise
            return None
        if rows.lines is not None:
            return rows
        if len(values) == 1:
            first = rows.slice(0, min(1, rows.num_rows))
            return replace(first, lines=places[: first.num_rows])
        # As many rows as lines: only quotes that swallow a line feed could hide that they are others.
        if rows.num_rows != len(values) or _line_feeds(values):
            return None
        return replace(rows, lines=places)

    def _rows(self, values: Any, places: npt.NDArray[np.int64], place: str) -> Columns:
        data = _as_lines(values)
        parts = list(self._decoder.read(FileView(place, len(data), None, data), Range(0, len(data))))
        if not parts:
            return NO_ROWS
        found = Columns.joined(parts)
        return found if found.lines is None else replace(found, lines=places[found.lines])

    def _note(self, name: str, count: int, where: Callable[[], str]) -> None:
        self._lost.append(_Loss(name, count))


def _between(place: Callable[[int], str], first: int, last: int) -> str:
    return place(first) if first == last else f"{place(first)} or after it"


def _line_feeds(values: Any) -> bool:
    """Whether there is one in any value."""
    _, offsets, data = values.buffers()
    if not len(values) or data is None:
        return False
    ends = np.frombuffer(offsets, np.int32, len(values) + 1, 4 * values.offset)
    return bytes(data[int(ends[0]) : int(ends[-1])]).find(b"\n") >= 0


def _escaped_in_texts(values: Any) -> Any:
    """Messages of JSON with an escape for each line feed inside of a text, where they have any."""
    odd = np.flatnonzero(~np.asarray(pc.match_substring_regex(values, _NO_RAW_FEED)))
    if not len(odd):
        return values
    made = values.to_pylist()
    for place in odd.tolist():
        made[place] = _TEXT.sub(lambda text: text.group().replace(b"\n", b"\\n"), made[place])
    return pa.array(made, values.type)


def _as_lines(values: Any) -> bytes:
    """The values, of which none is NULL, each with a line feed."""
    lines = pc.binary_join_element_wise(values, b"\n", b"")
    _, offsets, data = lines.buffers()
    if not len(lines):
        return b""
    ends = np.frombuffer(offsets, np.int32, len(lines) + 1, 4 * lines.offset)
    return bytes(data[int(ends[0]) : int(ends[-1])])


class LineMessageEncoder(MessageEncoder):
    """Lines without their ends as messages."""

    def __init__(self, encoder: FileEncoder) -> None:
        self._encoder = encoder

    def encode(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None = None) -> Any:
        """A line a row."""
        return without_line_feeds(self._encoder.prepare_changes(columns, num_rows, kinds))


def without_line_feeds(lines: Any) -> Any:
    """Bytes of lines without the line feed that ends each."""
    return pc.binary_slice(lines.cast(pa.binary()), 0, -1)
