"""A local channel: subpartition of a producer and input channel of a consumer in one; elements go by reference.

Bounded in bytes: above its capacity the producer takes no new input (soft limit, it looks before each input); in the
middle of one input it may run over, up to ``HARD_FACTOR`` times the capacity, where it blocks. The consumer reads
channels in the order in which elements arrived, whatever input they belong to, so a full channel of one input cannot
starve another and a diamond cannot lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from flowsql_core.batch import ChangelogBatch, ColumnData, LateColumns, PyObjectColumn
from flowsql_core.element import CheckpointBarrier, EndOfInput, LatencyMarker, Watermark, WatermarkStatus
from flowsql_runtime.task.mailbox import Mailbox

Element: TypeAlias = ChangelogBatch | Watermark | WatermarkStatus | CheckpointBarrier | LatencyMarker | EndOfInput

#: How far above its capacity a channel may go within one input of its producer.
HARD_FACTOR = 4


class Spilled:
    """Stands in a queue for a batch on disk; its channel reads it when it is taken."""

    __slots__ = ()


def _bytes_of(column: ColumnData) -> int:
    return 64 * len(column) if isinstance(column, PyObjectColumn) else int(column.nbytes)


def referenced_bytes(batch: ChangelogBatch) -> int:
    """Bytes of the batch's own rows (a slice counts only its part; a Python object as 64)."""
    total = 0 if batch.kinds is None else batch.num_rows
    columns = batch.columns
    for index in range(len(columns)):
        origin = columns.origin(index) if isinstance(columns, LateColumns) else None
        if origin is not None:
            # Not gathered yet: its share of the column that it comes from.
            total += _bytes_of(origin[0]) * batch.num_rows // max(1, len(origin[0]))
        else:
            total += _bytes_of(columns[index])
    return total


class ConsumerQueue:
    """Everything that waits for one task, over all its inputs and channels, in order of arrival."""

    __slots__ = ("entries", "mailbox", "on_announced")

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        #: Run in the consumer's thread when a barrier is announced that stands in ``entries``.
        self.on_announced: Callable[[LocalChannel, CheckpointBarrier], None] | None = None
        self.entries: deque[tuple[LocalChannel, Element | Spilled, int]] = deque()


class LocalChannel:
    """From one subtask to another. ``put`` is called by one thread at a time, ``taken`` by the consumer only.

    Backlog = ``_put_bytes`` - ``_taken_bytes``, each written by one side only: no lock.
    """

    __slots__ = (
        "_producer",
        "_producer_waits",
        "_put_bytes",
        "_queue",
        "_taken_bytes",
        "capacity_bytes",
        "channel_index",
        "input_index",
        "on_stop",
        "stopped",
    )

    def __init__(
        self, producer: Mailbox, queue: ConsumerQueue, input_index: int, channel_index: int, capacity_bytes: int
    ) -> None:
        self._producer = producer
        self._queue = queue
        self.input_index = input_index
        self.channel_index = channel_index
        self.capacity_bytes = capacity_bytes
        self._put_bytes = 0
        self._taken_bytes = 0
        self._producer_waits = False
        #: Whether the consumer wants no more; what is put then is dropped.
        self.stopped = False
        #: Run in the producer's thread after :meth:`stop`.
        self.on_stop: Callable[[], None] | None = None

    @property
    def backlog_bytes(self) -> int:
        """Bytes that were put and not taken."""
        return self._put_bytes - self._taken_bytes

    def put(self, element: Element | Spilled, size_bytes: int = 0) -> None:
        """Hand an element to the consumer. Never blocks; see :meth:`await_room`."""
        if self.stopped:
            return
        self._put_bytes += size_bytes
        self._queue.entries.append((self, element, size_bytes))
        self._queue.mailbox.wake()

    def announce(self, barrier: CheckpointBarrier) -> None:
        """Tell the consumer of a barrier that was put and may wait behind many elements."""
        if self._queue.on_announced is not None and not self.stopped:
            self._queue.mailbox.submit(partial(self._queue.on_announced, self, barrier))

    def full(self) -> bool:
        """Whether the producer should stop taking input; if so, the consumer wakes it when there is room."""
        if self.backlog_bytes < self.capacity_bytes or self.stopped:
            return False
        self._producer_waits = True
        # Look again: the consumer may have taken everything before it could see the flag.
        return self.backlog_bytes >= self.capacity_bytes

    def overfull(self) -> bool:
        """Whether the backlog is above the hard limit."""
        return self.backlog_bytes > HARD_FACTOR * self.capacity_bytes and not self.stopped

    def await_room(self) -> None:
        """Producer's task thread: block while the backlog is above the hard limit."""
        while self.overfull():
            self._producer_waits = True
            if self.overfull():
                self._producer.sleep(None)

    def take(self, element: Element | Spilled, size_bytes: int) -> Element:
        """Consumer: an element of this size leaves the queue; what it is."""
        self._taken_bytes += size_bytes
        # Half full is early enough and saves wake-ups.
        if self._producer_waits and self.backlog_bytes <= self.capacity_bytes // 2:
            self._producer_waits = False
            self._producer.wake()
        assert not isinstance(element, Spilled)
        return element

    def stop(self) -> None:
        """Consumer: nothing more is wanted. The producer is freed if it waits for room, and hears of it."""
        self.stopped = True
        if self.on_stop is None:
            self._producer.wake()
        else:
            self._producer.submit(self.on_stop)
