"""Reading partitions: a thread consumes and another one decodes ahead, while the task works on what it polled.

The position of a split is the offset of the next row's record and how many of that record's rows were polled, so a
restored reader goes on exactly behind the last row, also where a record holds several.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Final

import confluent_kafka as ck
import numpy as np
import numpy.typing as npt

from flowsql_connectors.formats.format import Columns
from flowsql_connectors.kafka.bad_records import TolerantRows
from flowsql_connectors.kafka.client import Cluster, passes
from flowsql_connectors.kafka.enumerator import TopicSplit
from flowsql_connectors.kafka.native import PartitionEvent, RecordConsumer, Records
from flowsql_connectors.kafka.rows import RecordRows
from flowsql_connectors.spi.counters import BYTES_READ
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitBatch
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record

logger = logging.getLogger(__name__)

#: Decoded rows that may wait, in batches.
_BATCHES_AHEAD: Final = 2
#: How long the thread waits for records before it looks for new splits, seconds.
_WAIT_S: Final = 0.1


@record
class _Consumed:
    """Records of one partition, maybe none. ``next``: the offset behind them; ``rows_done``: rows of the first record
    that were polled before."""

    split_id: str
    records: Records | None
    next: int
    ends: bool
    rows_done: int = 0

    @property
    def count(self) -> int:
        """Of records."""
        return 0 if self.records is None else len(self.records.offsets)


@record
class _Piece:
    """Decoded rows of one partition. ``offsets``: of each row's record; ``next``: of the record behind them."""

    split_id: str
    columns: Columns
    offsets: npt.NDArray[np.int64]
    next: int
    ends: bool


@dataclass(slots=True)
class _Fetch:
    """Where consuming stands in a partition."""

    split: TopicSplit
    next: int
    paused: bool = False


class TopicReader(SourceReader):
    """Reads the partitions of one subtask side by side.

    Args:
        commits: whether positions that a checkpoint holds are committed under the group.
        poll_records: records that are consumed at once.
    """

    reads_side_by_side = True

    def __init__(
        self,
        cluster: Cluster,
        rows: RecordRows | TolerantRows,
        empty: ChangelogBatch,
        commits: bool,
        poll_records: int,
        context: ReaderContext,
    ) -> None:
        self._cluster = cluster
        self._rows = rows
        self._empty = empty
        self._commits = commits
        self._poll_records = poll_records
        self._context = context
        self._changed = threading.Condition()
        self._positions: dict[str, TopicSplit] = {}
        #: Splits that ended since the last checkpoint was complete: their offsets are committed with it.
        self._ended: dict[str, TopicSplit] = {}
        #: Positions that the thread has to commit.
        self._to_commit: dict[str, TopicSplit] = {}
        self._new: list[TopicSplit] = []
        #: What the first thread hands to the second one; an exception is its last word.
        self._consumed: deque[_Consumed | BaseException] = deque()
        self._pieces: deque[_Piece] = deque()
        self._failure: BaseException | None = None
        self._paused: Set[str] = frozenset()
        #: Where partitions ended when they were taken over; asked only where the job stops there.
        self._ends: dict[str, int] = {}
        self._no_more = False
        self._closed = False
        self._wake: Callable[[], None] | None = None
        self._threads: tuple[threading.Thread, ...] = ()
        self._consumer: RecordConsumer
        #: Whether the first thread may wait for the consumer, which lives until then.
        self._consumes = False
        #: The piece that polling is cutting into batches, and where it stands there.
        self._current: _Piece | None = None
        self._at = 0

    def add_splits(self, splits: list[Split]) -> None:
        """Take over partitions and start to consume."""
        with self._changed:
            for encoded in splits:
                split = TopicSplit.decode(encoded)
                self._positions[split.id] = split
                self._new.append(split)
            if splits and not self._threads:
                self._consumer = self._cluster.record_consumer(self._poll_records, self._rows.wanted)
                self._consumes = True
                name = f"kafka-{self._context.subtask}"
                self._threads = (
                    threading.Thread(target=self._consume_all, name=name, daemon=True),
                    threading.Thread(target=self._decode_all, name=f"{name}-decode", daemon=True),
                )
                for thread in self._threads:
                    thread.start()
            self._changed.notify_all()

    def no_more_splits(self) -> None:
        """END follows the last row."""
        with self._changed:
            self._no_more = True
        self._call_wake()

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows of a partition that is not paused; what went wrong in the thread is raised here."""
        while (piece := self._take()) is not None:
            polled = self._cut(piece, max_rows)
            if polled.batch.num_rows or polled.finished:
                return polled
        with self._changed:
            if self._failure is not None:
                raise self._failure
            return ReadStatus.END if self._no_more and not self._positions else ReadStatus.NOTHING_NOW

    def _take(self) -> _Piece | None:
        if self._current is not None and self._current.split_id not in self._paused:
            return self._current
        with self._changed:
            if self._current is not None:
                # It goes on where it was cut once its partition is not paused any more.
                rest = self._current.columns.slice(self._at, self._current.columns.num_rows)
                left = replace(self._current, columns=rest, offsets=self._current.offsets[self._at :])
                self._pieces.appendleft(left)
                self._current = None
            for place, piece in enumerate(self._pieces):
                if piece.split_id not in self._paused:
                    del self._pieces[place]
                    self._current, self._at = piece, 0
                    self._changed.notify_all()
                    return piece
        return None

    def _cut(self, piece: _Piece, max_rows: int) -> SplitBatch:
        start = self._at
        stop = min(start + max_rows, piece.columns.num_rows)
        self._at = stop
        position = self._positions[piece.split_id]
        finished = False
        if stop == piece.columns.num_rows:
            self._current = None
            position = replace(position, offset=piece.next, rows_done=0)
            finished = piece.ends
        else:
            offset = int(piece.offsets[stop])
            done = stop - int(np.searchsorted(piece.offsets, offset))
            if offset == position.offset:
                # Rows of the record that were polled before this piece, or before its first cut.
                done = position.rows_done + stop - max(start, int(np.searchsorted(piece.offsets, offset)))
            position = replace(position, offset=offset, rows_done=done)
        if finished:
            del self._positions[piece.split_id]
            self._ended[piece.split_id] = position
        else:
            self._positions[piece.split_id] = position
        if start == stop:
            return SplitBatch(piece.split_id, self._empty, finished)
        part = piece.columns.slice(start, stop)
        return SplitBatch(piece.split_id, ChangelogBatch.of(part.arrays, part.kinds, num_rows=stop - start), finished)

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` once something can be polled."""
        with self._changed:
            ready = self._failure is not None or (self._no_more and not self._positions)
            ready = ready or any(piece.split_id not in self._paused for piece in self._pieces)
            ready = ready or (self._current is not None and self._current.split_id not in self._paused)
            self._wake = None if ready else wake
        if ready:
            wake()

    def pause_splits(self, paused: Set[str]) -> bool:
        """These are consumed no further; what was consumed of them waits."""
        with self._changed:
            self._paused = frozenset(paused)
            self._changed.notify_all()
        return True

    def snapshot(self) -> list[Split]:
        """Unfinished partitions at the rows that were polled last."""
        return [position.encode() for position in self._positions.values()]

    def caught_up(self) -> bool:
        """Whether each partition was polled up to where it ended when the reader got it."""
        with self._changed:
            ends = dict(self._ends)
        return all(name in ends and position.offset >= ends[name] for name, position in self._positions.items())

    def positions_durable(self, splits: Sequence[Split]) -> None:
        """The thread commits the offsets under the group."""
        if not self._commits:
            return
        ended, self._ended = self._ended, {}
        with self._changed:
            self._to_commit.update(ended)
            self._to_commit.update((split.id, TopicSplit.decode(split)) for split in splits)
            self._changed.notify_all()

    def close(self) -> None:
        """Stop the threads; what they had consumed ahead is consumed again by whoever goes on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            if self._consumes:
                self._consumer.interrupt()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout=10)

    # -- the side of the thread that consumes -------------------------------------------------------------------------

    def _consume_all(self) -> None:
        fetches: dict[tuple[str, int], _Fetch] = {}
        try:
            while self._may_consume(fetches):
                self._commit()
                if not fetches:
                    continue
                found, events = self._consumer.consume(_WAIT_S)
                self._cluster.check()
                self._cluster.check_read({topic for topic, _ in fetches})
                self._take_in(found, events, fetches)
        except BaseException as error:  # raised again where it is polled, behind what was consumed before
            with self._changed:
                self._consumed.append(_translated(error, self._cluster))
                self._changed.notify_all()
        finally:
            self._commit()
            with self._changed:
                self._consumes = False
            self._consumer.close()

    def _commit(self) -> None:
        """Tell the group where tables stand; a commit that fails is logged, and the next one makes up for it."""
        with self._changed:
            positions, self._to_commit = self._to_commit, {}
        if positions:
            try:
                self._consumer.commit((one.topic, one.partition, one.offset) for one in positions.values())
            except ck.KafkaException as error:
                logger.warning("offsets of group '%s' were not committed: %s", self._cluster.group, error.args[0].str())

    def _may_consume(self, fetches: dict[tuple[str, int], _Fetch]) -> bool:
        """Take new partitions, pause and resume, and wait for some and for room; False at the end."""
        with self._changed:
            while not self._ended_early() and not self._new and not self._to_commit:
                if fetches and not self._full():
                    break
                self._changed.wait()
            if self._ended_early():
                return False
            new, self._new = self._new, []
            paused = self._paused
        if new:
            fetches.update(((split.topic, split.partition), _Fetch(split, split.offset)) for split in new)
            if self._context.available_now:
                ends = self._cluster.questions().latest([(split.topic, split.partition) for split in new])
                with self._changed:
                    self._ends.update((split.id, ends[split.topic, split.partition]) for split in new)
            self._consumer.assign((split.topic, split.partition, split.offset) for split in new)
        for stops, change in ((True, self._consumer.pause), (False, self._consumer.resume)):
            some = [one for one in fetches.values() if one.paused != stops and (one.split.id in paused) == stops]
            if some:
                change((one.split.topic, one.split.partition) for one in some)
                for one in some:
                    one.paused = stops
        return True

    def _ended_early(self) -> bool:
        return self._closed or self._failure is not None

    def _full(self) -> bool:
        """Whether enough rows wait that may be polled, or records that become rows."""
        waiting = sum(piece.columns.num_rows for piece in self._pieces if piece.split_id not in self._paused)
        waiting += sum(
            one.count for one in self._consumed if isinstance(one, _Consumed) and one.split_id not in self._paused
        )
        return waiting >= _BATCHES_AHEAD * self._context.batch_rows

    def _take_in(
        self,
        found: Sequence[Records],
        events: Sequence[PartitionEvent],
        fetches: dict[tuple[str, int], _Fetch],
    ) -> None:
        """Rows of records; what came among them that is none."""
        ends: dict[tuple[str, int], int] = {}
        for event in events:
            key = event.topic, event.partition
            if event.error.code() == ck.KafkaError._PARTITION_EOF:
                ends[key] = event.offset
            elif not passes(event.error):
                raise _bad_partition(key, event.error, fetches.get(key), self._cluster)
        for records in found:
            fetch = fetches.get((records.topic, records.partition))
            if fetch is not None:
                self._keep(records, fetch, fetches)
        for key, end in ends.items():
            fetch = fetches.get(key)
            # Behind the last record there may be marks of transactions, which are none.
            if fetch is not None and end > fetch.next:
                self._put(fetch, fetches, None, end)

    def _keep(self, records: Records, fetch: _Fetch, fetches: dict[tuple[str, int], _Fetch]) -> None:
        """Records before the offset at which the partition ends for this reader."""
        following = int(records.offsets[-1]) + 1
        stop = fetch.split.stop
        if stop is not None and following > stop:
            records = records.part(0, int(np.searchsorted(records.offsets, stop)))
            following = stop
        self._put(fetch, fetches, records if len(records.offsets) else None, following)

    def _put(
        self, fetch: _Fetch, fetches: dict[tuple[str, int], _Fetch], records: Records | None, following: int
    ) -> None:
        split = fetch.split
        ends = split.stop is not None and following >= split.stop
        rows_done = 0
        if records is not None and fetch.next == split.offset and int(records.offsets[0]) == split.offset:
            rows_done = split.rows_done
        fetch.next = following
        if ends:
            del fetches[split.topic, split.partition]
            self._consumer.unassign(split.topic, split.partition)
        with self._changed:
            self._consumed.append(_Consumed(split.id, records, following, ends, rows_done))
            self._changed.notify_all()

    # -- the side of the thread that decodes --------------------------------------------------------------------------

    def _decode_all(self) -> None:
        try:
            while (consumed := self._next_consumed()) is not None:
                piece = self._decoded(consumed)
                with self._changed:
                    self._pieces.append(piece)
                    self._consumed.popleft()
                self._call_wake()
        except BaseException as error:  # raised again where it is polled
            with self._changed:
                self._failure = _translated(error, self._cluster)
                self._changed.notify_all()
            self._call_wake()
        finally:
            self._rows.close()

    def _next_consumed(self) -> _Consumed | None:
        """What is to be decoded next, which stays in its place meanwhile; None at the end."""
        with self._changed:
            while not self._consumed and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            found = self._consumed[0]
        if isinstance(found, BaseException):
            raise found
        return found

    def _decoded(self, consumed: _Consumed) -> _Piece:
        records, done = consumed.records, consumed.rows_done
        if records is None:
            return _Piece(consumed.split_id, Columns((), 0), np.empty(0, np.int64), consumed.next, consumed.ends)
        columns = self._rows.decode(records)
        self._context.count(BYTES_READ, records.value_bytes)
        assert columns.lines is not None
        offsets = records.offsets[columns.lines]
        if done:
            columns, offsets = columns.slice(done, columns.num_rows), offsets[done:]
        return _Piece(consumed.split_id, columns, offsets, consumed.next, consumed.ends)

    def _call_wake(self) -> None:
        with self._changed:
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()


def _translated(error: BaseException, cluster: Cluster) -> BaseException:
    if isinstance(error, ck.KafkaException):
        return cluster.failure("cannot be read", error.args[0])
    return error


def _bad_partition(key: tuple[str, int], error: Any, fetch: _Fetch | None, cluster: Cluster) -> ConnectorError:
    topic, partition = key
    if error.code() in (ck.KafkaError._AUTO_OFFSET_RESET, ck.KafkaError.OFFSET_OUT_OF_RANGE):
        offset = "its position" if fetch is None else f"offset {fetch.next}"
        return ConnectorError(
            "kafka-offset",
            f"Topic '{topic}', partition {partition} has no record at {offset} any more: {error.str()}",
            hint="retention or a new topic of that name removed it; 'properties.auto.offset.reset' = 'earliest' or "
            "'latest' goes on elsewhere, and loses what is missing",
        )
    return cluster.no_topic(topic, error)
