"""librdkafka's consumer by its C interface: many records at once as arrays.

The Python client makes an object of each record, which takes longer than all else that reading it costs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence, Set
from ctypes import c_char_p, c_size_t, c_void_p
from itertools import pairwise
from typing import Any, Final

import confluent_kafka as ck
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import pack_validity
from flowsql_compute.kernels.wire.held_messages import (
    ERROR,
    HEADS,
    KEY_SIZE,
    OFFSET,
    PARTITION,
    TOPIC,
    VALUE_SIZE,
    call_for_messages,
    message_bytes,
    message_heads,
    release_messages,
)
from flowsql_connectors.kafka.library import CONSUMER, Client, Partitions, address, failure, text
from flowsql_core.record import record

Int64s = npt.NDArray[np.int64]

#: What can be asked of records besides their values and offsets.
KEYS: Final = "keys"
TIMESTAMPS: Final = "timestamps"
EPOCHS: Final = "epochs"
HEADERS: Final = "headers"

#: Bytes of the values of records that become one array, whose offsets are numbers of 32 bits.
_MOST_BYTES: Final = 1 << 30


@record
class Records:
    """Records of one partition by rising offset. What was not asked for is None.

    ``values``, ``keys``: binary arrays, NULL where a record has none. ``timestamps``: milliseconds.
    ``timestamp_types``: the library's numbers. ``epochs``: of leaders, -1 where unknown.
    """

    topic: str
    partition: int
    offsets: Int64s
    values: Any
    keys: Any = None
    timestamps: Int64s | None = None
    timestamp_types: npt.NDArray[np.int32] | None = None
    epochs: npt.NDArray[np.int32] | None = None
    headers: list[list[tuple[str, bytes | None]]] | None = None

    @property
    def value_bytes(self) -> int:
        """Bytes of all values."""
        ends = np.frombuffer(self.values.buffers()[1], np.int32, len(self.values) + 1, 4 * self.values.offset)
        return int(ends[-1] - ends[0])

    def part(self, start: int, stop: int) -> Records:
        """Records [start, stop)."""

        def cut(some: Any) -> Any:
            return None if some is None else some[start:stop]

        return Records(
            self.topic, self.partition, self.offsets[start:stop], self.values[start:stop], cut(self.keys),
            cut(self.timestamps), cut(self.timestamp_types), cut(self.epochs), cut(self.headers),
        )  # fmt: skip


@record
class PartitionEvent:
    """What stands among the records of a partition and is none: its end, or an error."""

    topic: str
    partition: int
    offset: int
    error: Any


class RecordConsumer:
    """A consumer of partitions that are assigned by hand. All methods but :meth:`interrupt` are for one thread.

    Args:
        config: librdkafka's properties, and ``error_cb`` of the Python client.
        most: records that are consumed at once.
        wanted: what is asked of records besides values and offsets.

    Raises:
        confluent_kafka.KafkaException: a property is refused.
    """

    def __init__(self, config: Mapping[str, Any], most: int, wanted: Set[str]) -> None:
        self._client = Client(CONSUMER, config)
        self._library, handle = self._client.library, self._client.handle
        self._wanted = wanted
        self._addresses = np.empty(most, np.int64)
        self._heads = np.empty((HEADS, most), np.int64)
        self._library.rd_kafka_poll_set_consumer(handle)
        self._queue = self._library.rd_kafka_queue_get_consumer(handle)
        self._release = address(self._library.rd_kafka_message_destroy)

    def assign(self, partitions: Iterable[tuple[str, int, int]]) -> None:
        """Begin to consume partitions, (topic, number, offset) each."""
        self._change(self._library.rd_kafka_incremental_assign, partitions)

    def unassign(self, topic: str, partition: int) -> None:
        """Consume a partition no further."""
        self._change(self._library.rd_kafka_incremental_unassign, [(topic, partition, 0)])

    def pause(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Give no records of these until they are resumed."""
        self._tell(self._library.rd_kafka_pause_partitions, [(*one, 0) for one in partitions])

    def resume(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Go on with partitions."""
        self._tell(self._library.rd_kafka_resume_partitions, [(*one, 0) for one in partitions])

    def commit(self, offsets: Iterable[tuple[str, int, int]]) -> None:
        """Commit offsets under the group, without waiting for the broker."""
        self._tell(lambda client, some: self._library.rd_kafka_commit(client, some, 1), offsets)

    def close(self) -> None:
        """Leave the group and release everything."""
        self._library.rd_kafka_consumer_close(self._client.handle)
        self._library.rd_kafka_queue_destroy(self._queue)
        self._library.rd_kafka_destroy(self._client.handle)

    def _change(self, function: Any, partitions: Iterable[tuple[str, int, int]]) -> None:
        with Partitions(partitions) as some:
            error = function(self._client.handle, some)
        self._client.raise_error(error)

    def _tell(self, function: Any, partitions: Iterable[tuple[str, int, int]]) -> None:
        with Partitions(partitions) as some:
            code = function(self._client.handle, some)
        if code:
            raise failure(code, self._library.rd_kafka_err2str(code))

    # -- records

    def consume(self, wait_s: float) -> tuple[list[Records], list[PartitionEvent]]:
        """What is there; waits until something is, but not longer than told."""
        take, addresses = self._library.rd_kafka_consume_batch_queue, self._addresses.ctypes.data
        count = take(self._queue, int(wait_s * 1000), addresses, 1)
        if count <= 0:
            return [], []
        count += max(0, take(self._queue, 0, addresses + 8, len(self._addresses) - 1))
        try:
            return self._gathered(count)
        finally:
            release_messages(self._addresses, count, self._release)

    def interrupt(self) -> None:
        """End the wait of :meth:`consume`, that of another thread or else the next one."""
        self._library.rd_kafka_queue_yield(self._queue)

    def _gathered(self, count: int) -> tuple[list[Records], list[PartitionEvent]]:
        message_heads(self._addresses, count, self._heads)
        heads = self._heads[:, :count]
        events = [self._event(int(place)) for place in np.flatnonzero(heads[ERROR])]
        changes = np.diff(heads[TOPIC]) != 0
        changes |= np.diff(heads[PARTITION]) != 0
        changes |= np.diff(heads[ERROR]) != 0
        borders = [0, *(np.flatnonzero(changes) + 1).tolist(), count]
        groups: dict[tuple[int, int], list[slice]] = {}
        for start, stop in pairwise(borders):
            if not heads[ERROR, start]:
                key = int(heads[TOPIC, start]), int(heads[PARTITION, start])
                groups.setdefault(key, []).append(slice(start, stop))
        found: list[Records] = []
        for (topic, partition), runs in groups.items():
            name = text(self._library.rd_kafka_topic_name(topic))
            # Mostly all records of a partition follow one another: nothing is gathered then.
            parts = [(self._addresses[run], heads[:, run]) for run in runs]
            if len(parts) > 1:
                some, others = zip(*parts, strict=True)
                parts = [(np.concatenate(some), np.concatenate(others, axis=1))]
            for cut in _small_enough(parts[0][1]):
                found.append(self._records(name, partition, parts[0][0][cut], parts[0][1][:, cut]))
        return found, events

    def _event(self, place: int) -> PartitionEvent:
        heads, address = self._heads, int(self._addresses[place])
        topic = text(self._library.rd_kafka_topic_name(int(heads[TOPIC, place]))) if heads[TOPIC, place] else ""
        error = ck.KafkaError(int(heads[ERROR, place]), text(self._library.rd_kafka_message_errstr(address)))
        return PartitionEvent(topic, int(heads[PARTITION, place]), int(heads[OFFSET, place]), error)

    def _records(self, topic: str, partition: int, addresses: Int64s, heads: Int64s) -> Records:
        wanted = self._wanted
        types = np.zeros(len(addresses), np.int32)
        epochs = "rd_kafka_message_leader_epoch"
        return Records(
            topic,
            partition,
            heads[OFFSET].copy(),
            self._bytes(addresses, heads[VALUE_SIZE], False),
            self._bytes(addresses, heads[KEY_SIZE], True) if KEYS in wanted else None,
            self._called("rd_kafka_message_timestamp", addresses, types) if TIMESTAMPS in wanted else None,
            types if TIMESTAMPS in wanted else None,
            self._called(epochs, addresses, types).astype(np.int32) if EPOCHS in wanted else None,
            [self._headers(address) for address in addresses.tolist()] if HEADERS in wanted else None,
        )

    def _bytes(self, addresses: Int64s, sizes: Int64s, keys: bool) -> Any:
        """Values or keys."""
        valid = sizes >= 0
        has_all = bool(valid.all())
        offsets = np.zeros(len(addresses) + 1, np.int32)
        np.cumsum(sizes if has_all else np.where(valid, sizes, 0), out=offsets[1:])
        # From Arrow's pool: fresh memory of the system costs more than what is copied into it.
        data = pa.allocate_buffer(int(offsets[-1]))
        message_bytes(addresses, keys, offsets, np.frombuffer(data, np.uint8))
        validity = None if has_all else pack_validity(valid)
        return pa.Array.from_buffers(pa.binary(), len(addresses), [validity, pa.py_buffer(offsets), data])

    def _called(self, name: str, addresses: Int64s, second: npt.NDArray[np.int32]) -> Int64s:
        """What a function says of each message; ``second`` is what its second argument points to."""
        made = np.empty(len(addresses), np.int64)
        arguments = second.ctypes.data + 4 * np.arange(len(addresses))
        call_for_messages(addresses, address(getattr(self._library, name)), arguments, made)
        return made

    def _headers(self, message: int) -> list[tuple[str, bytes | None]]:
        headers = c_void_p()
        if self._library.rd_kafka_message_headers(message, ctypes.byref(headers)):
            return []
        made: list[tuple[str, bytes | None]] = []
        name, value, size = c_char_p(), c_void_p(), c_size_t()
        while not self._library.rd_kafka_header_get_all(
            headers, len(made), ctypes.byref(name), ctypes.byref(value), ctypes.byref(size)
        ):
            made.append((text(name.value), ctypes.string_at(value, size.value) if value.value is not None else None))
        return made


def _small_enough(heads: Int64s) -> Sequence[slice]:
    """Parts of records whose values, and whose keys, fit into one array each."""
    ends = np.cumsum(np.maximum(heads[VALUE_SIZE], 0) + np.maximum(heads[KEY_SIZE], 0))
    if ends[-1] <= _MOST_BYTES:
        return [slice(None)]
    borders = [0, *(np.flatnonzero(np.diff(ends // _MOST_BYTES)) + 1).tolist(), len(ends)]
    return [slice(start, stop) for start, stop in pairwise(borders)]
