"""Part files on their way from hidden to visible: their names, their bytes, and how checkpoints remember them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import orjson

from flowsql_connectors.filesystem.durable import cannot_write, remove
from flowsql_connectors.spi.sink import Committable
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record

#: A part writes through to disk from this size on.
_PART_BYTES: Final = 1024 * 1024


@record
class Part:
    """A part file as checkpoints remember it.

    Attributes:
        root: the table's folder.
        folder: the partition's folder below it, ``""`` for a table without partitions.
        hidden: file name until it is committed.
        final: file name from then on.
        size: bytes that count; what lies behind them in the hidden file belongs to no checkpoint.
        partition_ms: when its writer first wrote to the partition, processing time.
        created_ms: time of its first row.
        touched_ms: time of its last row.
    """

    root: str
    folder: str
    hidden: str
    final: str
    size: int
    partition_ms: int
    created_ms: int
    touched_ms: int

    @property
    def directory(self) -> str:
        """Where both names stand."""
        return os.path.join(self.root, self.folder) if self.folder else self.root

    @property
    def hidden_path(self) -> str:
        """Path until it is committed."""
        return os.path.join(self.directory, self.hidden)

    def fields(self) -> list[Any]:
        """As JSON takes them, in the order of the class."""
        return [
            self.root,
            self.folder,
            self.hidden,
            self.final,
            self.size,
            self.partition_ms,
            self.created_ms,
            self.touched_ms,
        ]

    @staticmethod
    def of_fields(fields: Sequence[Any]) -> Part:
        """The inverse of :meth:`fields`.

        Raises:
            ConnectorError: the names are none of a part: a snapshot that somebody made would move other files.
        """
        part = Part(*fields)
        plain = not any(mark in name for name in (part.hidden, part.final) for mark in ("/", "\0", os.sep))
        hides = part.hidden.startswith(".") and ".inprogress" in part.hidden and part.final not in ("", ".", "..")
        inside = not os.path.isabs(part.folder) and ".." not in part.folder.split("/")
        if not (plain and hides and inside):
            raise ConnectorError(
                "snapshot-names-other-files",
                f"A snapshot names '{part.hidden_path}' and '{part.final_path}' as a part of a table in '{part.root}', "
                "and they are none.",
                hint="do not use the snapshot: FlowSQL writes no such names",
            )
        return part

    @property
    def final_path(self) -> str:
        """Path from then on."""
        return os.path.join(self.directory, self.final)


@record
class PartsOfWriter:
    """What one writer hands to the committer with a checkpoint.

    Attributes:
        lineage: the job and all that it was restored from.
        run: this writer, new with every start.
        subtask: number of the writer.
        writers: how many there are.
        sequence: counts the writer's checkpoints.
        watermark_ms: event time that the writer has seen.
        now_ms: processing time of the writer.
        closed: parts to commit.
        growing: parts that take more rows, hidden on.
    """

    lineage: str
    run: str
    subtask: int
    writers: int
    sequence: int
    watermark_ms: int
    now_ms: int
    closed: tuple[Part, ...]
    growing: tuple[Part, ...]

    def encode(self) -> Committable:
        """As opaque bytes."""
        return Committable(
            orjson.dumps(
                {
                    "lineage": self.lineage,
                    "run": self.run,
                    "subtask": self.subtask,
                    "writers": self.writers,
                    "sequence": self.sequence,
                    "watermark": self.watermark_ms,
                    "now": self.now_ms,
                    "closed": [part.fields() for part in self.closed],
                    "growing": [part.fields() for part in self.growing],
                }
            )
        )

    @staticmethod
    def decode(committable: Committable) -> PartsOfWriter:
        """The inverse of :meth:`encode`."""
        body = orjson.loads(committable.data)
        return PartsOfWriter(
            body["lineage"],
            body["run"],
            body["subtask"],
            body["writers"],
            body["sequence"],
            body["watermark"],
            body["now"],
            tuple(Part.of_fields(fields) for fields in body["closed"]),
            tuple(Part.of_fields(fields) for fields in body["growing"]),
        )


@record
class WriterState:
    """What a writer goes on from after a restore."""

    lineage: str
    watermark_ms: int
    growing: tuple[Part, ...]

    def encode(self) -> bytes:
        """As opaque bytes."""
        body = {
            "lineage": self.lineage,
            "watermark": self.watermark_ms,
            "growing": [part.fields() for part in self.growing],
        }
        return orjson.dumps(body)

    @staticmethod
    def decode(data: bytes) -> WriterState:
        """The inverse of :meth:`encode`."""
        body = orjson.loads(data)
        return WriterState(
            body["lineage"], body["watermark"], tuple(Part.of_fields(fields) for fields in body["growing"])
        )


class PartFile:
    """The stream of one part: bytes in memory, then in a hidden file that is opened only to append to it."""

    def __init__(self, root: str, folder: str, final: str, hidden: str) -> None:
        self.root = root
        self.folder = folder
        self.final = final
        self.hidden = hidden
        self.directory = os.path.join(root, folder) if folder else root
        self.path = os.path.join(self.directory, hidden)
        self.kept_bytes = 0
        self.disk_bytes = 0
        #: A checkpoint may restore from it: it outlives its writer.
        self.in_checkpoint = False
        #: Its bytes, and its name in its folder, may not have reached the disk.
        self.bytes_unsynced = self.name_unsynced = False
        self._chunks: list[bytes] = []
        self._on_disk = False

    @staticmethod
    def resumed(part: Part) -> PartFile:
        """The hidden file of a checkpoint, cut to the bytes that counted then.

        Raises:
            ConnectorError: it is gone, or shorter than it was.
        """
        file = PartFile(part.root, part.folder, part.final, part.hidden)
        try:
            size = os.path.getsize(file.path)
            if size < part.size:
                raise ConnectorError(
                    "lost-part", f"Part file {file.path} has {size} bytes; the checkpoint counts on {part.size}."
                )
            os.truncate(file.path, part.size)
        except FileNotFoundError as error:
            raise ConnectorError(
                "lost-part",
                f"Part file {file.path}, which the checkpoint goes on writing, is gone.",
                hint="files that a later checkpoint committed are never taken back: restore from the latest one",
            ) from error
        except OSError as error:
            raise cannot_write(file.path, error) from error
        file.disk_bytes = part.size
        file.in_checkpoint = file._on_disk = True
        return file

    def write(self, data: bytes | memoryview, /) -> int:
        """Append bytes; a view may change when this returns."""
        if self.kept_bytes + len(data) >= _PART_BYTES:
            self._write_through(data)
        else:
            self._chunks.append(bytes(data))
            self.kept_bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Bytes in memory to the hidden file."""
        if self._chunks or not self._on_disk:
            self._write_through(b"")

    def _write_through(self, data: bytes | memoryview) -> None:
        """To the hidden file, behind the bytes in memory."""
        self._put(b"".join(self._chunks), data)
        self.name_unsynced = self.name_unsynced or not self._on_disk
        self.bytes_unsynced = self._on_disk = True
        self.disk_bytes += self.kept_bytes + len(data)
        self._chunks.clear()
        self.kept_bytes = 0

    def _put(self, kept: bytes, data: bytes | memoryview) -> None:
        try:
            if not self._on_disk:
                os.makedirs(self.directory, exist_ok=True)
            with open(self.path, "ab" if self._on_disk else "wb") as file:
                file.write(kept)
                file.write(data)
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def finish(self) -> None:
        """The part takes no more bytes."""
        self.flush()

    def discard(self) -> None:
        """Nothing of it remains, unless a checkpoint counts on it."""
        self._chunks.clear()
        if self._on_disk and not self.in_checkpoint:
            remove(self.path)
