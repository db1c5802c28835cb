"""Writing what tasks hand over, away from their threads: encode, write, say where it stands."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from typing import Any, Final

from flowsql_runtime.checkpoint.encode import EncodedPart, encode_in_flight, encode_keyed, encode_operator
from flowsql_runtime.checkpoint.manifest import NativeState, Part, SubtaskState, digest_of
from flowsql_runtime.checkpoint.shared_files import SharedUpload
from flowsql_runtime.checkpoint.storage import SnapshotFolder
from flowsql_runtime.network.in_flight import InFlight
from flowsql_runtime.operators.base import OperatorSnapshot

logger = logging.getLogger(__name__)

#: How long the end of a job waits for its last writes, seconds.
CLOSE_S: Final = 10.0
#: Threads that encode and write for one job.
WRITERS: Final = 2
#: Parts begin at multiples of this, so that what is mapped from a file is aligned for kernels.
ALIGNMENT: Final = 64


class WrittenTask:
    """The state of one task, written: per operator where it stands, and the bytes that go into ``_metadata``.

    ``written_bytes``: of state, without files that older checkpoints wrote.
    """

    def __init__(self, states: dict[str, SubtaskState], inline: bytes, written_bytes: int) -> None:
        self.states = states
        self.inline = inline
        self.written_bytes = written_bytes


class _Layout:
    """Bytes of one file as they are put together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.chunks: list[Any] = []
        self.size = 0
        #: Without the gaps between parts.
        self.state_bytes = 0

    def add(self, part: EncodedPart) -> Part:
        view = memoryview(part.data)
        made = Part(self.name, self.size, view.nbytes, digest_of(view), part.rows, part.groups)
        self.state_bytes += view.nbytes
        self.chunks.append(view)
        self.size += view.nbytes
        if self.size % ALIGNMENT:
            gap = ALIGNMENT - self.size % ALIGNMENT
            self.chunks.append(bytes(gap))
            self.size += gap
        return made


def write_task(
    folder: SnapshotFolder,
    name: str,
    subtask: int,
    snapshots: Mapping[str, OperatorSnapshot],
    compress: bool,
    inline_bytes: int,
    in_flight: InFlight | None = None,
    shared: SharedUpload | None = None,
) -> WrittenTask:
    """Write one task's operators into one file of a snapshot, or keep them for ``_metadata`` where they are small.

    Args:
        snapshots: by operator uid, the head of the task first.
        in_flight: what was on its way to the task.
        shared: where files of backends go; None: all state is in tables.

    Raises:
        ConnectorError: the storage refuses.
    """
    layout = _Layout(name)
    states = {}
    shared_bytes = 0
    for uid, snapshot in snapshots.items():
        on_its_way = None
        if in_flight is not None and in_flight.elements:
            on_its_way = layout.add(encode_in_flight(in_flight, compress))
            in_flight = None
        keyed = {
            state: tuple(layout.add(part) for part in encode_keyed(table, compress))
            for state, table in snapshot.tables().items()
        }
        native = None
        found = None if snapshot.frozen is None else snapshot.frozen.native()
        if found is not None:
            assert shared is not None, "a snapshot without shared files was asked for tables alone"
            files, written = shared.put(uid, subtask, found)
            shared_bytes += written
            private = {one: layout.add(EncodedPart(data, 0, None)) for one, data in found.private.items()}
            groups = (found.groups.start, found.groups.stop - 1)
            native = NativeState(found.backend, found.database, groups, files, private)
        operator = encode_operator(snapshot, compress)
        states[uid] = SubtaskState(
            subtask,
            keyed,
            None if operator is None else layout.add(operator),
            tuple(snapshot.watermarks_ms),
            on_its_way,
            native,
        )
    written_bytes = layout.state_bytes + shared_bytes
    if layout.size > inline_bytes:
        folder.write(name, layout.chunks)
        return WrittenTask(states, b"", written_bytes)
    return WrittenTask(states, b"".join(layout.chunks), written_bytes)


class SnapshotWriters:
    """Threads that run one job's writes in order of submission; a storage that hangs is left behind with them."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work``, which must not raise, soon."""
        with self._lock:
            self._submit(work)

    def _submit(self, work: Callable[[], None]) -> None:
        if len(self._threads) < WRITERS:
            thread = threading.Thread(target=_serve, args=(self._queue,), name="snapshot-writer", daemon=True)
            thread.start()
            self._threads.append(thread)
        self._queue.put(work)

    def settle(self) -> None:
        """Wait until all that was submitted is done; for at most :data:`CLOSE_S` seconds."""
        # Each thread stops here behind its last work, so that none of them can be busy with any.
        stopped = threading.Barrier(WRITERS + 1)

        def stop() -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                stopped.wait()

        with self._lock:
            if not self._threads:
                return
            for _ in range(WRITERS):
                self._submit(stop)
        with contextlib.suppress(threading.BrokenBarrierError):
            stopped.wait(CLOSE_S)

    def abandon(self) -> None:
        """Go on with new threads: those of now may hang. What they were given is still tried by them."""
        with self._lock:
            for _ in self._threads:
                self._queue.put(None)
            self._queue = SimpleQueue()
            self._threads = []

    def close(self) -> None:
        """Do what waits, then end; a storage that hangs is not waited for longer than :data:`CLOSE_S` seconds."""
        with self._lock:
            threads, self._threads = self._threads, []
            for _ in threads:
                self._queue.put(None)
        deadline = time.monotonic() + CLOSE_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def publish_within(folder: SnapshotFolder, metadata: bytes, timeout_s: float) -> bool:
    """Publish a snapshot; False if the storage took longer: then it does not count, also when it still arrives."""
    lock = threading.Lock()
    failures: list[BaseException] = []
    arrived = given_up = False

    def publish() -> None:
        nonlocal arrived
        try:
            folder.publish(metadata)
        except Exception as error:
            failures.append(error)
        with lock:
            arrived = True
            late = given_up
        if late:
            folder.remove()

    thread = threading.Thread(target=publish, name="snapshot-publisher", daemon=True)
    thread.start()
    thread.join(timeout_s)
    with lock:
        given_up = not arrived
    if failures:
        raise failures[0]
    return arrived


def _serve(queue: SimpleQueue[Callable[[], None] | None]) -> None:
    while True:
        work = queue.get()
        if work is None:
            return
        try:
            work()
        except Exception:
            logger.exception("a snapshot's write failed in an unexpected way")
