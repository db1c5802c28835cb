"""Lines of text files: files are found and read by the job, one behind the other in each subtask."""

from __future__ import annotations

import codecs
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

import numpy as np

from flowsql_connectors.filesystem.files import FoundFile, find_files
from flowsql_connectors.formats.rows_in_bytes import decompressed
from flowsql_connectors.spi.source import Split, SplitEnumerator
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.stream_specs import LineSourceSpec
from flowsql_runtime.operators.base import Int64s, OperatorContext, OperatorSnapshot, SourceOperator, SourceStatus
from flowsql_runtime.operators.pace import begin_slices
from flowsql_runtime.stream.emitter import object_column

#: Lists in snapshots: files that are not read to their end, with the lines already emitted; all files ever found.
_FILES: Final = "files"
_SEEN: Final = "seen"
#: Files that stay open while they are paused; others are opened again, and read up to where they stand.
OPEN_FILES: Final = 16
_LOOK_SLOT: Final = np.zeros(1, np.int64)


class LineSourceOperator(SourceOperator[LineSourceSpec]):
    """Emit the lines of files, those of one file in their order. A file is a split with a watermark of its own.

    Out    texts without timestamps.
    State  files that are not read to their end with their positions; where new files are waited for, all found so far.

    Source: Flink, ``FileSource``, ``TextLineInputFormat``, ``ContinuousFileSplitEnumerator``.
    """

    def __init__(self, spec: LineSourceSpec) -> None:
        super().__init__(spec)
        self._stop_at: int | None = None

    def open(self, ctx: OperatorContext) -> None:
        """Nothing is looked for yet."""
        self._pace = begin_slices(ctx)
        #: Files that are not read to their end, with the lines already emitted.
        self._unread: dict[str, int] = {}
        #: What is left of those that were begun, the one read last at the end.
        self._open: dict[str, Iterator[str]] = {}
        self._seen: set[str] = set()
        self._look = False

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """This subtask's files: those that are there, or those that were not read to their end."""
        ctx = self.ctx
        if snapshot is not None:
            for item in snapshot.lists.get(_FILES, ()):
                path, read = json.loads(item)
                self._take(path, read)
            for part in snapshot.union.get(_SEEN, ()):
                self._seen.update(json.loads(part))
        elif not self.spec.monitor_ms:
            files = _StaticFiles(self.spec.paths, ctx.parameters)
            dealt = ctx.job.splits_of(ctx.uid, ctx.subtask, ctx.parallelism, lambda: files)
            for split in dealt:
                self._take(split.id, 0)
        ctx.progress.bounded = not self.spec.monitor_ms
        if ctx.progress.aligned is not None:
            ctx.progress.aligned.of_splits = True
            ctx.progress.aligned.look()
        if self.spec.monitor_ms:
            self._look = True
            self._arm()

    def emit_next(self) -> SourceStatus:
        """The next lines of the first file that is not paused."""
        if self._look:
            self._look_for_files()
        if self._stop_at == 0:
            return SourceStatus.SUSPENDED if self._unread else SourceStatus.DRAINED
        if not self._unread:
            if self._stop_at is not None:
                return SourceStatus.DRAINED
            return SourceStatus.NOTHING_NOW if self.spec.monitor_ms else SourceStatus.END
        progress = self.ctx.progress
        wanted, paused = self._pace.rows, frozenset[str]()
        if self._stop_at is not None:
            wanted = min(wanted, self._stop_at)
        elif progress.aligned is not None:
            if progress.aligned.waits:
                return SourceStatus.NOTHING_NOW
            wanted, paused = progress.aligned.most_rows(wanted), progress.aligned.paused
        path = next(path for path in self._unread if path not in paused)
        began_ms = self._pace.begin()
        lines = list(islice(self._lines_of(path), wanted))
        self._unread[path] += len(lines)
        if self._stop_at is not None:
            self._stop_at -= len(lines)
        if lines:
            progress.current = path
            self.output.collect(ChangelogBatch((object_column(lines),), len(lines)))
            progress.current = None
            self._pace.done(len(lines), began_ms)
        if len(lines) < wanted:
            progress.unfinished.discard(path)
            del self._unread[path], self._open[path]
            if progress.aligned is not None:
                progress.aligned.look()
        return SourceStatus.MORE

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """A timer wakes the task: that of the next look for files, or of the alignment that it waits for."""

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Time to look for new files."""
        self._look = True
        self._arm()

    def caught_up(self) -> bool:
        """Whether it has looked, and every file that was found was read."""
        return not self._look and not self._unread

    def stop_at(self, rows: int) -> None:
        """Suspend after so many lines of this run."""
        self._stop_at = rows

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """Files with positions; all files found, which every new subtask has to know."""
        files = tuple(json.dumps(item).encode() for item in self._unread.items())
        seen = (json.dumps(sorted(self._seen)).encode(),) if self.spec.monitor_ms else ()
        return OperatorSnapshot(lists={_FILES: files}, union={_SEEN: seen})

    def _take(self, path: str, read: int) -> None:
        self._unread[path] = read
        self.ctx.progress.unfinished.add(path)

    def _lines_of(self, path: str) -> Iterator[str]:
        """The lines behind those that were emitted."""
        lines = self._open.pop(path, None)
        if lines is None:
            while len(self._open) >= OPEN_FILES:
                del self._open[next(iter(self._open))]
            lines = lines_of(path, self.spec.charset, self.ctx.parameters)
            for _ in islice(lines, self._unread[path]):
                pass
        self._open[path] = lines
        return lines

    def _look_for_files(self) -> None:
        """New files of this subtask: each path has one by its text, so that nobody needs to deal them out."""
        self._look = False
        for file in _found(self.spec.paths, self.ctx.parameters):
            mine = zlib.crc32(file.path.encode()) % self.ctx.parallelism == self.ctx.subtask
            if mine and file.path not in self._seen:
                self._seen.add(file.path)
                self._take(file.path, 0)
        if self.ctx.progress.aligned is not None:
            self.ctx.progress.aligned.look()

    def _arm(self) -> None:
        due = np.array([self.ctx.clock.now_ms() + self.spec.monitor_ms], np.int64)
        self.ctx.timers.register_processing_timers(due, _LOOK_SLOT)


class _StaticFiles(SplitEnumerator):
    """The files that are there when the job starts, dealt out in turn."""

    def __init__(self, paths: tuple[str, ...], settings: Mapping[str, str]) -> None:
        self._paths = paths
        self._settings = settings

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All files, path by path."""
        files = [Split(file.path, b"") for file in _found(self._paths, self._settings)]
        return [files[subtask::parallelism] for subtask in range(parallelism)]


def _found(paths: Iterable[str], settings: Mapping[str, str]) -> list[FoundFile]:
    return [file for path in paths for file in find_files(path, settings=settings)]


def lines_of(path: str, charset: str, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    r"""The lines of a file, which may be compressed; they end with ``\n``, ``\r`` or ``\r\n``, the last one need not.

    Bytes that are none of the character set become U+FFFD, as in Java.
    """
    found = FoundFile(path, 0, 0).view(settings or {})
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(charset)(errors="replace"), translate=True)
    rest = ""
    for chunk in decompressed(found):
        parts = (rest + decoder.decode(chunk)).split("\n")
        rest = parts.pop()
        yield from parts
    rest += decoder.decode(b"", final=True)
    if rest:
        yield from rest.removesuffix("\n").split("\n")
