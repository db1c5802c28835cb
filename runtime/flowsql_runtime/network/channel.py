"""A local channel: subpartition of a producer and input channel of a consumer in one; elements go by reference.

Bounded in bytes: above its capacity the producer takes no new input (soft limit, it looks before each input); in the
middle of one input it may run over, up to ``HARD_FACTOR`` times the capacity, where it blocks. The consumer reads
channels in the order in which elements arrived, whatever input they belong to, so a full channel of one input cannot
starve another and a diamond cannot lock.
"""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.element import CheckpointBarrier, EndOfInput, LatencyMarker, Watermark, WatermarkStatus
from flowsql_runtime.task.mailbox import Mailbox
from flowsql_runtime.task.memory import OperatorMemory

Element: TypeAlias = ChangelogBatch | Watermark | WatermarkStatus | CheckpointBarrier | LatencyMarker | EndOfInput

#: How far above its capacity a channel may go within one input of its producer.
HARD_FACTOR = 4


def referenced_bytes(batch: ChangelogBatch) -> int:
    """Bytes of the batch's own rows (a slice counts only its part; a Python object as 64)."""
    total = 0 if batch.kinds is None else batch.num_rows
    for column in batch.columns:
        total += 64 * batch.num_rows if isinstance(column, PyObjectColumn) else column.nbytes
    return total


class ConsumerQueue:
    """Everything that waits for one task, over all its inputs and channels, in order of arrival."""

    __slots__ = ("entries", "mailbox")

    def __init__(self, mailbox: Mailbox) -> None:
        self.mailbox = mailbox
        self.entries: deque[tuple[LocalChannel, Element, int]] = deque()


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

    @property
    def backlog_bytes(self) -> int:
        """Bytes that were put and not taken."""
        return self._put_bytes - self._taken_bytes

    def put(self, element: Element, size_bytes: int = 0) -> None:
        """Hand an element to the consumer. Never blocks; see :meth:`await_room`."""
        self._put_bytes += size_bytes
        self._queue.entries.append((self, element, size_bytes))
        self._queue.mailbox.wake()

    def full(self) -> bool:
        """Whether the producer should stop taking input; if so, the consumer wakes it when there is room."""
        if self.backlog_bytes < self.capacity_bytes:
            return False
        self._producer_waits = True
        # Look again: the consumer may have taken everything before it could see the flag.
        return self.backlog_bytes >= self.capacity_bytes

    def overfull(self) -> bool:
        """Whether the backlog is above the hard limit."""
        return self.backlog_bytes > HARD_FACTOR * self.capacity_bytes

    def await_room(self) -> None:
        """Producer's task thread: block while the backlog is above the hard limit."""
        while self.overfull():
            self._producer_waits = True
            if self.overfull():
                self._producer.sleep(None)

    def taken(self, size_bytes: int) -> None:
        """Consumer: an element of this size left the queue."""
        self._taken_bytes += size_bytes
        # Half full is early enough and saves wake-ups.
        if self._producer_waits and self.backlog_bytes <= self.capacity_bytes // 2:
            self._producer_waits = False
            self._producer.wake()


class BlockingChannel(LocalChannel):
    """A blocking partition: the consumer sees nothing before the producer ended. What waits is reserved memory."""

    __slots__ = ("_held", "_memory")

    def __init__(
        self, producer: Mailbox, queue: ConsumerQueue, input_index: int, channel_index: int, memory: OperatorMemory
    ) -> None:
        super().__init__(producer, queue, input_index, channel_index, capacity_bytes=1 << 62)
        self._memory = memory
        self._held: list[tuple[Element, int]] = []

    def put(self, element: Element, size_bytes: int = 0) -> None:
        """Keep, and hand over everything with the end of input."""
        if size_bytes:
            self._memory.reserve(size_bytes)
        self._held.append((element, size_bytes))
        if isinstance(element, EndOfInput):
            for held, held_bytes in self._held:
                super().put(held, held_bytes)
            self._held.clear()

    def taken(self, size_bytes: int) -> None:
        """The consumer read it: give the memory back."""
        self._memory.release(size_bytes)
        super().taken(size_bytes)
