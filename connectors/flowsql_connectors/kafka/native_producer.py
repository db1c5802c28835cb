"""librdkafka's producer by its C interface: records of arrays, many in one call.

The Python client takes an object for each record, and a call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any, Final

import confluent_kafka as ck
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.kernels.wire.sent_messages import ROOM, send_messages
from flowsql_connectors.kafka.encode import Records
from flowsql_connectors.kafka.library import PRODUCER, Client, OnDelivery, Partitions, address, failure, text

Int64s = npt.NDArray[np.int64]

#: What ``rd_kafka_purge`` forgets: what waits, and what is under way.
_EVERYTHING: Final = 1 | 2
#: How long the end of a client waits for a transaction to be aborted, seconds.
_ABORT_S: Final = 2.0
#: Where ``rd_kafka_message_t`` has its error and its topic.
_TOPIC_AT: Final = 8


class RefusedRecordError(Exception):
    """A record for a topic that the library does not take. ``error``: why."""

    def __init__(self, topic: str, error: Any) -> None:
        super().__init__(error.str())
        self.topic = topic
        self.error = error


class NativeProducer:
    """A producer. All methods but :meth:`send_mark` are for one thread.

    Args:
        config: librdkafka's properties, and ``error_cb``; ``delivery.report.only.error`` is true among them.
        undelivered: told the topic and the error (``KafkaError``) of each record that was given up.

    Raises:
        confluent_kafka.KafkaException: a property is refused.
    """

    def __init__(self, config: Mapping[str, Any], undelivered: Callable[[str, Any], None]) -> None:
        self._undelivered = undelivered
        self._client = Client(PRODUCER, config, OnDelivery(self._delivered))
        self._library, self._handle = self._client.library, self._client.handle
        self._produce = address(self._library.rd_kafka_produceva)
        self._topics: dict[str, int] = {}
        self._room = np.zeros(ROOM, np.int64)
        self._in_transaction = False

    def send(self, records: Records, topic: str | None, partitions: Int64s, full: Callable[[], None]) -> None:
        """Hand records over, in their order.

        Args:
            topic: of records that name none; None: each names one.
            partitions: of each record, or one for all; -1 is the library's own choice.
            full: called while the library has no room; it polls, or raises.

        Raises:
            RefusedRecordError: a record is refused; those before it are handed over.
        """
        if not records.count:
            return
        names, places = topics_of(records, topic)
        topics = np.array([self._topic(name) for name in names], np.int64)[places]
        values, keys = _ranges(records.values), np.zeros((2, 0), np.int64)
        if records.keys is not None:
            keys = _ranges(records.keys)
        timestamps = np.zeros(0, np.int64)
        if records.timestamps is not None:
            timestamps = np.asarray(records.timestamps.fill_null(0)).astype(np.int64)
        headers = self._headers(records)
        refused = np.zeros(1, np.int64)
        at = 0
        try:
            while True:
                at = send_messages(
                    self._handle, self._produce, at, topics, partitions, values, keys, timestamps, headers,
                    self._room, self._room.ctypes.data, refused,
                )  # fmt: skip
                if at == records.count:
                    return
                # Without the words "Failed to produce message", which the sentence around it says.
                error = ck.KafkaError(self._client.told(int(refused[0])).code())
                if error.code() != ck.KafkaError._QUEUE_FULL:
                    raise RefusedRecordError(names[places[at if len(places) > 1 else 0]], error)
                full()
        finally:
            for left in headers[at:].tolist():
                if left:
                    self._library.rd_kafka_headers_destroy(left)

    def _topic(self, name: str) -> int:
        if name not in self._topics:
            made = self._library.rd_kafka_topic_new(self._handle, name.encode(), None)
            if not made:
                code = self._library.rd_kafka_last_error()
                raise failure(code, self._library.rd_kafka_err2str(code))
            self._topics[name] = made
        return self._topics[name]

    def _headers(self, records: Records) -> Int64s:
        """Lists of headers, which the library takes with their records."""
        if records.headers is None:
            return np.zeros(0, np.int64)
        found = np.zeros(records.count, np.int64)
        for at, headers in enumerate(records.headers.to_pylist()):
            if headers:
                found[at] = self._library.rd_kafka_headers_new(len(headers))
                for name, value in headers:
                    raw = name.encode()
                    size = -1 if value is None else len(value)
                    self._library.rd_kafka_header_add(int(found[at]), raw, len(raw), value, size)
        return found

    def _delivered(self, _: int, message: int, __: int | None) -> None:
        code = ctypes.c_int.from_address(message).value
        if code:
            topic = self._library.rd_kafka_topic_name(ctypes.c_void_p.from_address(message + _TOPIC_AT).value)
            self._undelivered(text(topic), ck.KafkaError(code, text(self._library.rd_kafka_err2str(code))))

    def poll(self, seconds: float) -> int:
        """Serve callbacks, and wait for one if there is none; how many there were."""
        return int(self._library.rd_kafka_poll(self._handle, int(seconds * 1000)))

    def flush(self, seconds: float) -> int:
        """Wait until all records are delivered or given up; how many are not."""
        self._library.rd_kafka_flush(self._handle, int(seconds * 1000))
        return int(self._library.rd_kafka_outq_len(self._handle))

    def close(self) -> None:
        """Forget what was not sent, abort the transaction that is open, and release everything."""
        self._library.rd_kafka_purge(self._handle, _EVERYTHING)
        if self._in_transaction:
            error = self._library.rd_kafka_abort_transaction(self._handle, int(_ABORT_S * 1000))
            if error:
                # Whoever has its id next aborts it.
                self._library.rd_kafka_error_destroy(error)
        for topic in self._topics.values():
            self._library.rd_kafka_topic_destroy(topic)
        self._library.rd_kafka_destroy(self._handle)

    # -- transactions

    def init_transactions(self, seconds: float) -> None:
        """Take the transactions of ``transactional.id``.

        Raises:
            confluent_kafka.KafkaException: as all methods of transactions.
        """
        self._client.raise_error(self._library.rd_kafka_init_transactions(self._handle, int(seconds * 1000)))

    def begin_transaction(self) -> None:
        """What is sent from here on is one transaction."""
        self._client.raise_error(self._library.rd_kafka_begin_transaction(self._handle))
        self._in_transaction = True

    def send_mark(self, topic: str, offset: int, mark: bytes, group: str, seconds: float) -> None:
        """Add an offset of partition 0, with a text, of a group without members to the transaction."""
        found = self._library
        metadata = found.rd_kafka_consumer_group_metadata_new(group.encode())
        try:
            with Partitions([(topic, 0, offset)], {0: mark}, self._handle) as some:
                error = found.rd_kafka_send_offsets_to_transaction(self._handle, some, metadata, int(seconds * 1000))
        finally:
            found.rd_kafka_consumer_group_metadata_destroy(metadata)
        self._client.raise_error(error)

    def commit_transaction(self, seconds: float) -> None:
        """All of it, or nothing."""
        self._client.raise_error(self._library.rd_kafka_commit_transaction(self._handle, int(seconds * 1000)))
        self._in_transaction = False

    def abort_transaction(self, seconds: float) -> None:
        """Nothing of it."""
        self._client.raise_error(self._library.rd_kafka_abort_transaction(self._handle, int(seconds * 1000)))
        self._in_transaction = False


def topics_of(records: Records, usual: str | None) -> tuple[list[str], Int64s]:
    """The topics of records, and which of them each record has; one place alone: all have it.

    Args:
        usual: of records that name none; None: each names one.
    """
    if records.topics is None:
        assert usual is not None
        return [usual], np.zeros(1, np.int64)
    named = records.topics if usual is None else records.topics.fill_null(usual)
    coded = named.dictionary_encode()
    return coded.dictionary.to_pylist(), np.asarray(coded.indices).astype(np.int64)


def _ranges(array: Any) -> Int64s:
    """Addresses and sizes in bytes of the values of a binary array, (2, n); size -1 is NULL. The array must live on."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    validity, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
    made = np.empty((2, len(array)), np.int64)
    # An empty value has an address, too: without one it would be none.
    made[0] = ends[:-1] + (data.address if data is not None and data.size else offsets.address)
    made[1] = np.diff(ends)
    if validity is not None and array.null_count:
        made[1, np.asarray(array.is_null())] = -1
    return made
