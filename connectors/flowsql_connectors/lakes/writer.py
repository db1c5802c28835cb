"""Writing data files of lakes: one at a time for each partition, closed by size and by every checkpoint.

Rows wait in memory until a row group is worth writing. Files have names of their own and nobody reads them before the
committer names them in a commit.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_connectors.lakes.prepared import Prepared
from flowsql_connectors.partition_runs import combined, runs_of, taken_apart
from flowsql_connectors.spi.counters import BYTES_SENT
from flowsql_connectors.spi.sink import Committable, SinkWriter, WriterContext
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch

#: In-memory bytes of a row group, about, and of all rows of a writer that wait.
_GROUP_BYTES: Final = 32 << 20
_WAITING_BYTES: Final = 128 << 20


class DataFile(ABC):
    """A data file that takes rows."""

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Bytes written so far."""

    @abstractmethod
    def append(self, rows: Any) -> None:
        """Write an Arrow table as a row group."""

    @abstractmethod
    def finish(self) -> Mapping[str, Any]:
        """End it; what the committer needs to know of it, in forms of JSON."""

    @abstractmethod
    def discard(self) -> None:
        """Remove it, whole or not."""


class DataFiles(ABC):
    """Where and how the data files of a table are written."""

    #: A file takes no more rows from so many bytes on.
    target_bytes: int

    @abstractmethod
    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """Rows of the sink as an Arrow batch of the files."""

    @abstractmethod
    def partitions(self, rows: Any) -> list[Any]:
        """What the table is partitioned by, an array each, of a batch of :meth:`prepare`."""

    @abstractmethod
    def new_file(self, partition: tuple[Any, ...]) -> DataFile:
        """A file of a partition, given by its values in the forms of Python."""


class _Open:
    """A file with the rows that wait for it."""

    def __init__(self, file: DataFile) -> None:
        self.file = file
        self.waiting: list[Any] = []
        self.waiting_bytes = 0

    def add(self, rows: Any) -> None:
        self.waiting.append(rows)
        self.waiting_bytes += rows.nbytes
        if self.waiting_bytes >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            waiting, self.waiting, self.waiting_bytes = self.waiting, [], 0
            self.file.append(pa.Table.from_batches(waiting))


class LakeWriter(SinkWriter):
    """Writes one subtask's rows.

    Args:
        files: of the table.
        context: of the runtime.
    """

    def __init__(self, files: DataFiles, context: WriterContext) -> None:
        self._files = files
        self._context = context
        self._run = uuid.uuid4().hex[:16]
        self._sequence = 0
        self._open: dict[tuple[Any, ...], _Open] = {}
        #: Files that are whole and belong to no checkpoint, with what the committer shall know of them.
        self._closed: list[tuple[DataFile, Mapping[str, Any]]] = []

    def write(self, batch: ChangelogBatch) -> None:
        """Rows to the files of their partitions."""
        if not batch.num_rows:
            return
        rows = self._files.prepare(tuple(batch.columns), batch.num_rows)
        keys = self._files.partitions(rows)
        if not keys:
            self._append((), rows)
            return
        levels = [_numbered(key) for key in keys]
        order, runs = runs_of(combined([(codes, len(values)) for codes, values in levels], rows.num_rows))
        if order is not None:
            rows = rows.take(order)
        counts = [len(values) for _, values in levels]
        for number, start, stop in runs:
            places = taken_apart(number, counts)
            partition = tuple(values[at] for (_, values), at in zip(levels, places, strict=True))
            self._append(partition, rows.slice(start, stop - start))
        if sum(part.waiting_bytes for part in self._open.values()) > _WAITING_BYTES:
            for part in self._open.values():
                part.flush()

    def _append(self, partition: tuple[Any, ...], rows: Any) -> None:
        part = self._open.get(partition)
        if part is None:
            part = self._open[partition] = _Open(self._files.new_file(partition))
        part.add(rows)
        if part.file.size_bytes >= self._files.target_bytes:
            self._close(partition)

    def _close(self, partition: tuple[Any, ...]) -> None:
        part = self._open[partition]
        part.flush()
        told = part.file.finish()
        del self._open[partition]
        self._closed.append((part.file, told))
        self._context.count(BYTES_SENT, part.file.size_bytes)

    def prepare_commit(self) -> list[Committable]:
        """Close all files: the checkpoint counts on them from here on."""
        for partition in list(self._open):
            self._close(partition)
        closed, self._closed = self._closed, []
        self._sequence += 1
        if not closed:
            return []
        lineage = self._context.lineage or self._run
        return [Prepared(lineage, self._run, self._sequence, tuple(told for _, told in closed)).encode()]

    def close(self) -> None:
        """Remove what no checkpoint counts on."""
        for part in self._open.values():
            part.file.discard()
        for file, _ in self._closed:
            file.discard()
        self._open.clear()
        self._closed = []


def _numbered(key: Any) -> tuple[Any, Sequence[Any]]:
    """For each row the number of its value, and the values, of which there are few in a batch; NULL is the last one."""
    encoded = pc.dictionary_encode(key)
    indices, values = encoded.indices, encoded.dictionary.to_pylist()
    if key.null_count:
        indices = pc.fill_null(indices, len(values))
        values = [*values, None]
    return values_and_validity(indices)[0], values
