"""Writing part files: hidden while they grow, one set per partition folder, closed by size, age or a checkpoint.

A batch is encoded as a whole and cut into parts by partition; bytes of small parts wait in memory and reach the disk
in one write, so that thousands of tiny partitions cost no open files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

import orjson

from flowsql_connectors.filesystem.partition import CommitPolicy, Partitioner
from flowsql_connectors.formats.format import FileEncoder, PartEncoder
from flowsql_connectors.spi.sink import Committable, SinkWriter, WriterContext
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import MIN_WATERMARK
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record

#: Bytes that all open parts of a writer may keep in memory.
_KEPT_BYTES: Final = 32 * 1024 * 1024
#: A part writes through to disk from this size on.
_PART_BYTES: Final = 1024 * 1024


@record
class Rolling:
    """When a part is closed: bytes, and milliseconds since its first and its last row."""

    size_bytes: int
    rollover_ms: int
    inactivity_ms: int
    check_ms: int


class PartFile:
    """The stream of one part: bytes in memory, then in a hidden file that is opened only to append to it."""

    def __init__(self, root: str, folder: str, name: str) -> None:
        self.folder = folder
        directory = os.path.join(root, folder) if folder else root
        self.final = os.path.join(directory, name)
        self.hidden = os.path.join(directory, f".{name}.inprogress")
        self.kept_bytes = 0
        self._chunks: list[bytes] = []
        self._on_disk = False

    def write(self, data: bytes, /) -> int:
        """Append bytes."""
        self._chunks.append(data)
        self.kept_bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Bytes in memory to the hidden file."""
        try:
            if not self._on_disk:
                os.makedirs(os.path.dirname(self.hidden), exist_ok=True)
            with open(self.hidden, "ab" if self._on_disk else "wb") as file:
                file.write(b"".join(self._chunks))
        except OSError as error:
            raise ConnectorError("cannot-write", f"File {self.hidden} cannot be written: {error.strerror}") from error
        self._on_disk = True
        self._chunks.clear()
        self.kept_bytes = 0

    def discard(self) -> None:
        """Nothing of it remains."""
        self._chunks.clear()
        if self._on_disk:
            remove_hidden(self.hidden)


@dataclass(slots=True)
class _Open:
    """A part that still takes rows."""

    file: PartFile
    encoder: PartEncoder
    created_ms: int
    touched_ms: int


class FileWriter(SinkWriter):
    """Writes one subtask's rows."""

    def __init__(
        self,
        root: str,
        table: TableSpec,
        encoder: FileEncoder,
        rolling: Rolling,
        policy: CommitPolicy | None,
        default_name: str,
        run_id: str,
        context: WriterContext,
    ) -> None:
        self._root = root
        self._encoder = encoder
        self._rolling = rolling
        self._policy = policy
        self._context = context
        self._name = f"part-{run_id}-{context.subtask}"
        self._partitioner = Partitioner(table, default_name)
        self._file_columns = [
            index for index, column in enumerate(table.columns) if column.name not in table.partition_keys
        ]
        self._open: dict[str, _Open] = {}
        self._closed: list[PartFile] = []
        self._parts = 0
        self._checked_ms = context.clock.now_ms()
        self._watermark_ms = MIN_WATERMARK
        #: Partition folders and when this writer first saw them: the committer judges them, maybe after a restore.
        self._partitions: dict[str, int] = {}

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
        order, runs = self._partitioner.group(batch.columns, batch.num_rows)
        columns = tuple(batch.columns[index] for index in self._file_columns)
        if order is not None:
            columns = tuple(pc.take(column, order) for column in columns)
        rows = self._encoder.prepare(columns, batch.num_rows)
        for folder, start, stop in runs:
            self._append(folder, rows, start, stop, now_ms)
        if now_ms - self._checked_ms >= self._rolling.check_ms:
            self._close_old(now_ms)
        if sum(part.file.kept_bytes for part in self._open.values()) > _KEPT_BYTES:
            for part in self._open.values():
                if part.file.kept_bytes:
                    part.file.flush()

    def _append(self, folder: str, rows: Any, start: int, stop: int, now_ms: int) -> None:
        part = self._open.get(folder)
        if part is None:
            file = PartFile(self._root, folder, f"{self._name}-{self._parts}")
            self._parts += 1
            part = self._open[folder] = _Open(file, self._encoder.open_part(file), now_ms, now_ms)
            self._partitions.setdefault(folder, now_ms)
        part.encoder.append(rows, start, stop)
        part.touched_ms = now_ms
        if part.encoder.size_bytes >= self._rolling.size_bytes:
            self._close_part(folder)
        elif part.file.kept_bytes >= _PART_BYTES:
            part.file.flush()

    def _close_old(self, now_ms: int) -> None:
        self._checked_ms = now_ms
        for folder, part in list(self._open.items()):
            too_old = now_ms - part.created_ms >= self._rolling.rollover_ms
            if too_old or now_ms - part.touched_ms >= self._rolling.inactivity_ms:
                self._close_part(folder)

    def _close_part(self, folder: str) -> None:
        part = self._open.pop(folder)
        part.encoder.close()
        part.file.flush()
        self._closed.append(part.file)

    def prepare_commit(self) -> list[Committable]:
        """Close every part: what a checkpoint covers becomes visible with it."""
        for folder in list(self._open):
            self._close_part(folder)
        files = [[file.hidden, file.final, file.folder] for file in self._closed]
        self._closed = []
        progress = [self._context.subtask, self._context.parallelism, self._watermark_ms, self._context.clock.now_ms()]
        partitions = self._partitions if self._policy is not None else {}
        return [Committable(orjson.dumps([files, progress, partitions]))]

    def snapshot(self) -> bytes:
        """The partitions that are not known to be complete."""
        return orjson.dumps(self._partitions) if self._policy is not None else b""

    def restore(self, states: list[bytes]) -> None:
        """Partitions of former writers: reported again, marking one twice does no harm."""
        for state in states:
            if state:
                for folder, created_ms in orjson.loads(state).items():
                    self._partitions[folder] = min(created_ms, self._partitions.get(folder, created_ms))

    def close(self) -> None:
        """Remove what was not prepared."""
        for part in self._open.values():
            part.file.discard()
        for file in self._closed:
            file.discard()
        self._open.clear()
        self._closed = []


def remove_hidden(path: str) -> None:
    """Remove a hidden part if it is there."""
    try:
        os.remove(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConnectorError("cannot-write", f"File {path} cannot be removed: {error.strerror}") from error
