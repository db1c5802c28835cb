"""Writing part files: hidden while they grow, one per partition folder, closed by size, age or a checkpoint.

Every checkpoint closes the parts of bulk formats. A part of a row format goes on behind it: the checkpoint remembers
its length, and a restore cuts it there.

A batch is encoded as a whole and cut into parts by partition; bytes of small parts wait in memory and reach the disk
in one write, so that thousands of tiny partitions cost no open files.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from flowsql_connectors.filesystem.buckets import Folders
from flowsql_connectors.filesystem.names import PartNames, hidden_name
from flowsql_connectors.filesystem.part import Part, PartFile, PartsOfWriter, WriterState
from flowsql_connectors.filesystem.partitions.folders import CommitPolicy
from flowsql_connectors.filesystem.stores.store import PartStore
from flowsql_connectors.formats.format import FileEncoder, PartEncoder
from flowsql_connectors.spi.counters import BYTES_SENT
from flowsql_connectors.spi.sink import Committable, SinkWriter, WriterContext
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK
from flowsql_core.record import record

#: Bytes that all open parts of a writer may keep in memory.
_KEPT_BYTES: Final = 32 * 1024 * 1024


@record
class Rolling:
    """When a part is closed: bytes, and milliseconds since its first and its last row."""

    size_bytes: int
    rollover_ms: int
    inactivity_ms: int
    check_ms: int


@dataclass(slots=True)
class _Closed:
    """A part that is whole, and the times of its first and its last row."""

    file: PartFile
    created_ms: int
    touched_ms: int


@dataclass(slots=True)
class _Open(_Closed):
    """A part that still takes rows."""

    encoder: PartEncoder


class FileWriter(SinkWriter):
    """Writes one subtask's rows.

    Args:
        store: the sink's folder.
        folders: where below it a row goes.
        names: of the parts.
        encoder: of the files' format.
        rolling: when parts are closed.
        closes_with_checkpoint: whether every checkpoint closes all parts; those of a bulk format are closed anyway.
        policy: when partitions are complete; None: nobody asks.
        durable: whether a checkpoint waits until its bytes are on the disk.
        context: of the runtime.
    """

    def __init__(
        self,
        store: PartStore,
        folders: Folders,
        names: PartNames,
        encoder: FileEncoder,
        rolling: Rolling,
        closes_with_checkpoint: bool,
        policy: CommitPolicy | None,
        durable: bool,
        context: WriterContext,
    ) -> None:
        self._store = store
        self._root = store.root
        self._folders = folders
        self._names = names
        self._encoder = encoder
        self._rolling = rolling
        self._closes_with_checkpoint = closes_with_checkpoint or encoder.bulk or store.ends_with_checkpoint
        self._policy = policy
        self._durable = durable
        self._context = context
        self._run = str(uuid.uuid4())
        self._lineage = context.lineage or self._run
        self._open: dict[str, _Open] = {}
        self._closed: list[_Closed] = []
        #: When partitions with parts that were not committed yet were first written to.
        self._partitions: dict[str, int] = {}
        self._parts = 0
        self._sequence = 0
        self._checked_ms = context.clock.now_ms()
        self._watermark_ms = MIN_WATERMARK
        self._ended = False

    def write(self, batch: ChangelogBatch) -> None:
        """Rows to the parts of their partitions."""
        if batch.num_rows:
            self._write_rows(batch)
        if batch.track is not None and len(batch.track):
            self._watermark_ms = max(self._watermark_ms, batch.track.last_ms)

    def on_watermark(self, watermark_ms: int) -> None:
        """Event time after the last written row."""
        self._watermark_ms = max(self._watermark_ms, watermark_ms)

    def _write_rows(self, batch: ChangelogBatch) -> None:
        now_ms = self._context.clock.now_ms()
        self._close_old(now_ms)
        order, runs = self._folders.group(batch.columns, batch.num_rows, now_ms)
        columns = tuple(batch.columns[index] for index in self._folders.file_columns)
        kinds = batch.kinds
        if order is not None:
            columns = tuple(pc.take(column, order) for column in columns)
            kinds = None if kinds is None else kinds[np.asarray(order)]
        rows = self._encoder.prepare_changes(columns, batch.num_rows, kinds)
        for folder, start, stop in runs:
            self._append(folder, rows, start, stop, now_ms)
        if sum(part.file.kept_bytes for part in self._open.values()) > _KEPT_BYTES:
            for part in self._open.values():
                if part.file.kept_bytes:
                    part.file.flush()

    def _append(self, folder: str, rows: Any, start: int, stop: int, now_ms: int) -> None:
        """As in Flink a part that is larger than the rolling size takes no further row."""
        limit = self._rolling.size_bytes
        while start < stop:
            part = self._open.get(folder)
            if part is None:
                part = self._open[folder] = self._new_part(folder, now_ms)
            elif part.encoder.size_bytes > limit:
                self._close_part(folder)
                continue
            until = part.encoder.rows_until(rows, start, stop, limit)
            part.encoder.append(rows, start, until)
            part.touched_ms = now_ms
            if part.encoder.size_bytes > limit:
                self._close_part(folder)
            start = until

    def _new_part(self, folder: str, now_ms: int) -> _Open:
        final = self._names.final(self._run, self._context.subtask, self._parts)
        self._parts += 1
        self._partitions.setdefault(folder, now_ms)
        file = self._store.new_file(folder, final, hidden_name(final, self._lineage))
        return _Open(file, now_ms, now_ms, self._encoder.open_part(file))

    def _close_old(self, now_ms: int) -> None:
        """Ages are looked at every ``check_ms``, as Flink's timer does."""
        if now_ms - self._checked_ms < self._rolling.check_ms:
            return
        self._checked_ms = now_ms
        for folder, part in list(self._open.items()):
            too_old = now_ms - part.created_ms >= self._rolling.rollover_ms
            if too_old or now_ms - part.touched_ms >= self._rolling.inactivity_ms:
                self._close_part(folder)

    def _close_part(self, folder: str) -> None:
        self._end_part(folder).file.finish()

    def _end_part(self, folder: str) -> _Closed:
        part = self._open.pop(folder)
        part.encoder.close()
        part.file.flush()
        self._context.count(BYTES_SENT, part.file.disk_bytes)
        closed = _Closed(part.file, part.created_ms, part.touched_ms)
        self._closed.append(closed)
        return closed

    def flush(self, end_of_input: bool) -> None:
        """After the last row no part goes on."""
        self._ended = self._ended or end_of_input

    def prepare_commit(self) -> list[Committable]:
        """Close what shall become visible with this checkpoint; the other parts go on behind it."""
        now_ms = self._context.clock.now_ms()
        self._close_old(now_ms)
        for folder, part in list(self._open.items()):
            if self._ends_with_checkpoint(folder, part, now_ms):
                self._end_part(folder)
        for growing in self._open.values():
            growing.file.flush()
        self._store.settle([part.file for part in (*self._closed, *self._open.values())], self._durable)
        for prepared in (*self._closed, *self._open.values()):
            prepared.file.in_checkpoint = True
        self._sequence += 1
        made = PartsOfWriter(
            lineage=self._lineage,
            run=self._run,
            subtask=self._context.subtask,
            writers=self._context.parallelism,
            sequence=self._sequence,
            watermark_ms=self._watermark_ms,
            now_ms=now_ms,
            closed=tuple(self._part(part) for part in self._closed),
            growing=tuple(self._part(part) for part in self._open.values()),
        )
        self._closed = []
        self._partitions = {folder: self._partitions[folder] for folder in self._open}
        return [made.encode()]

    def _ends_with_checkpoint(self, folder: str, part: _Open, now_ms: int) -> bool:
        # Behind the last watermark no row is expected, though the job may be stopped by a savepoint instead of an end.
        ended = self._ended or self._watermark_ms >= MAX_WATERMARK
        if self._closes_with_checkpoint or ended or part.encoder.size_bytes > self._rolling.size_bytes:
            return True
        # All that a complete partition holds must be visible before it is marked.
        return self._policy is not None and self._policy.is_complete(
            folder, self._partitions[folder], self._watermark_ms, now_ms
        )

    def _part(self, part: _Closed) -> Part:
        file = part.file
        return Part(
            file.root,
            file.folder,
            file.hidden,
            file.final,
            file.disk_bytes,
            self._partitions[file.folder],
            part.created_ms,
            part.touched_ms,
        )

    def snapshot(self) -> bytes:
        """The parts that go on."""
        growing = tuple(self._part(part) for part in self._open.values())
        return WriterState(self._lineage, self._watermark_ms, growing).encode()

    def restore(self, states: list[bytes]) -> None:
        """Go on with the parts of former writers; a second one of the same partition is closed, as in Flink."""
        decoded = [WriterState.decode(state) for state in states if state]
        if not decoded:
            return
        if not self._context.lineage:
            self._lineage = decoded[0].lineage
        self._watermark_ms = min(state.watermark_ms for state in decoded)
        for part in (part for state in decoded for part in state.growing):
            file = PartFile.resumed(part)
            self._partitions[part.folder] = min(part.partition_ms, self._partitions.get(part.folder, part.partition_ms))
            if self._encoder.bulk or part.folder in self._open or part.root != self._root:
                self._closed.append(_Closed(file, part.created_ms, part.touched_ms))
            else:
                encoder = self._encoder.resume_part(file, part.size)
                self._open[part.folder] = _Open(file, part.created_ms, part.touched_ms, encoder)

    def close(self) -> None:
        """Remove what no checkpoint counts on."""
        for part in (*self._open.values(), *self._closed):
            part.file.discard()
        self._open.clear()
        self._closed = []
