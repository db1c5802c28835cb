"""A blocking subpartition: nothing is read before the producer ended; what memory cannot hold waits on disk."""

from __future__ import annotations

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import CheckpointBarrier, EndOfInput
from flowsql_runtime.network.channel import ConsumerQueue, Element, LocalChannel, Spilled
from flowsql_runtime.network.spill import FILE_BYTES, SpillFile, SpillSpace, spillable
from flowsql_runtime.task.mailbox import Mailbox
from flowsql_runtime.task.memory import OperatorMemory


class SpillableSubpartition(LocalChannel):
    """Holds batches in memory up to its share, and from the first one beyond in files, in order.

    Batches that no file can hold (Python objects, no columns) stay in memory; where the budget refuses even them, the
    job fails with ``memory-exceeded``.

    Args:
        memory: account at the process budget.
        share_bytes: what may be held in memory.
        space: where files are made.
        keeps: whether what was read stays until :meth:`let_go`, for a consumer that starts again.
    """

    __slots__ = ("_file", "_files", "_held", "_keeps", "_memory", "_share_bytes", "_space", "_whole")

    def __init__(
        self,
        producer: Mailbox,
        queue: ConsumerQueue,
        input_index: int,
        channel_index: int,
        memory: OperatorMemory,
        share_bytes: int,
        space: SpillSpace,
        keeps: bool = False,
    ) -> None:
        super().__init__(producer, queue, input_index, channel_index, capacity_bytes=1 << 62)
        self._keeps = keeps
        self._whole = False
        self._memory = memory
        self._share_bytes = share_bytes
        self._space = space
        self._held: list[tuple[Element | Spilled, int]] = []
        self._files: list[SpillFile] = []
        self._file: SpillFile | None = None

    @property
    def spilled_bytes(self) -> int:
        """Bytes on disk."""
        return sum(file.written_bytes for file in self._files)

    def put(self, element: Element | Spilled, size_bytes: int = 0) -> None:
        """Keep in memory or write; hand over everything with the end of input (or where a job is cut)."""
        if self.stopped:
            self.discard()
            return
        kept = element
        if size_bytes and isinstance(element, ChangelogBatch) and not self._keep(size_bytes):
            if spillable(element):
                kept = self._spill(element)
            else:
                self._memory.reserve(size_bytes)
        self._held.append((kept, size_bytes))
        if isinstance(element, EndOfInput | CheckpointBarrier):
            self._hand_over()
            self._whole = isinstance(element, EndOfInput)

    @property
    def intact(self) -> bool:
        """Whether the producer has ended and all that it put can be read (once more, if some was read)."""
        return self._keeps and self._whole and not self.stopped

    def replay(self, queue: ConsumerQueue) -> None:
        """Hand all over once more, to a consumer that starts again; only where :attr:`intact`."""
        self._queue = queue
        self._put_bytes = self._taken_bytes = 0
        for file in self._files:
            file.rewind()
        for element, size_bytes in self._held:
            super().put(element, size_bytes)

    def let_go(self) -> None:
        """The consumer has read all of it and will not start again by itself."""
        if self.intact:
            self._whole = False
            self.discard()

    def take(self, element: Element | Spilled, size_bytes: int) -> Element:
        """The consumer reads it: from its file, or giving the memory back."""
        if isinstance(element, SpillFile):
            found = element.next()
            if not element.unread and not self._keeps:
                self._space.forget(element)
            super().take(found, size_bytes)
            return found
        if not self._keeps:
            self._memory.release(size_bytes)
        return super().take(element, size_bytes)

    def _keep(self, size_bytes: int) -> bool:
        """Reserve memory, as long as nothing lies on disk: what follows a file must stand in a file, or the share is
        filled with what is read last."""
        if self._files or self._memory.held_bytes + size_bytes > self._share_bytes:
            return False
        return self._memory.try_reserve(size_bytes)

    def _spill(self, batch: ChangelogBatch) -> SpillFile:
        types = tuple(column.type for column in batch.columns)
        file = self._file
        if file is None or file.types != types or file.written_bytes >= FILE_BYTES:
            if file is not None:
                file.seal()
            file = self._file = self._space.new_file(types)
            self._files.append(file)
        file.append(batch)
        return file

    def _hand_over(self) -> None:
        if self._file is not None:
            self._file.seal()
        for element, size_bytes in self._held:
            super().put(element, size_bytes)
        if not self._keeps:
            self._held.clear()

    def discard(self) -> None:
        """Let go what waits; the consumer does not read any more."""
        for file in self._files:
            self._space.forget(file)
        self._memory.close()
        self._held.clear()
        self._files.clear()
        self._file = None
